//! TLS 1.3 over embassy-net, by embedded-tls (feature `tls`).
//!
//! embedded-tls keeps the progress of reads and writes in futures. They live in a task of this
//! module ([`TlsPool::run`]) that the firmware polls: it moves bytes between the records and two
//! fixed rings for each connection, in both directions at once, and the rings are the
//! [`TlsLink`] that the driver sees. Records and rings are placed by the caller; the futures, some
//! five kilobytes for each connection, are boxed once, when the task starts.
//!
//! ```no_run
//! # use messina_embassy::{EmbassyTransport, Entropy};
//! # fn board(mut generator: impl Entropy, plain: EmbassyTransport<'static>) {
//! use messina_embassy::tls::{Authority, TlsMemory, TlsPool, TlsTransport};
//! # fn place<T>(value: T) -> &'static mut T { Box::leak(Box::new(value)) }
//!
//! # const AUTHORITY: &[u8] = &[];
//! // The certificate that signed those of the nodes, in DER: `include_bytes!("ca.der")`.
//! let authority = Authority::from_der(AUTHORITY).expect("a certificate with a P-256 key");
//! // On a microcontroller both are statics (`static_cell`), not `place`.
//! let memory = place(TlsMemory::<2>::new());
//! let pool: &TlsPool<'static, 2> = place(TlsPool::new(memory, authority));
//! let transport = TlsTransport::new(plain, pool);
//! // In a task of its own, or joined with the session's runner.
//! let task = async move { pool.run(&mut generator).await };
//! # let _ = (transport, task);
//! # }
//! ```
//!
//! What is offered: TLS 1.3 with AES-128-GCM and P-256, certificates of ECDSA on P-256 with
//! SHA-256, no certificate of our own, no resumption. The server must prove itself by a certificate
//! that the [`Authority`] signed, for the configured server name or else for the name or address
//! that is dialed; its validity is checked where there is a wall clock. A record of the server may
//! have 16 KiB, so that is what [`TlsMemory`] holds for it by default.

mod carrier;
mod certificate;
mod link;
mod ring;
mod slot;
mod stream;
mod transport;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::Poll;

pub use carrier::NO_ENTROPY;
pub use certificate::Authority;
pub use link::TlsLink;
pub use transport::{TlsConnecting, TlsTransport};

use crate::entropy::Entropy;
use slot::{Records, Slot};

/// Memory for `N` connections: `READ` bytes for the record that comes in (a server may fill
/// 16,640), `WRITE` for the one that goes out (128 are lost to overhead, and 512 is the least, for
/// the handshake), and two rings of `RING` bytes.
pub struct TlsMemory<
    const N: usize,
    const READ: usize = 16_640,
    const WRITE: usize = 2_048,
    const RING: usize = 1_024,
> {
    connections: [ConnectionMemory<READ, WRITE, RING>; N],
}

struct ConnectionMemory<const READ: usize, const WRITE: usize, const RING: usize> {
    read: [u8; READ],
    write: [u8; WRITE],
    incoming: [u8; RING],
    outgoing: [u8; RING],
}

impl<const N: usize, const READ: usize, const WRITE: usize, const RING: usize>
    TlsMemory<N, READ, WRITE, RING>
{
    /// Zeroed memory; meant for a static, where it is never moved.
    pub const fn new() -> Self {
        const {
            assert!(
                WRITE >= 512 && RING > 0,
                "too little memory for a handshake"
            );
        }
        Self {
            connections: [const {
                ConnectionMemory {
                    read: [0; READ],
                    write: [0; WRITE],
                    incoming: [0; RING],
                    outgoing: [0; RING],
                }
            }; N],
        }
    }
}

impl<const N: usize, const READ: usize, const WRITE: usize, const RING: usize> Default
    for TlsMemory<N, READ, WRITE, RING>
{
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize, const READ: usize, const WRITE: usize, const RING: usize> fmt::Debug
    for TlsMemory<N, READ, WRITE, RING>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TlsMemory {{ {N} * ({READ} + {WRITE} + 2 * {RING}) }}")
    }
}

/// `N` connections at most, and whom their servers must be certified by.
pub struct TlsPool<'d, const N: usize> {
    slots: [Slot<'d>; N],
    authority: Authority<'d>,
}

impl<'d, const N: usize> TlsPool<'d, N> {
    /// Divides the memory among connections.
    pub fn new<const READ: usize, const WRITE: usize, const RING: usize>(
        memory: &'d mut TlsMemory<N, READ, WRITE, RING>,
        authority: Authority<'d>,
    ) -> Self {
        let slots = memory.connections.each_mut().map(|memory| {
            let records = Records {
                read: &mut memory.read,
                write: &mut memory.write,
            };
            Slot::new(records, &mut memory.incoming, &mut memory.outgoing)
        });
        Self { slots, authority }
    }

    /// Connections that are in nobody's use.
    pub fn free(&self) -> usize {
        let is_free = |slot: &&Slot<'_>| slot.state() == slot::State::Free;
        self.slots.iter().filter(is_free).count()
    }

    /// Carries the bytes of all connections, for ever. Keys are drawn from `source`: a
    /// cryptographic generator, or the chip's.
    ///
    /// Dropping it in the middle leaves connections without an end; it is meant to run as long as
    /// the firmware does.
    pub async fn run(&self, source: &mut impl Entropy) {
        let source: RefCell<&mut dyn Entropy> = RefCell::new(source);
        let mut tasks = Vec::with_capacity(N);
        for slot in &self.slots {
            tasks.push(task(slot, &self.authority, &source));
        }
        poll_fn(|cx| {
            for task in &mut tasks {
                let _ = task.as_mut().poll(cx);
            }
            Poll::Pending
        })
        .await
    }
}

/// A task of some kilobytes, built away from the stack that its handshakes will need.
#[inline(never)]
fn task<'a>(
    slot: &'a Slot<'_>,
    authority: &'a Authority<'_>,
    source: &'a RefCell<&mut dyn Entropy>,
) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
    Box::pin(carrier::serve(slot, authority, source))
}

impl<const N: usize> fmt::Debug for TlsPool<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TlsPool {{ {} of {N} free }}", self.free())
    }
}
