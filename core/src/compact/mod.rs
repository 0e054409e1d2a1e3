//! The whole driver as one machine with one owner: no futures, no tasks, no locks. Operations out
//! through [`Host`], completions in by the `handle_` functions, and [`Machine::run`] goes on with
//! everything in one pass that ends when nothing changes.
//!
//! It is for images that must be small: firmware, and modules for JavaScript. [`drive`](crate::drive)
//! is for servers, where many tasks share a session; it knows more and weighs more.
//!
//! | module | what it is |
//! |---|---|
//! | `machine` | the pass, and the session's beginning |
//! | `ending` | how requests and the session end |
//! | `platform` | the platform's links: bytes, beginnings and ends |
//! | `figures` | what a machine tells of itself |
//! | `contact` | where a first connection is looked for, and when |
//! | `serving` | links adopted and lost |
//! | `control` | the link that the cluster is read over |
//! | `pools` | further links: one for each member, or for each of its shards |
//! | `asking` | requests made, and written |
//! | `exchange` | requests aimed at links, and submitted |
//! | `answering` | requests answered, and what is learned from that |
//! | `verdict` | what becomes of a request after an attempt |
//! | `giving` | statements prepared on further nodes |
//! | `request` | a request on its way |
//! | `statement` | prepared statements |
//! | `text` | which texts have to be prepared where nodes demand that |
//! | `answer` | what answers mean |
//! | `link` | one link: handshake, frames in, bytes out |
//! | [`cursor`] | rows out of a body that comes in pieces, through one window |
//! | `warm` | what a later session begins with |
//! | [`plane`] | what is known of the cluster, and where requests go |
//!
//! Above the machine, for a platform that has a [`Transport`](crate::drive::Transport):
//!
//! | module | what it is |
//! |---|---|
//! | `session` | the handle: statements prepared, executed, read in pieces; `options`, `batch`, `status` |
//! | `runner` | one task that runs all links (`wires`) and the machine; `beside`, with what uses them |
//! | `hub` | what the two share, behind one lock; `desk`: who waits for what, `flow`: a streamed result |
//! | `binding`, `rows` | values into markers, and out of cells; `number`: the numbers of their types |
//! | `reply`, `stream` | what a statement brought: as a whole, or row by row as it comes |
//!
//! ```no_run
//! use messina_core::compact::{Session, start};
//! use messina_core::config::Config;
//! use messina_core::drive::Transport;
//! use messina_core::error::Error;
//!
//! async fn readings(session: Session) -> Result<(), Error> {
//!     session.ready().await?;
//!     let insert = session.prepare("INSERT INTO ks.readings (id, at, value) VALUES (?, ?, ?)").await?;
//!     session.execute(&insert, (7, 1_767_225_600_000_i64, 21.5)).await?;
//!     let select = session.prepare("SELECT id, at, value FROM ks.readings").await?;
//!     let mut rows = session.stream(&select, ());
//!     while let Some(row) = rows.next::<(i32, i64, f64)>().await {
//!         let (id, at, value) = row?;
//!         # let _ = (id, at, value);
//!     }
//!     Ok(())
//! }
//!
//! // The runner is polled wherever the platform likes, here or in another task.
//! async fn run<T: Transport>(config: Config, transport: T, seed: u64) {
//!     let (session, runner) = start(config, transport, seed);
//!     # drop(session);
//!     runner.await;
//! }
//! ```
//!
//! What differs from `drive`: tables and keyspaces are read when a statement uses them, not all of
//! them; statements are prepared on further nodes behind the requests, which do not wait for that; a
//! request waits while the only connection is opened anew, until every place has failed; texts that
//! read or write rows are prepared first where nodes speak the second tablets extension, whatever is
//! known of their tables; nothing is compressed.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

mod answer;
mod answering;
mod asking;
mod batch;
mod beside;
mod binding;
mod contact;
mod control;
pub mod cursor;
mod desk;
mod ending;
mod exchange;
mod figures;
mod flow;
mod giving;
mod host;
mod hub;
mod link;
mod machine;
mod number;
mod options;
pub mod plane;
mod platform;
mod pools;
mod random;
mod reply;
mod request;
mod rows;
mod runner;
mod serving;
mod session;
mod slab;
mod statement;
mod status;
#[cfg(any(test, feature = "streams"))]
mod stream;
mod text;
mod verdict;
#[cfg(any(test, feature = "warm-start"))]
mod warm;
mod wires;

pub use batch::Batch;
pub use binding::{Binder, Cql, Marker, ToCell, ToCells, Unfit};
pub use figures::{Counters, LinkStatus, UNPLACED};
pub use host::{Answered, Done, Host};
pub use machine::{Machine, NONE};
pub use options::Options;
pub use reply::{Reply, Rows};
pub use request::{BatchPart, RequestOptions};
pub use rows::{Cells, FromCell, FromCells, Stop};
pub use runner::Runner;
pub use session::{Executing, Prepared, Preparing, Session, start};
pub use statement::Statement;
pub use status::{ConnectionStatus, MemberStatus, Status};
#[cfg(any(test, feature = "streams"))]
pub use stream::RowStream;
