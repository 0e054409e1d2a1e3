//! The link contract over TLS, and everything that a handshake can meet.

#[path = "tls/authority.rs"]
mod authority;

use core::future::poll_fn;
use core::net::SocketAddr;
use core::time::Duration;

use bytes::BytesMut;
use messina_core::drive::{Clock, Endpoint, Link, Security, Target, Transport};
use messina_core::error::{ConfigProblem, ErrorKind, LinkError, LinkErrorKind, TlsFailure};
use messina_core::testing::link_contract;
use messina_core::time::Instant;
use messina_tokio::{TlsOptions, TokioTransport};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair, date_time_ymd};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use authority::Authority;

fn trusted(authority: &Authority) -> TlsOptions {
    TlsOptions::with_ca_pem(&authority.pem).unwrap()
}

fn same(_: &mut CertificateParams) {}

fn target(address: SocketAddr) -> Target {
    Target::new(Endpoint::Addr(address), Instant::FAR_FUTURE)
}

async fn connect(
    options: TlsOptions,
    target: Target,
) -> Result<<TokioTransport as Transport>::Link, LinkError> {
    let transport = TokioTransport::with_tls(options).unwrap();
    assert_eq!(transport.security(), Security::Tls);
    transport.connect(target).await
}

#[tokio::test]
async fn tls_keeps_the_contract_of_links() {
    let authority = Authority::new();
    let server = authority.echo(&["127.0.0.1"], same, false).await;
    let link = connect(trusted(&authority), target(server)).await.unwrap();
    assert!(link.source_port().is_some());
    link_contract(link).await.unwrap();
}

#[tokio::test]
async fn certificates_are_verified() {
    let (authority, other) = (Authority::new(), Authority::new());
    let expired: fn(&mut CertificateParams) = |params| {
        params.not_after = date_time_ymd(2001, 1, 1);
    };
    let early: fn(&mut CertificateParams) = |params| {
        params.not_before = date_time_ymd(4000, 1, 1);
    };
    let for_clients: fn(&mut CertificateParams) = |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    };
    let (address, name) = ("127.0.0.1", "node.test");
    // The certificate's name, what is odd about it, the trusted authority, the name asked for.
    let cases = [
        (address, same as fn(&mut _), &authority, None, None),
        (name, same, &authority, Some(name), None),
        (name, same, &authority, None, Some(TlsFailure::NameMismatch)),
        (
            address,
            same,
            &authority,
            Some(name),
            Some(TlsFailure::NameMismatch),
        ),
        (
            "127.0.0.2",
            same,
            &authority,
            None,
            Some(TlsFailure::NameMismatch),
        ),
        (
            address,
            same,
            &authority,
            Some("not a name"),
            Some(TlsFailure::NameMismatch),
        ),
        (address, same, &other, None, Some(TlsFailure::UnknownIssuer)),
        (
            address,
            expired,
            &authority,
            None,
            Some(TlsFailure::Expired),
        ),
        (
            address,
            early,
            &authority,
            None,
            Some(TlsFailure::NotYetValid),
        ),
        (
            address,
            for_clients,
            &authority,
            None,
            Some(TlsFailure::BadCertificate),
        ),
    ];
    for (at, (names, change, trusted_authority, asked, expected)) in cases.into_iter().enumerate() {
        let server = authority.echo(&[names], change, false).await;
        let mut target = target(server);
        target.server_name = asked.map(Into::into);
        let connected = connect(trusted(trusted_authority), target.clone()).await;
        assert_eq!(
            connected.err().map(|error| error.tls_failure()),
            expected.map(Some),
            "case {at}"
        );
        // Without verification the same are taken, but for a name that is none.
        let unverified = connect(TlsOptions::dangerous_without_verification(), target).await;
        assert_eq!(unverified.is_ok(), asked != Some("not a name"), "case {at}");
    }
}

#[tokio::test]
async fn what_does_not_speak_tls_is_told_apart() {
    // A node's refusal of protocol version 22, which is how TLS begins.
    let refusal =
        *b"\x84\0\0\0\0\0\0\0\x31\0\0\0\x0a\0\x2bInvalid or unsupported protocol version: 22";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plain = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        client.write_all(&refusal).await.unwrap();
        client.shutdown().await.unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
    });
    let error = connect(trusted(&Authority::new()), target(plain)).await;
    assert_eq!(error.unwrap_err(), LinkError::tls(TlsFailure::NotTls));
}

#[tokio::test]
async fn a_silent_peer_is_given_up_at_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let transport = TokioTransport::with_tls(trusted(&Authority::new())).unwrap();
    let wait = Duration::from_millis(50);
    let deadline = transport.clock().now().saturating_add(wait);
    let endpoint = Endpoint::Addr(listener.local_addr().unwrap());
    let connecting = transport.connect(Target::new(endpoint, deadline));
    let connected = tokio::time::timeout(Duration::from_secs(20), connecting).await;
    let error = connected.expect("the deadline is kept").unwrap_err();
    assert_eq!(error, LinkError::TIMED_OUT);
    assert!(transport.clock().now() >= deadline);
}

#[tokio::test]
async fn a_server_may_want_a_certificate_of_ours() {
    let authority = Authority::new();
    let server = authority.echo(&["127.0.0.1"], same, true).await;
    let (certificate, key) = authority.sign(&["client"], |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    });
    let known = trusted(&authority)
        .client_certificate_pem(certificate.pem(), key.serialize_pem())
        .unwrap();
    let link = connect(known, target(server)).await.unwrap();
    link_contract(link).await.unwrap();

    // In TLS 1.3 the refusal comes with the first read.
    let mut link = connect(trusted(&authority), target(server)).await.unwrap();
    let mut bytes = BytesMut::with_capacity(16);
    let read = poll_fn(|cx| link.poll_read(cx, &mut bytes)).await;
    assert_eq!(read, Err(LinkError::tls(TlsFailure::RefusedByPeer)));
    let again = poll_fn(|cx| link.poll_read(cx, &mut bytes)).await;
    assert_eq!(again.unwrap_err().kind(), LinkErrorKind::Tls, "it stays");
}

#[test]
fn useless_certificates_are_refused_at_once() {
    let authority = Authority::new();
    let (certificate, key) = authority.sign(&["client"], same);
    let other_key = KeyPair::generate().unwrap();
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let with = |chain: &str, key: &str| {
        let options = trusted(&authority).client_certificate_pem(chain, key)?;
        TokioTransport::with_tls(options)
    };
    let (certificate, key) = (certificate.pem(), key.serialize_pem());
    assert!(with(&certificate, &key).is_ok());
    for (at, error) in [
        TlsOptions::with_ca_pem("").err(),
        TlsOptions::with_ca_pem("no PEM").err(),
        TlsOptions::with_ca_pem(broken).err(),
        TlsOptions::with_ca_file("/no/such/file").err(),
        with(&certificate, "").err(),
        with("", &key).err(),
        with(&certificate, &other_key.serialize_pem()).err(),
    ]
    .into_iter()
    .enumerate()
    {
        let error = error.unwrap_or_else(|| panic!("case {at} was taken"));
        assert_eq!(
            error.kind(),
            ErrorKind::Config(ConfigProblem::Tls),
            "{error}"
        );
    }
    let options = format!(
        "{:?}",
        trusted(&authority).client_certificate_pem(&certificate, &key)
    );
    assert!(!options.contains("PRIVATE"), "{options}");
}
