//! TLS over the cable: the stack under test dials a rustls server on the host.

use core::net::SocketAddr;
use core::num::NonZeroU16;

use embassy_futures::select::{Either, select, select3};
use messina_core::config::Config;
use messina_core::drive::{Driver, Security, start};
use messina_core::error::TlsFailure;
use messina_core::time::UnixMicros;
use messina_embassy::tls::{Authority as Trusted, TlsLink, TlsMemory, TlsPool, TlsTransport};
use messina_sim::node;
use messina_sim::tcp::{SimServer, TlsOptions as SimTls, TlsPorts};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, date_time_ymd};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::net::TcpListener;

use super::*;
use crate::authority::Authority;
use crate::cancellation::{at_every_poll, cut_short};

type Secure = TlsPool<'static, 2>;

/// The year 2026, and a bit.
fn wall_clock() -> Option<UnixMicros> {
    Some(UnixMicros(1_780_000_000_000_000))
}

fn same(_: &mut CertificateParams) {}

fn der_of(pem: &str) -> Vec<u8> {
    CertificateDer::from_pem_slice(pem.as_bytes())
        .unwrap()
        .to_vec()
}

/// A TLS transport that trusts this authority.
fn secure(
    rig: Rig,
    authority: &Authority,
) -> (TlsTransport<'static>, &'static Pool, &'static Secure) {
    trusting(rig, leak(der_of(&authority.pem)))
}

fn trusting(
    rig: Rig,
    authority: &'static [u8],
) -> (TlsTransport<'static>, &'static Pool, &'static Secure) {
    let mut options = Options::default();
    options.wall_clock = Some(wall_clock);
    options.steering = true;
    let (plain, pool) = transport(rig.near, options);
    let authority = Trusted::from_der(authority).unwrap();
    let memory = leak(TlsMemory::<2>::new());
    let secure: &'static Secure = leak(TlsPool::new(memory, authority));
    (TlsTransport::new(plain, secure), pool, secure)
}

/// Runs a test beside the relay to a server's port and the pool's task.
async fn beside<T>(rig: Rig, pool: &Secure, port: u16, test: impl Future<Output = T>) -> T {
    let mut key = 0_u8;
    let mut source = |into: &mut [u8]| {
        key = key.wrapping_add(1);
        into.fill(key);
        Ok(())
    };
    match select3(relay(rig, port), pool.run(&mut source), test).await {
        embassy_futures::select::Either3::Third(outcome) => outcome,
        _ => unreachable!("relay and task run for ever"),
    }
}

fn to(transport: &TlsTransport<'_>, server: SocketAddr, within: Duration) -> Target {
    let deadline = transport.clock().now().saturating_add(within);
    Target::new(Endpoint::Addr(server), deadline)
}

async fn connect(
    transport: &TlsTransport<'static>,
    server: SocketAddr,
) -> Result<TlsLink<'static>, LinkError> {
    transport.connect(to(transport, server, PATIENCE)).await
}

#[test]
fn tls_keeps_the_link_contract() {
    on_cable(async |rig| {
        let authority = Authority::new();
        let server = authority.echo(&["127.0.0.1"], same, false).await;
        let (transport, pool, secure) = secure(rig, &authority);
        assert_eq!(transport.security(), Security::Tls);
        assert_eq!(transport.steering(), SteeringKind::BestEffortShard);
        beside(rig, secure, server.port(), async {
            let mut target = to(&transport, server, PATIENCE);
            let of = NonZeroU16::new(5).unwrap();
            target.steering = Steering::Shard { shard: 3, of };
            let link = transport.connect(target).await.unwrap();
            assert_eq!(link.source_port().unwrap().get() % 5, 3);
            assert_eq!(secure.free(), 1);
            assert_eq!(link_contract(link).await, Ok(()));
            assert_eq!((secure.free(), pool.free()), (2, 2));
        })
        .await;
    });
}

#[test]
fn certificates_are_verified() {
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
    let mismatch = Some(TlsFailure::NameMismatch);
    // The certificate's name, what is odd about it, the trusted authority, the name asked for.
    let cases = [
        (address, same as fn(&mut _), &authority, None, None),
        (name, same, &authority, Some("NODE.test"), None),
        (
            "*.plant.test",
            same,
            &authority,
            Some("n1.plant.test"),
            None,
        ),
        (
            "*.plant.test",
            same,
            &authority,
            Some("a.n1.plant.test"),
            mismatch,
        ),
        (
            "*.plant.test",
            same,
            &authority,
            Some("plant.test"),
            mismatch,
        ),
        (address, same, &authority, Some(address), None),
        (name, same, &authority, None, mismatch),
        (address, same, &authority, Some(name), mismatch),
        ("127.0.0.2", same, &authority, None, mismatch),
        (address, same, &authority, Some("not a name"), mismatch),
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
    for (at, (names, change, trusted, asked, expected)) in cases.into_iter().enumerate() {
        on_cable(async |rig| {
            let server = authority.echo(&[names], change, false).await;
            let (transport, pool, secure) = secure(rig, trusted);
            beside(rig, secure, server.port(), async {
                let mut target = to(&transport, server, PATIENCE);
                target.server_name = asked.map(Into::into);
                let connected = transport.connect(target).await;
                assert_eq!(
                    connected
                        .err()
                        .map(|error| (error.kind(), error.tls_failure())),
                    expected.map(|failure| (LinkErrorKind::Tls, Some(failure))),
                    "case {at}"
                );
                // The task has the sockets back once it has seen the end.
                settle().await;
                assert_eq!((secure.free(), pool.free()), (2, 2), "case {at}");
            })
            .await;
        });
    }
}

/// Lets all tasks run until they wait.
async fn settle() {
    embassy_time::Timer::after_millis(5).await;
}

#[test]
fn what_does_not_speak_tls_is_refused_and_silence_ends_at_the_deadline() {
    on_cable(async |rig| {
        let authority = Authority::new();
        let (transport, pool, secure) = secure(rig, &authority);
        // A node's refusal of protocol version 22, which is how TLS begins.
        let refusal =
            *b"\x84\0\0\0\0\0\0\0\x31\0\0\0\x0a\0\x2bInvalid or unsupported protocol version: 22";
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = listener.local_addr().unwrap();
        let serve = async {
            let (mut client, _) = listener.accept().await.unwrap();
            client.write_all(&refusal).await.unwrap();
            let (_silent, _) = listener.accept().await.unwrap();
            core::future::pending::<()>().await;
        };
        let test = beside(rig, secure, server.port(), async {
            let plain = connect(&transport, server).await.unwrap_err();
            assert_eq!(plain.kind(), LinkErrorKind::Tls);
            let wait = Duration::from_millis(300);
            let begin = transport.clock().now();
            let silent = transport.connect(to(&transport, server, wait)).await;
            assert_eq!(silent.unwrap_err(), LinkError::TIMED_OUT);
            let took = transport.clock().now().saturating_since(begin);
            assert!((wait..wait * 10).contains(&took), "{took:?}");
            settle().await;
            assert_eq!((secure.free(), pool.free()), (2, 2));
        });
        match select(serve, test).await {
            Either::First(()) => unreachable!("serves for ever"),
            Either::Second(()) => {}
        }
    });
}

#[test]
fn a_connection_whose_task_is_not_polled_ends_at_the_deadline() {
    on_cable(async |rig| {
        let (transport, _, secure) = secure(rig, &Authority::new());
        let server = SocketAddr::from((FAR, PORT));
        let wait = Duration::from_millis(50);
        let connected = transport.connect(to(&transport, server, wait)).await;
        assert_eq!(connected.unwrap_err(), LinkError::TIMED_OUT);
        assert_eq!(secure.free(), 2);
    });
}

#[test]
fn a_dropped_link_frees_its_memory_for_the_next() {
    on_cable(async |rig| {
        let authority = Authority::new();
        let server = authority.echo(&["127.0.0.1"], same, false).await;
        let (transport, pool, secure) = secure(rig, &authority);
        beside(rig, secure, server.port(), async {
            for round in 0..4_u8 {
                let mut first = connect(&transport, server).await.unwrap();
                let second = connect(&transport, server).await.unwrap();
                let third = connect(&transport, server).await;
                assert_eq!(third.unwrap_err(), NO_FREE_SOCKET);
                let sent = [round; 700];
                poll_fn(|cx| first.poll_write(cx, &sent)).await.unwrap();
                // Not answered yet, and not read ever.
                drop((first, second));
            }
            settle().await;
            assert_eq!((secure.free(), pool.free()), (2, 2));
            let mut link = connect(&transport, server).await.unwrap();
            poll_fn(|cx| link.poll_write(cx, b"clean")).await.unwrap();
            let mut read = BytesMut::with_capacity(64);
            poll_fn(|cx| link.poll_read(cx, &mut read)).await.unwrap();
            assert_eq!(read, "clean", "bytes of an earlier connection");
        })
        .await;
    });
}

/// Sends a word and reads it back, then closes.
async fn exchange(transport: &TlsTransport<'static>, server: SocketAddr) {
    let mut link = connect(transport, server).await.unwrap();
    poll_fn(|cx| link.poll_write(cx, b"whole")).await.unwrap();
    let mut read = BytesMut::with_capacity(64);
    poll_fn(|cx| link.poll_read(cx, &mut read)).await.unwrap();
    assert_eq!(read, "whole");
    poll_fn(|cx| link.poll_close(cx)).await.unwrap();
    read.clear();
    assert_eq!(poll_fn(|cx| link.poll_read(cx, &mut read)).await, Ok(0));
}

#[test]
fn connects_and_closes_may_be_dropped_after_any_poll() {
    on_cable(async |rig| {
        let authority = Authority::new();
        let server = authority.echo(&["127.0.0.1"], same, false).await;
        let (transport, pool, secure) = secure(rig, &authority);
        beside(rig, secure, server.port(), async {
            let whole_again = async |polls: u32| {
                settle().await;
                assert_eq!((secure.free(), pool.free()), (2, 2), "after {polls} polls");
            };
            let polls = at_every_poll(async |polls| {
                let connected = cut_short(connect(&transport, server), polls).await;
                let has_ended = connected.map(Result::unwrap).is_some();
                whole_again(polls).await;
                has_ended
            })
            .await;
            assert!(polls > 5, "only {polls} moments of a handshake");
            let polls = at_every_poll(async |polls| {
                let mut link = connect(&transport, server).await.unwrap();
                poll_fn(|cx| link.poll_write(cx, &[7; 900])).await.unwrap();
                let closed = cut_short(poll_fn(|cx| link.poll_close(cx)), polls).await;
                drop(link);
                whole_again(polls).await;
                closed.map(Result::unwrap).is_some()
            })
            .await;
            assert!(polls > 2, "only {polls} moments of a close");
            exchange(&transport, server).await;
        })
        .await;
    });
}

#[test]
fn reads_and_writes_may_be_dropped_after_any_poll() {
    on_cable(async |rig| {
        let authority = Authority::new();
        let server = authority.echo(&["127.0.0.1"], same, false).await;
        let (transport, _, secure) = secure(rig, &authority);
        beside(rig, secure, server.port(), async {
            let mut link = connect(&transport, server).await.unwrap();
            let (mut sent, mut received) = (0, 0);
            for round in 0..2_000_u32 {
                let bytes: Vec<u8> = (sent..sent + 300).map(byte_at).collect();
                let write = poll_fn(|cx| link.poll_write(cx, &bytes));
                if let Some(written) = cut_short(write, round % 3).await {
                    sent += written.unwrap();
                }
                let mut into = BytesMut::with_capacity(1 + round as usize % 300);
                let read = poll_fn(|cx| link.poll_read(cx, &mut into));
                if let Some(read) = cut_short(read, round / 3 % 3).await {
                    assert_eq!(read.unwrap(), into.len());
                }
                for byte in &into {
                    assert_eq!(*byte, byte_at(received), "byte {received}");
                    received += 1;
                }
                if round % 100 == 0 {
                    settle().await;
                }
            }
            while received < sent {
                let mut into = BytesMut::with_capacity(999);
                poll_fn(|cx| link.poll_read(cx, &mut into)).await.unwrap();
                for byte in into {
                    assert_eq!(byte, byte_at(received), "byte {received}");
                    received += 1;
                }
            }
            assert!(sent > 1_000, "only {sent} bytes");
        })
        .await;
    });
}

#[test]
fn a_server_that_ends_or_resets_is_seen() {
    on_cable(async |rig| {
        let authority = Authority::new();
        let (transport, pool, secure) = secure(rig, &authority);
        // Shakes hands, sends a word, and ends: by alert and FIN first, then by FIN alone.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = listener.local_addr().unwrap();
        let acceptor = authority.acceptor(&["127.0.0.1"], same, false);
        let serve = async {
            for is_polite in [true, false] {
                let (client, _) = listener.accept().await.unwrap();
                let mut client = acceptor.accept(client).await.unwrap();
                client.write_all(b"word").await.unwrap();
                if is_polite {
                    client.shutdown().await.unwrap();
                } else {
                    client.flush().await.unwrap();
                    client.get_mut().0.shutdown().await.unwrap();
                }
            }
            core::future::pending::<()>().await;
        };
        let test = beside(rig, secure, server.port(), async {
            for expected in [Ok(0), Err(LinkError::CLOSED_BY_PEER)] {
                let mut link = connect(&transport, server).await.unwrap();
                let mut read = BytesMut::with_capacity(64);
                assert_eq!(poll_fn(|cx| link.poll_read(cx, &mut read)).await, Ok(4));
                for _ in 0..2 {
                    let end = poll_fn(|cx| link.poll_read(cx, &mut read)).await;
                    assert_eq!(end, expected);
                }
                let written = poll_fn(|cx| link.poll_write(cx, b"x")).await;
                assert_eq!(written, Err(LinkError::CLOSED_BY_PEER));
                drop(link);
            }
            settle().await;
            assert_eq!((secure.free(), pool.free()), (2, 2));
        });
        match select(serve, test).await {
            Either::First(()) => unreachable!("waits for ever"),
            Either::Second(()) => {}
        }
    });
}

#[test]
fn a_session_is_encrypted_and_uses_the_port_that_nodes_tell_for_it() {
    on_cable(async |rig| {
        let mut options = node::Options::default();
        options.nodes.truncate(1);
        options.port = 0;
        options.shard_aware_port = None;
        let mut ports = SimTls::made();
        ports.ports = TlsPorts::Beside {
            port: 0,
            shard_aware_port: None,
        };
        let server = SimServer::start_tls(options, ports).await.unwrap();
        let contact_point = server.tls_contacts()[0];
        let authority: &'static [u8] = leak(der_of(server.ca_pem().unwrap()));
        let (transport, pool, secure) = trusting(rig, authority);

        let mut config = Config::mcu();
        config.contact_points.push(Endpoint::Addr(contact_point));
        let (session, driver) = start(config, transport, &mut seed(0)).unwrap();
        let work = async {
            session.ready().await?;
            let result = session.query("SELECT key FROM system.local", ()).await?;
            let key: (String,) = result.single_row()?;
            assert_eq!(key.0, "local");
            session.close().await;
            Ok::<_, messina_core::error::Error>(())
        };
        let both = join(drive(driver), work);
        let ((), outcome) = beside(rig, secure, contact_point.port(), both).await;
        outcome.unwrap();
        settle().await;
        assert_eq!((secure.free(), pool.free()), (2, 2));
        server.stop().await;
    });
}

/// Runs a session in the task that awaits it.
async fn drive<T: Transport>(mut driver: Driver<T>) {
    let mut connections = Vec::new();
    let mut is_done = false;
    poll_fn(|cx| {
        while !is_done {
            match driver.poll_next(cx) {
                Poll::Ready(Some(connection)) => connections.push(connection),
                Poll::Ready(None) => is_done = true,
                Poll::Pending => break,
            }
        }
        connections.retain_mut(|connection| Pin::new(connection).poll(cx).is_pending());
        match is_done && connections.is_empty() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}
