//! Runs the driver and its connections as tasks of the current runtime.

use messina_core::config::Config;
use messina_core::drive::{ConnectionTask, Driver, Session, Transport, start};
use messina_core::error::Error;
use rand_core::UnwrapErr;

use crate::transport::TokioTransport;

/// Connects: makes a session, spawns its driver and waits until the session can be used.
///
/// Must be called within a runtime. Fails within `Timeouts::connect` when no contact point can be
/// used, or at once when the configuration cannot work. Dropping the future ends the attempt.
pub async fn connect(config: Config) -> Result<Session, Error> {
    connect_through(config, TokioTransport::new()).await
}

/// The same with every connection under TLS. A name to verify instead of the nodes' addresses is
/// set as [`Config::server_name`].
#[cfg(feature = "tls")]
pub async fn connect_tls(config: Config, options: crate::TlsOptions) -> Result<Session, Error> {
    connect_through(config, TokioTransport::with_tls(options)?).await
}

/// The same through any transport whose tasks may move between threads: a tunnel, for example.
pub async fn connect_through<T>(config: Config, transport: T) -> Result<Session, Error>
where
    T: Transport + Send + Sync + 'static,
    T::Link: Send,
    T::Timer: Send,
    T::Connecting: Send,
    T::Resolving: Send,
{
    let mut random = UnwrapErr(getrandom::SysRng);
    let (session, driver) = start(config, transport, &mut random)?;
    tokio::spawn(run(driver));
    session.ready().await?;
    Ok(session)
}

async fn run<T>(mut driver: Driver<T>)
where
    T: Transport + Send + Sync + 'static,
    T::Link: Send,
    T::Timer: Send,
    T::Connecting: Send,
    T::Resolving: Send,
{
    while let Some(connection) = driver.next_connection().await {
        tokio::spawn(connection);
    }
}

const fn assert_send<T: Send>() {}

// Tasks move between the threads of a runtime, and handles between tasks.
const _: () = {
    assert_send::<Driver<TokioTransport>>();
    assert_send::<ConnectionTask<TokioTransport>>();
    assert_send::<Session>();
};
