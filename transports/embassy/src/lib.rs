//! messina on embassy-net: TCP links from a pool of sockets, timers and a clock on embassy-time.
//!
//! The crate chooses nothing for the firmware: no executor, no time driver, no critical-section
//! implementation, no allocator. It starts no task. Sockets and their buffers are placed by the
//! caller, usually in statics, and used again after each connection, so that the heap sees nothing
//! of a connect, and one box of a look-up.
//!
//! ```no_run
//! # fn board_stack(_seed: u64) -> embassy_net::Stack<'static> { unimplemented!() }
//! use messina_embassy::{EmbassyTransport, Options, Seed, SocketBuffers, SocketPool};
//! # fn place<T>(value: T) -> &'static mut T { Box::leak(Box::new(value)) }
//! # fn start(mut generator: impl messina_embassy::Entropy) -> Result<(), messina_embassy::EntropyError> {
//!
//! // From the chip's generator; a constant is refused in release builds.
//! let mut seed = Seed::from_entropy(&mut generator)?;
//! let stack = board_stack(seed.next_u64());
//! // On a microcontroller both are statics (`static_cell`), not `place`.
//! let buffers = place(SocketBuffers::<2, 2048, 1024>::new());
//! let pool = place(SocketPool::new(stack, buffers));
//! let transport = EmbassyTransport::new(pool, &mut seed, Options::default());
//!
//! let mut config = messina_core::config::Config::mcu();
//! config.add_contact_points("10.0.0.1, node-2.plant, node-3.plant").expect("well written");
//! let (session, runner) = messina_core::compact::start(config, transport, seed.next_u64());
//! // `runner` is polled in a task of its own, or joined with what uses `session`.
//! # let _ = (session, runner);
//! # Ok(())
//! # }
//! ```
//!
//! # What embassy-net does, and what this crate makes of it
//!
//! | embassy-net 0.9 | here |
//! |---|---|
//! | a connect to a silent host never ends | the target's deadline ends it: `TimedOut`, or [`LINK_DOWN`], [`NO_ADDRESS`] |
//! | refused and timed out are one error | no timeout runs in the stack while connecting, so its error means refused |
//! | a timeout without keep-alive ends healthy idle connections | [`Liveness`] sets both or neither |
//! | a socket timeout is reported as a reset | told apart by how long the peer was silent, see [`Liveness`] |
//! | a connection outlives a pulled cable if the address is static, and then waits for a retransmission | it ends with [`LINK_DOWN`], as it does with DHCP; a new one is open sooner |
//! | dropping a socket tells the peer nothing | sockets return to the pool: aborted, the reset sent before the next connect |
//! | `flush` succeeds on dead connections | it is not asked; a close asks for the state after it, and becomes a reset after four seconds |
//! | a look-up has no deadline and gives one address | [`Options::resolve_timeout`]; give several contact points, or build with `SMOLTCP_DNS_MAX_RESULT_COUNT=4` and each connect takes the next address |
//! | a lost frame costs at least one second | deadlines of requests should be longer than that |
//! | source ports cannot be chosen | ports are drawn until one belongs to the wished shard, see [`Options::steering`] |
//! | the same seed gives the same source ports after each boot | a [`Seed`] must be drawn, and a transport skips ports by it |
//! | `max_burst_size = Some(1)` in a driver stalls windows larger than a segment, ten to thirty times | not visible from here; drivers should report three or more |
//! | a large value moved through constructors costs its size in stack each time | [`SocketBuffers::new`] is for statics; everything else here is a few words |
//!
//! Links are encrypted by the module `tls` (feature `tls`).
//!
//! # Small images
//!
//! All features but `ipv6` and `tls` are on by default. Without any, `topology` and `shard-pools` are a
//! driver with prepared writes and reads, shards, tablets and leaders; `Cargo.toml` says of each further
//! feature what it adds. `examples/embassy-qemu` counts the bytes.
//!
//! With embassy's integrated timer queue only wakers of its own executor may wait for a timer, so
//! tasks of the driver must be polled with the context of the embassy task that holds them, or the
//! firmware enables one of embassy-time's `generic-queue-*` features.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod connecting;
mod entropy;
mod link;
mod net;
mod steering;
mod time;
#[cfg(feature = "tls")]
pub mod tls;
mod transport;

pub use messina_core::compact::Runner;

pub use connecting::{EmbassyConnecting, EmbassyResolving};
pub use entropy::{Entropy, EntropyError, Seed};
pub use link::EmbassyLink;
pub use net::{LINK_DOWN, NO_ADDRESS, NO_FREE_SOCKET, SocketBuffers, SocketPool};
pub use steering::SteeringCounts;
pub use time::{EmbassyClock, EmbassyTimer};
pub use transport::{EmbassyTransport, Liveness, Options};
