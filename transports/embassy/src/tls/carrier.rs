//! The task of one slot: opens the connection that is asked for, shakes hands, and moves bytes
//! between the rings and the records until one side ends it. Both directions move at once, so that
//! requests go out while answers come in.

use core::cell::RefCell;
use core::future::poll_fn;

use embassy_futures::select::{Either, select};
use embassy_time::{Duration, with_deadline, with_timeout};
use embedded_io_async::Write as _;
use embedded_tls::alert::AlertDescription;
use embedded_tls::{
    Aes128GcmSha256, CertificateEntryRef, CertificateRef, CertificateVerifyRef, CryptoProvider,
    CryptoRng, CryptoRngCore, FlushPolicy, Sha256, SignatureScheme, TlsCipherSuite, TlsConfig,
    TlsConnection, TlsContext, TlsError, TlsReader, TlsVerifier, TlsWriter,
};
use messina_core::drive::Clock as _;
use messina_core::error::{LinkError, LinkErrorKind, TlsFailure};
use p256::ecdsa::signature::Verifier as _;
use p256::ecdsa::{DerSignature, Signature, VerifyingKey};
use rand_core_06::RngCore;
use sha2_010::Digest as _;

use super::certificate::{Authority, PeerName};
use super::slot::{Request, Slot};
use super::stream::Stream;
use crate::entropy::Entropy;

/// The source of entropy gave none for the keys of a connection.
pub const NO_ENTROPY: LinkError = LinkError::with_os_code(LinkErrorKind::Other, 4);

/// How long the alert that ends a connection may wait for room in the stack.
const ALERT_GRACE: Duration = Duration::from_millis(500);

/// Bytes that are copied at once between ring and record.
const CHUNK_LEN: usize = 256;

/// Serves one slot for ever.
pub(super) async fn serve(
    slot: &Slot<'_>,
    authority: &Authority<'_>,
    source: &RefCell<&mut dyn Entropy>,
) {
    loop {
        let request = slot.request().await;
        let carried = carry(slot, request, authority, source);
        let ended = match select(carried, slot.abandoned()).await {
            Either::First(ended) => ended,
            Either::Second(()) => Ok(()),
        };
        slot.ended(ended);
    }
}

#[expect(
    clippy::await_holding_refcell_ref,
    reason = "the records are borrowed here and nowhere else"
)]
async fn carry<'d>(
    slot: &Slot<'d>,
    request: Request<'d>,
    authority: &Authority<'_>,
    source: &RefCell<&mut dyn Entropy>,
) -> Result<(), LinkError> {
    let Request {
        connecting,
        peer: name,
        deadline,
        clock,
    } = request;
    let mut key = [0; 32];
    let drawn = source.borrow_mut().fill(&mut key);
    drawn.map_err(|_| NO_ENTROPY)?;
    let stream = Stream::new(connecting.await?);

    let mut records = slot.records.borrow_mut();
    let records = &mut *records;
    let mut connection: TlsConnection<'_, _, Aes128GcmSha256> =
        TlsConnection::new(&stream, records.read, records.write);
    connection.set_flush_policy(FlushPolicy::Relaxed);
    let now = clock
        .wall_clock()
        .and_then(|micros| u64::try_from(micros.0 / 1_000_000).ok());
    let mut peer = Peer::new(authority, name.as_peer_name(), now, key);
    let mut config = TlsConfig::new();
    // Servers refuse other texts, and no certificate is for one.
    let in_host_names = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    if let PeerName::Dns(name) = peer.name
        && name.bytes().all(in_host_names)
    {
        config = config.with_server_name(name);
    }
    let opening = connection.open(TlsContext::new(&config, &mut peer));
    match with_deadline(deadline, opening).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            return Err(peer
                .failure
                .map_or_else(|| failed(error, &stream), LinkError::tls));
        }
        Err(_) => return Err(LinkError::TIMED_OUT),
    }
    // A server may leave its certificate out; embedded-tls then asks for none.
    if !peer.is_proven {
        return Err(LinkError::tls(TlsFailure::BadCertificate));
    }

    stream.is_open();
    slot.opened(stream.source_port());
    let (reader, writer) = connection.split();
    let ended = match select(download(slot, reader), upload(slot, writer)).await {
        Either::First(ended) | Either::Second(ended) => ended,
    };
    if let Err(error) = ended {
        return Err(failed(error, &stream));
    }
    let _ = with_timeout(ALERT_GRACE, connection.close()).await;
    stream.close().await
}

/// From the peer to the owner, until the peer ends it.
async fn download<'d>(
    slot: &Slot<'_>,
    mut reader: TlsReader<'_, &Stream<'d>, Aes128GcmSha256>,
) -> Result<(), TlsError> {
    loop {
        let mut arrived = match reader.read_buffered().await {
            Ok(arrived) => arrived,
            Err(TlsError::ConnectionClosed) => {
                slot.closed_by_peer();
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        while !arrived.is_empty() {
            let len = poll_fn(|cx| slot.poll_arrived(cx, arrived.peek_all())).await;
            arrived.pop(len);
        }
    }
}

/// From the owner to the peer, until the owner ends it.
async fn upload<'d>(
    slot: &Slot<'_>,
    mut writer: TlsWriter<'_, &Stream<'d>, Aes128GcmSha256>,
) -> Result<(), TlsError> {
    let mut chunk = [0; CHUNK_LEN];
    loop {
        let len = poll_fn(|cx| slot.poll_outgoing(cx, &mut chunk)).await;
        let mut rest = chunk.get(..len).unwrap_or_default();
        if rest.is_empty() {
            return Ok(());
        }
        while !rest.is_empty() {
            let written = writer.write(rest).await?;
            rest = rest.get(written..).unwrap_or_default();
        }
        if !slot.has_outgoing() {
            writer.flush().await?;
        }
    }
}

/// What embedded-tls says, in core's words.
fn failed(error: TlsError, stream: &Stream<'_>) -> LinkError {
    if let Some(error) = stream.error() {
        return error;
    }
    LinkError::tls(match error {
        TlsError::InvalidSignature | TlsError::InvalidCertificate => TlsFailure::BadCertificate,
        TlsError::InvalidCipherSuite
        | TlsError::InvalidSupportedVersions
        | TlsError::InvalidKeyShare
        | TlsError::HandshakeAborted(
            _,
            AlertDescription::HandshakeFailure
            | AlertDescription::ProtocolVersion
            | AlertDescription::InsufficientSecurity,
        ) => TlsFailure::NothingInCommon,
        TlsError::HandshakeAborted(..) => TlsFailure::RefusedByPeer,
        TlsError::InvalidRecord | TlsError::UnknownContentType | TlsError::InsufficientSpace => {
            TlsFailure::NotTls
        }
        _ => return LinkError::new(LinkErrorKind::Tls),
    })
}

/// What embedded-tls asks about the peer and of us.
struct Peer<'a> {
    authority: &'a Authority<'a>,
    name: PeerName<'a>,
    now: Option<u64>,
    generator: Generator,
    /// The certificate's key and all that was said up to it, once the certificate was checked.
    shown: Option<(VerifyingKey, Sha256)>,
    /// The peer has signed with that key.
    is_proven: bool,
    failure: Option<TlsFailure>,
}

impl<'a> Peer<'a> {
    fn new(
        authority: &'a Authority<'a>,
        name: PeerName<'a>,
        now: Option<u64>,
        key: [u8; 32],
    ) -> Self {
        Self {
            authority,
            name,
            now,
            generator: Generator { key, count: 0 },
            shown: None,
            is_proven: false,
            failure: None,
        }
    }
}

impl CryptoProvider for Peer<'_> {
    type CipherSuite = Aes128GcmSha256;
    type Signature = DerSignature;

    fn rng(&mut self) -> impl CryptoRngCore {
        &mut self.generator
    }

    fn verifier(&mut self) -> Result<&mut impl TlsVerifier<Aes128GcmSha256>, TlsError> {
        Ok(self)
    }
}

impl TlsVerifier<Aes128GcmSha256> for Peer<'_> {
    fn set_hostname_verification(&mut self, _name: &str) -> Result<(), TlsError> {
        Ok(())
    }

    fn verify_certificate(
        &mut self,
        transcript: &<Aes128GcmSha256 as TlsCipherSuite>::Hash,
        chain: CertificateRef<'_>,
    ) -> Result<(), TlsError> {
        let checked = match chain.entries.first() {
            Some(CertificateEntryRef::X509(der)) => self.authority.check(der, &self.name, self.now),
            _ => Err(TlsFailure::BadCertificate),
        };
        match checked {
            Ok(key) => {
                self.shown = Some((key, transcript.clone()));
                Ok(())
            }
            Err(failure) => {
                self.failure = Some(failure);
                Err(TlsError::InvalidCertificate)
            }
        }
    }

    fn verify_signature(&mut self, verify: CertificateVerifyRef<'_>) -> Result<(), TlsError> {
        const CONTEXT: &[u8] = b"TLS 1.3, server CertificateVerify\0";
        let (key, transcript) = self.shown.take().ok_or(TlsError::InvalidCertificate)?;
        let is_known = verify.signature_scheme == SignatureScheme::EcdsaSecp256r1Sha256;
        // RFC 8446, section 4.4.3: 64 spaces, the context, and the hash of what was said.
        let mut signed = [b' '; 64 + CONTEXT.len() + 32];
        let tail = CONTEXT.iter().copied().chain(transcript.finalize());
        signed
            .iter_mut()
            .skip(64)
            .zip(tail)
            .for_each(|(to, from)| *to = from);
        let signature = Signature::from_der(verify.signature);
        let is_theirs = signature.is_ok_and(|given| key.verify(&signed, &given).is_ok());
        if !is_known || !is_theirs {
            return Err(TlsError::InvalidSignature);
        }
        self.is_proven = true;
        Ok(())
    }
}

/// The numbers of one handshake: SHA-256 of a key of true randomness and a counter. The key is
/// drawn for each handshake, so none tells anything of another.
struct Generator {
    key: [u8; 32],
    count: u64,
}

impl RngCore for Generator {
    fn next_u32(&mut self) -> u32 {
        rand_core_06::impls::next_u32_via_fill(self)
    }

    fn next_u64(&mut self) -> u64 {
        rand_core_06::impls::next_u64_via_fill(self)
    }

    fn fill_bytes(&mut self, into: &mut [u8]) {
        for chunk in into.chunks_mut(32) {
            let block = Sha256::new()
                .chain_update(self.key)
                .chain_update(self.count.to_be_bytes())
                .finalize();
            self.count = self.count.wrapping_add(1);
            chunk
                .iter_mut()
                .zip(block)
                .for_each(|(to, from)| *to = from);
        }
    }

    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), rand_core_06::Error> {
        self.fill_bytes(into);
        Ok(())
    }
}

impl CryptoRng for Generator {}

#[cfg(test)]
mod tests {
    use super::*;

    /// embedded-tls goes on without a certificate; and it must not be asked for one that never came.
    #[test]
    fn a_signature_without_a_certificate_proves_nothing() {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["a.test".into()]).unwrap();
        let der = params.self_signed(&key).unwrap().der().to_vec();
        let authority = Authority::from_der(&der).unwrap();
        let mut peer = Peer::new(&authority, PeerName::Dns("a.test"), None, [1; 32]);
        let signed = CertificateVerifyRef {
            signature_scheme: SignatureScheme::EcdsaSecp256r1Sha256,
            signature: &[0x30, 0],
        };
        assert!(peer.verify_signature(signed).is_err());
        assert!(!peer.is_proven);

        let mut chain = CertificateRef::with_context(&[]);
        assert!(peer.verify_certificate(&Sha256::new(), chain).is_err());
        chain = CertificateRef::with_context(&[]);
        chain.add(CertificateEntryRef::X509(&der)).unwrap();
        assert!(peer.verify_certificate(&Sha256::new(), chain).is_ok());
        assert!(!peer.is_proven, "anyone has the certificate");
        let forged = CertificateVerifyRef {
            signature_scheme: SignatureScheme::EcdsaSecp256r1Sha256,
            signature: &[0x30, 6, 2, 1, 1, 2, 1, 1],
        };
        assert!(peer.verify_signature(forged).is_err());
        assert!(!peer.is_proven);
    }

    #[test]
    fn handshakes_with_different_keys_have_nothing_in_common() {
        let mut blocks = Vec::new();
        for key in 0..8 {
            let mut generator = Generator {
                key: [key; 32],
                count: 0,
            };
            let mut bytes = [0; 70];
            generator.fill_bytes(&mut bytes);
            blocks.extend(bytes.chunks_exact(32).map(<[u8]>::to_vec));
            blocks.push(generator.next_u64().to_be_bytes().to_vec());
        }
        let len = blocks.len();
        blocks.sort();
        blocks.dedup();
        assert_eq!(blocks.len(), len);
    }
}
