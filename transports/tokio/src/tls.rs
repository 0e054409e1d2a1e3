//! TLS by rustls: whom to trust, who we are, and the handshake on an open socket.
//!
//! Certificates are verified unless a constructor whose name begins with `dangerous` was used. A
//! node is expected to have a certificate for the address that it is reached at, because that is
//! all the cluster tells about it; [`Config::server_name`](messina_core::config::Config::server_name)
//! asks for a name instead. Types of rustls stay out of the interface.

use core::fmt;
use core::net::IpAddr;
use std::io;
use std::path::Path;
use std::sync::Arc;

use messina_core::error::{ConfigProblem, Error, ErrorKind, LinkError, LinkErrorKind, TlsFailure};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, InvalidMessage, RootCertStore,
    SignatureScheme,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Whom to trust, and who we are.
#[derive(Debug)]
pub struct TlsOptions {
    trust: Trust,
    identity: Option<Identity>,
}

enum Trust {
    Roots(RootCertStore),
    Anybody,
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Roots(roots) => write!(f, "Roots({})", roots.len()),
            Self::Anybody => f.write_str("Anybody"),
        }
    }
}

struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("chain", &self.chain.len())
            .finish_non_exhaustive()
    }
}

impl TlsOptions {
    /// Trusts the certificates in a PEM text, and what they have signed. Fails when there is none
    /// in it or one cannot be read.
    pub fn with_ca_pem(pem: impl AsRef<[u8]>) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(pem.as_ref())? {
            roots
                .add(certificate)
                .map_err(|error| unusable(&format_args!("a certificate authority: {error}")))?;
        }
        Ok(Self::new(Trust::Roots(roots)))
    }

    /// The same from a file.
    pub fn with_ca_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::with_ca_pem(read(path.as_ref())?)
    }

    /// Trusts the public certificate authorities, as browsers do.
    #[cfg(feature = "webpki-roots")]
    pub fn with_public_roots() -> Self {
        let roots = webpki_roots::TLS_SERVER_ROOTS.iter().cloned();
        Self::new(Trust::Roots(roots.collect()))
    }

    /// Encrypts and verifies nothing: whoever sits between can read and change everything. For
    /// experiments only.
    pub const fn dangerous_without_verification() -> Self {
        Self::new(Trust::Anybody)
    }

    const fn new(trust: Trust) -> Self {
        let identity = None;
        Self { trust, identity }
    }

    /// Shows nodes that ask for it a certificate of ours: the chain, ours first, and its key, both
    /// PEM texts.
    pub fn client_certificate_pem(
        mut self,
        chain: impl AsRef<[u8]>,
        key: impl AsRef<[u8]>,
    ) -> Result<Self, Error> {
        let chain = certificates(chain.as_ref())?;
        let key = PrivateKeyDer::from_pem_slice(key.as_ref())
            .map_err(|error| unusable(&format_args!("a private key: {error}")))?;
        self.identity = Some(Identity { chain, key });
        Ok(self)
    }

    /// The same from files.
    pub fn client_certificate_files(
        self,
        chain: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Self, Error> {
        self.client_certificate_pem(read(chain.as_ref())?, read(key.as_ref())?)
    }
}

impl Clone for TlsOptions {
    fn clone(&self) -> Self {
        let trust = match &self.trust {
            Trust::Roots(roots) => Trust::Roots(roots.clone()),
            Trust::Anybody => Trust::Anybody,
        };
        let identity = self.identity.as_ref().map(|identity| Identity {
            chain: identity.chain.clone(),
            key: identity.key.clone_key(),
        });
        Self { trust, identity }
    }
}

/// The side of a client, ready to be used for any number of sockets, which share its cache of
/// sessions to resume.
#[derive(Clone)]
pub(crate) struct Handshake {
    connector: TlsConnector,
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handshake").finish_non_exhaustive()
    }
}

impl Handshake {
    pub(crate) fn new(options: TlsOptions) -> Result<Self, Error> {
        let provider = provider();
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?;
        let builder = match options.trust {
            Trust::Roots(roots) => builder.with_root_certificates(roots),
            Trust::Anybody => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(TrustAnybody(provider))),
        };
        let config = match options.identity {
            Some(Identity { chain, key }) => builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| unusable(&format_args!("the certificate of ours: {error}")))?,
            None => builder.with_no_client_auth(),
        };
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Self { connector })
    }

    /// Makes the socket a secure one, to a peer that is `name` or, without one, `address`.
    pub(crate) async fn shake(
        &self,
        stream: TcpStream,
        address: IpAddr,
        name: Option<&str>,
    ) -> Result<TlsStream<TcpStream>, LinkError> {
        let peer = match name {
            Some(name) => ServerName::try_from(name.to_owned())
                .map_err(|_| LinkError::tls(TlsFailure::NameMismatch))?,
            None => ServerName::from(address),
        };
        let shaken = self.connector.connect(peer, stream).await;
        shaken.map_err(|error| crate::link::link_error(&error))
    }
}

/// The cryptography chosen by feature; the process-wide default of rustls is left alone.
fn provider() -> Arc<CryptoProvider> {
    #[cfg(feature = "tls-aws-lc")]
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    #[cfg(not(feature = "tls-aws-lc"))]
    let provider = rustls::crypto::ring::default_provider();
    Arc::new(provider)
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err(unusable(&"no certificate in the PEM text")),
        Ok(found) => Ok(found),
        Err(error) => Err(unusable(&format_args!("a certificate: {error}"))),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|error| unusable(&format_args!("{}: {error}", path.display())))
}

fn unusable(what: &dyn fmt::Display) -> Error {
    Error::with_text(ErrorKind::Config(ConfigProblem::Tls), what.to_string())
}

/// What rustls said, if the error is one of its own.
pub(crate) fn link_error(error: &io::Error) -> Option<LinkError> {
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    let failure = match error {
        rustls::Error::InvalidCertificate(problem) => certificate_failure(problem),
        rustls::Error::InvalidMessage(
            InvalidMessage::InvalidContentType
            | InvalidMessage::UnknownProtocolVersion
            | InvalidMessage::MessageTooLarge,
        ) => TlsFailure::NotTls,
        rustls::Error::AlertReceived(_) => TlsFailure::RefusedByPeer,
        rustls::Error::PeerIncompatible(_) => TlsFailure::NothingInCommon,
        _ => return Some(LinkError::new(LinkErrorKind::Tls)),
    };
    Some(LinkError::tls(failure))
}

fn certificate_failure(problem: &CertificateError) -> TlsFailure {
    match problem {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsFailure::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            TlsFailure::NotYetValid
        }
        // A trusted authority has the issuer's name, but not its key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            TlsFailure::UnknownIssuer
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            TlsFailure::NameMismatch
        }
        _ => TlsFailure::BadCertificate,
    }
}

/// Takes any certificate; checks signatures all the same, so that the peer at least has the key of
/// what it shows.
#[derive(Debug)]
struct TrustAnybody(Arc<CryptoProvider>);

impl ServerCertVerifier for TrustAnybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
