//! Ctrl-C, and being told to end by the system.

use core::future::Future;

/// Ends when an interrupt or, on Unix, a request to terminate arrives. Listens from the call on,
/// not from the first poll: what is said between must not kill the process.
pub(crate) fn interrupted() -> impl Future<Output = ()> {
    let mut signals = Signals::listen();
    async move { signals.next().await }
}

#[cfg(unix)]
struct Signals {
    interrupt: Option<tokio::signal::unix::Signal>,
    terminate: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    /// Where there are no signals, only the work's own end ends it.
    fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        Self {
            interrupt: signal(SignalKind::interrupt()).ok(),
            terminate: signal(SignalKind::terminate()).ok(),
        }
    }

    async fn next(&mut self) {
        tokio::select! {
            () = received(self.interrupt.as_mut()) => {}
            () = received(self.terminate.as_mut()) => {}
        }
    }
}

#[cfg(unix)]
async fn received(signal: Option<&mut tokio::signal::unix::Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => core::future::pending().await,
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    const fn listen() -> Self {
        Self
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            core::future::pending::<()>().await;
        }
    }
}
