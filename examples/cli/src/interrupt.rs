//! Ctrl-C, and being told to end by the system.

/// Waits for an interrupt or, on Unix, a request to terminate.
pub(crate) async fn interrupted() {
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
    // An error says that there are no signals here: then only the work's own end ends it.
    if tokio::signal::ctrl_c().await.is_err() {
        core::future::pending::<()>().await;
    }
}
