//! One command for the whole picture: a simulated cluster, the relay in front of it, and a page that runs the driver
//! in the browser and shows where each request went.
//!
//! Everything listens on loopback and ends by Ctrl-C. The page gets no password: the relay logs it in.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a command talks to its user")]

mod control;
mod package;
mod pages;
mod relay;
mod tables;

use core::error::Error;
use core::time::Duration;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use messina_sim::node::{Credentials, Options};
use messina_sim::tcp::SimServer;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::pages::Pages;

/// A user whose password only the relay knows.
const USER: &str = "page";

/// How long requests may still take after Ctrl-C.
const GRACE: Duration = Duration::from_secs(2);

/// Starts a simulated cluster, a relay and a page, and prints the page's address.
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
struct Arguments {
    /// Port of the page; 0 takes a free one
    #[arg(long, default_value_t = 8008)]
    port: u16,
    /// Nodes of the cluster; node i listens on 127.0.0.i
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=9))]
    nodes: u16,
    /// Shards of each node
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=16))]
    shards: u32,
    /// Seed of all ids, tokens and tablets
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Build the npm package anew, even if it is there
    #[arg(long)]
    build: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    package::ensure(arguments.build).await?;
    let mut options = Options::uniform(usize::from(arguments.nodes), arguments.shards);
    (options.port, options.shard_aware_port) = (0, Some(0));
    options.seed = arguments.seed;
    let password = secret()?;
    options.auth = Some(Credentials::new(USER, &password));
    let cluster = SimServer::start(options).await?;
    tables::make(cluster.contacts(), USER, &password).await?;
    cluster.handle().reset_stats();

    let listener = TcpListener::bind(("127.0.0.1", arguments.port)).await;
    let listener = listener.map_err(|error| {
        format!(
            "port {} of 127.0.0.1: {error}; --port 0 takes a free one",
            arguments.port
        )
    })?;
    let address = listener.local_addr()?;
    let login = messina_relay::Credentials::new(USER, &password);
    let (relay, signer) = relay::bind(&cluster, address, login).await?;
    let pages = Arc::new(Pages::new(address, &cluster, relay.local_addr()?, signer)?);
    let serving = tokio::spawn(async move { axum::serve(listener, pages::router(pages)).await });
    let (stop, stopped) = oneshot::channel::<()>();
    let relaying = tokio::spawn(relay.run(async {
        // An error says that nobody can tell it any more, which is the end as well.
        let _ = stopped.await;
    }));
    println!("open http://{address}/  (Ctrl-C ends)");
    interrupted().await;
    serving.abort();
    drop(stop);
    let _ = timeout(GRACE, relaying).await;
    let _ = timeout(GRACE, cluster.stop()).await;
    Ok(())
}

/// Something that nobody can guess.
fn secret() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(uuid::Uuid::from_bytes(bytes).simple().to_string())
}

/// Ends at Ctrl-C and, on Unix, when the system asks to terminate.
async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
