//! TLS of the shell: certificates made on the spot or given, and the server's side of the handshake.
//!
//! A made certificate names the address of every node and `localhost`; its authority lives as long
//! as the server. Never a way to keep secrets: the keys are those of a test.

use core::net::IpAddr;
use core::time::Duration;
use std::io;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::node::ClientTls;

/// Longest handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// What speaks TLS, and with which certificate.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TlsOptions {
    /// Which ports speak TLS.
    pub ports: TlsPorts,
    /// Names and addresses of the made certificate; none: those of the nodes, and `localhost`.
    pub names: Option<Vec<String>>,
    /// The made certificate has expired.
    pub expired: bool,
    /// Clients must show a certificate of the made authority.
    pub client_certificates: bool,
    given: Option<(Vec<u8>, Vec<u8>)>,
}

/// Which ports speak TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsPorts {
    /// The regular and the shard-aware port, which do not speak plain CQL then. SUPPORTED names
    /// the shard-aware port under both keys.
    Instead,
    /// Ports of their own, while the others stay plain; 0 takes a free one.
    Beside {
        /// The regular port.
        port: u16,
        /// The shard-aware port; without, there is none for TLS.
        shard_aware_port: Option<u16>,
    },
}

impl TlsOptions {
    /// With a certificate that is made on the spot.
    pub const fn made() -> Self {
        Self {
            ports: TlsPorts::Instead,
            names: None,
            expired: false,
            client_certificates: false,
            given: None,
        }
    }

    /// With this certificate chain and key, PEM texts.
    pub fn given(chain: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        Self {
            given: Some((chain.into(), key.into())),
            ..Self::made()
        }
    }
}

/// The certificates of a server.
pub(super) struct Certificates {
    made: Option<Made>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    client_certificates: bool,
}

impl core::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

/// An authority made on the spot.
struct Made {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    der: CertificateDer<'static>,
}

impl Certificates {
    pub(super) fn new(options: &TlsOptions, addresses: &[IpAddr]) -> io::Result<Self> {
        let (made, chain, key) = match &options.given {
            Some(_) if options.client_certificates => {
                return Err(invalid("only a made authority can sign for clients"));
            }
            Some((chain, key)) => {
                let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<_, _>>();
                let key = PrivateKeyDer::from_pem_slice(key);
                (None, chain.map_err(invalid)?, key.map_err(invalid)?)
            }
            None => {
                let made = Made::new().map_err(invalid)?;
                let names = options.names.clone().unwrap_or_else(|| {
                    let addresses = addresses.iter().map(IpAddr::to_string);
                    addresses.chain(["localhost".to_owned()]).collect()
                });
                let usage = ExtendedKeyUsagePurpose::ServerAuth;
                let (chain, key) = made.sign(names, usage, options.expired).map_err(invalid)?;
                (Some(made), vec![chain.der().clone()], key.into())
            }
        };
        Ok(Self {
            made,
            chain,
            key,
            client_certificates: options.client_certificates,
        })
    }

    pub(super) fn ca_pem(&self) -> Option<&str> {
        self.made.as_ref().map(|made| made.pem.as_str())
    }

    pub(super) fn client_pem(&self) -> Option<(String, String)> {
        let usage = ExtendedKeyUsagePurpose::ClientAuth;
        let names = vec!["client".to_owned()];
        let (certificate, key) = self.made.as_ref()?.sign(names, usage, false).ok()?;
        Some((certificate.pem(), key.serialize_pem()))
    }

    pub(super) fn acceptor(&self) -> io::Result<Acceptor> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(invalid)?;
        let builder = match &self.made {
            Some(made) if self.client_certificates => {
                builder.with_client_cert_verifier(made.verifier(provider)?)
            }
            _ => builder.with_no_client_auth(),
        };
        let config = builder
            .with_single_cert(self.chain.clone(), self.key.clone_key())
            .map_err(invalid)?;
        Ok(Acceptor(TlsAcceptor::from(Arc::new(config))))
    }
}

impl Made {
    fn new() -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        // Authorities of several servers can be trusted side by side only under names of their own.
        let own: Vec<u8> = key.public_key_raw().iter().rev().take(4).copied().collect();
        let name = format!("simulated cluster {own:02x?}");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages.push(KeyUsagePurpose::KeyCertSign);
        let certificate = params.self_signed(&key)?;
        Ok(Self {
            pem: certificate.pem(),
            der: certificate.der().clone(),
            issuer: Issuer::new(params, key),
        })
    }

    fn sign(
        &self,
        names: Vec<String>,
        usage: ExtendedKeyUsagePurpose,
        expired: bool,
    ) -> Result<(rcgen::Certificate, KeyPair), rcgen::Error> {
        let mut params = CertificateParams::new(names)?;
        params
            .distinguished_name
            .push(DnType::CommonName, "simulated cluster");
        params.extended_key_usages.push(usage);
        if expired {
            params.not_after = date_time_ymd(2001, 1, 1);
        }
        let key = KeyPair::generate()?;
        Ok((params.signed_by(&key, &self.issuer)?, key))
    }

    fn verifier(
        &self,
        provider: Arc<CryptoProvider>,
    ) -> io::Result<Arc<dyn rustls::server::danger::ClientCertVerifier>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).map_err(invalid)?;
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(invalid)
    }
}

fn invalid(error: impl core::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error.to_string())
}

/// The server's side of handshakes.
#[derive(Clone)]
pub(super) struct Acceptor(TlsAcceptor);

impl Acceptor {
    /// None if the client fails or takes too long.
    pub(super) async fn shake(
        &self,
        stream: TcpStream,
    ) -> Option<(TlsStream<TcpStream>, ClientTls)> {
        let shaken = tokio::time::timeout(HANDSHAKE_MAX, self.0.accept(stream)).await;
        let stream = shaken.ok()?.ok()?;
        let session = stream.get_ref().1;
        let version = session.protocol_version()?.as_str()?;
        let cipher = session.negotiated_cipher_suite()?.suite().as_str()?;
        // rustls marks the suites of 1.3 with the version; others do not.
        let tls = ClientTls::new(
            version.replace("TLSv", "TLS").replace('_', "."),
            cipher.replace("TLS13_", "TLS_"),
        );
        Some((stream, tls))
    }
}
