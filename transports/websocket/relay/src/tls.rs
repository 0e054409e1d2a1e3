//! TLS on both sides: the relay's certificate, for `wss:`, and whom it trusts among nodes.

use core::fmt;
use std::io;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::allow::Destination;
use crate::socket::Socket;

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

/// Whom to trust among nodes.
#[derive(Clone)]
pub struct NodeTls {
    config: Arc<ClientConfig>,
    server_name: Option<ServerName<'static>>,
}

impl NodeTls {
    /// Trusts the certificates in a PEM text, and what they have signed. A node is verified by the
    /// name that it is allowed by, or its address.
    ///
    /// # Errors
    ///
    /// When there is none in it, or one cannot be read.
    pub fn with_ca_pem(pem: &[u8]) -> Result<Self, TlsError> {
        let told = |error: &dyn fmt::Display| TlsError(format!("nodes' authority: {error}"));
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| told(&error))?;
            roots.add(certificate).map_err(|error| told(&error))?;
        }
        if roots.is_empty() {
            return Err(told(&"there is none in it"));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| told(&error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            config: Arc::new(config),
            server_name: None,
        })
    }

    /// The name in all nodes' certificates, where it is neither theirs nor their address.
    ///
    /// # Errors
    ///
    /// When it is no name.
    pub fn server_name(mut self, name: &str) -> Result<Self, TlsError> {
        let name = ServerName::try_from(name.to_owned());
        let name = name.map_err(|error| TlsError(format!("nodes' name: {error}")))?;
        self.server_name = Some(name);
        Ok(self)
    }

    pub(crate) async fn shake(
        &self,
        socket: Socket,
        to: &Destination,
    ) -> io::Result<TlsStream<Socket>> {
        let name = match (&self.server_name, to) {
            (Some(name), _) => name.clone(),
            (None, Destination::Address(address)) => ServerName::from(address.ip()),
            (None, Destination::Name(name, _)) => {
                ServerName::try_from(name.to_string()).map_err(io::Error::other)?
            }
        };
        let connector = TlsConnector::from(Arc::clone(&self.config));
        connector.connect(name, socket).await
    }
}

impl fmt::Debug for NodeTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeTls")
            .field("server_name", &self.server_name)
            .finish_non_exhaustive()
    }
}
