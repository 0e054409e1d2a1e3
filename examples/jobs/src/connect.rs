//! Connecting: whom to ask first, as whom, and how long.

use core::time::Duration;

use messina_tokio::TlsOptions;

use crate::{Failure, Place};

/// Runs the job.
pub async fn run(place: &Place) -> Result<(), Failure> {
    let mut builder = messina_tokio::builder()
        // One node that answers is enough: the others are learned from it.
        .contact(&place.contact)
        // Nodes of other data centres are asked only where a request may go there.
        .datacenter("dc1")
        // One request with all its attempts.
        .request_timeout(Duration::from_secs(2));
    if let Some((user, password)) = &place.login {
        builder = builder.user(user, password);
    }
    if let Some(secure) = &place.secure {
        let trusted = TlsOptions::with_ca_file(&secure.authority)?;
        builder = builder.contact(&secure.contact).tls(trusted);
    }
    // Everything else has a default that fits servers, and is a field of the configuration.
    builder.config().application_name = Some(String::from("jobs"));

    let session = builder.connect().await?;
    let version = session
        .query("SELECT release_version FROM system.local", ())
        .await?;
    let (version,) = version.single_row::<(String,)>()?;
    println!("connected to version {version}");
    // Requests under way finish; connections close. Without this they end with the last handle.
    session.close().await;
    Ok(())
}
