//! The relay's certificate, for `wss:`.

use core::fmt;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// A certificate and its key.
#[derive(Clone)]
pub struct TlsIdentity {
    config: Arc<ServerConfig>,
}

/// Why a certificate cannot be used.
#[derive(Clone, Debug)]
pub struct TlsError(String);

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for TlsError {}

impl TlsIdentity {
    /// From PEM texts: the certificate and those that it needs behind it, and the key.
    ///
    /// # Errors
    ///
    /// When one cannot be read, or they do not belong together.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let told = |what: &str, error: &dyn fmt::Display| TlsError(format!("{what}: {error}"));
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.map_err(|error| told("certificate", &error))?;
        if chain.is_empty() {
            return Err(told("certificate", &"there is none in it"));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| told("key", &error))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| told("TLS", &error))?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| told("certificate and key", &error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = Arc::new(config);
        Ok(Self { config })
    }

    pub(crate) fn into_acceptor(self) -> TlsAcceptor {
        TlsAcceptor::from(self.config)
    }
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsIdentity").finish_non_exhaustive()
    }
}
