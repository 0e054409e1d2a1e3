//! A simulated ScyllaDB cluster.
//!
//! [`node`] is the cluster itself: sans-IO, deterministic, with its own codec and no dependency on
//! the driver. [`link`] runs the whole driver against it in memory, under virtual time. [`tcp`]
//! serves it on loopback addresses to any CQL driver; [`control`] is the
//! line protocol by which tests and operators break it.
//!
//! ```
//! use messina_sim::node::Options;
//! use messina_sim::tcp::SimServer;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let mut options = Options::uniform(3, 4);
//! options.port = 0;
//! options.shard_aware_port = Some(0);
//! let server = SimServer::start(options).await?;
//! assert_eq!(server.contacts().len(), 3);
//! // Drivers connect to the contacts; the nodes count what reaches them.
//! assert_eq!(server.stats().total().requests, 0);
//! server.stop().await;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod control;
pub mod link;
pub mod node;
pub mod tcp;
