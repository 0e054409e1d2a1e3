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
//! A row is a tuple, or a struct that derives [`EncodeRow`] or [`DecodeRow`]:
//!
//! ```no_run
//! use messina_tokio::{DecodeRow, EncodeRow, Session};
//!
//! #[derive(EncodeRow, DecodeRow)]
//! struct Harbour {
//!     name: String,
//!     berths: Option<i32>,
//! }
//!
//! # async fn example(session: Session) -> Result<(), messina_tokio::Error> {
//! let insert = session.prepare("INSERT INTO port.harbours (name, berths) VALUES (?, ?)").await?;
//! let messina = Harbour { name: "Messina".into(), berths: Some(12) };
//! session.execute(&insert, &messina).await?;
//! for harbour in session.query("SELECT * FROM port.harbours", ()).await?.rows::<Harbour>()? {
//!     println!("{}", harbour?.name);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The driver and every connection are tasks of their own on the runtime that [`Builder::connect`]
//! is called on. Dropping the last [`Session`] ends them.
//!
//! Features: `derive`, on by default, brings the derive macros (`messina-derive` lists their attributes); `lz4` and `snappy` add compression of frames; `tls` adds TLS by rustls (`tls-aws-lc`: with AWS-LC instead of ring), and
//! `webpki-roots` the public certificate authorities; `TlsOptions` says how they are used.
#![forbid(unsafe_code)]

mod builder;
mod link;
mod spawn;
mod time;
#[cfg(feature = "tls")]
mod tls;
mod transport;

pub use builder::{Builder, builder};
pub use link::{TokioLink, link_error};
pub use messina_core::config::Config;
pub use messina_core::drive::{Batch, Pager, Prepared, QueryResult, Session, Statement};
pub use messina_core::error::Error;
pub use messina_core::types;
pub use messina_core::types::{DecodeRow, DecodeValue, EncodeRow, EncodeValue};
#[cfg(feature = "tls")]
pub use spawn::connect_tls;
pub use spawn::{connect, connect_through};
pub use time::{TokioClock, TokioTimer};
#[cfg(feature = "tls")]
pub use tls::TlsOptions;
pub use transport::TokioTransport;
