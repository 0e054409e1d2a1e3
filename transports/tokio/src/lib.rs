//! messina on tokio: TCP links, timers, and a session that spawns its own tasks.
//!
//! ```no_run
//! # async fn example() -> Result<(), messina_tokio::Error> {
//! let session = messina_tokio::builder().contact("127.0.0.1:9042").connect().await?;
//! let row = session.query("SELECT release_version FROM system.local", ()).await?;
//! println!("{}", row.single_row::<(String,)>()?.0);
//! # Ok(())
//! # }
//! ```
//!
//! The driver and every connection are tasks of their own on the runtime that [`Builder::connect`]
//! is called on. Dropping the last [`Session`] ends them.
#![forbid(unsafe_code)]

mod builder;
mod link;
mod spawn;
mod time;
mod transport;

pub use builder::{Builder, builder};
pub use link::TcpLink;
pub use messina_core::config::Config;
pub use messina_core::drive::{Batch, Pager, Prepared, QueryResult, Session, Statement};
pub use messina_core::error::Error;
pub use spawn::connect;
pub use time::{TokioClock, TokioTimer};
pub use transport::TokioTransport;
