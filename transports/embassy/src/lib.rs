//! messina on embassy-net: TCP links from a pool of sockets, timers and a clock on embassy-time.
//!
//! The crate chooses nothing for the firmware: no executor, no time driver, no critical-section
//! implementation, no allocator. It starts no task. Sockets and their buffers are placed by the
//! caller, usually in statics, and used again after each connection, so that the heap sees one
//! box per connect and look-up and nothing else.
//!
//! ```no_run
//! # fn board_stack() -> embassy_net::Stack<'static> { unimplemented!() }
//! use messina_embassy::{EmbassyTransport, Options, SocketBuffers, SocketPool};
//! # fn place<T>(value: T) -> &'static mut T { Box::leak(Box::new(value)) }
//!
//! // On a microcontroller both are statics (`static_cell`), not `place`.
//! let buffers = place(SocketBuffers::<2, 2048, 1024>::new());
//! let pool = place(SocketPool::new(board_stack(), buffers));
//! let transport = EmbassyTransport::new(pool, Options::default());
//! ```
//!
//! # What embassy-net does, and what this crate makes of it
//!
//! | embassy-net 0.9 | here |
//! |---|---|
//! | a connect to a silent host never ends | the target's deadline ends it: `TimedOut`, or `Unreachable` without link or address |
//! | refused and timed out are one error | no timeout runs in the stack while connecting, so its error means refused |
//! | a timeout without keep-alive ends healthy idle connections | [`Liveness`] sets both or neither |
//! | a socket timeout is reported as a reset | told apart by how long the peer was silent, see [`Liveness`] |
//! | dropping a socket tells the peer nothing | sockets return to the pool: aborted, the reset sent before the next connect |
//! | a lost frame costs at least one second | deadlines of requests should be longer than that |
//! | source ports cannot be chosen | they count up, so a wished shard is reached by using up the ones before (feature `steering`) |
//! | `max_burst_size = Some(1)` in a driver stalls larger windows | not visible from here; drivers should report three or more |
//!
//! With embassy's integrated timer queue only wakers of its own executor may wait for a timer, so
//! tasks of the driver must be polled with the context of the embassy task that holds them, or the
//! firmware enables one of embassy-time's `generic-queue-*` features.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod link;
mod net;
mod runner;
mod time;
mod transport;

pub use link::EmbassyLink;
pub use net::{NO_FREE_SOCKET, SocketBuffers, SocketPool};
pub use runner::Runner;
pub use time::{EmbassyClock, EmbassyTimer};
pub use transport::{EmbassyTransport, Liveness, Options};
