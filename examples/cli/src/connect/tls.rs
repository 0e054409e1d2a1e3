//! From the options about TLS to those of the transport.

use messina_core::error::Error;
use messina_tokio::TlsOptions;

use crate::arguments::TlsArguments;
use crate::failure::Failure;

/// None where connections are plain. Says on standard error when nothing is verified.
pub(crate) fn options(arguments: &TlsArguments) -> Result<Option<TlsOptions>, Failure> {
    if !arguments.is_wanted() {
        let given = arguments.tls_server_name.is_some() || arguments.tls_cert.is_some();
        return if given {
            let message = "--tls-server-name and --tls-cert need --tls or --ca";
            Err(Failure::usage(message))
        } else {
            Ok(None)
        };
    }
    let options = match &arguments.ca {
        Some(file) => TlsOptions::with_ca_file(file).map_err(unusable)?,
        None if arguments.tls_insecure => {
            eprintln!("warning: --tls-insecure: nodes are not verified, anybody may be in between");
            TlsOptions::dangerous_without_verification()
        }
        None => TlsOptions::with_public_roots(),
    };
    match (&arguments.tls_cert, &arguments.tls_key) {
        (Some(certificate), Some(key)) => options
            .client_certificate_files(certificate, key)
            .map(Some)
            .map_err(unusable),
        _ => Ok(Some(options)),
    }
}

/// Certificates or keys that cannot be used.
pub(crate) fn unusable(error: Error) -> Failure {
    Failure::new("tls", error.to_string())
}
