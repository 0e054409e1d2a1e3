//! Who comes in, for what, how often and for how long.

mod support;

use core::time::Duration;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use messina_relay::{Access, Claims, SigningKey};
use messina_websocket::tunnel::{Reason, Wish};
use support::{OPTIONS, Running, echo_node, protocols};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

fn key() -> SigningKey {
    SigningKey::new(b"an example key of thirty-two bytes").unwrap()
}

fn seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

/// A signed token for these targets.
fn signed(life: u64, targets: &[&str], connections: Option<u32>) -> String {
    let mut claims = Claims::new(seconds() + life);
    claims.targets = targets.iter().map(|target| (*target).to_owned()).collect();
    claims.connections = connections;
    claims.subject = Some(format!("{targets:?}"));
    key().sign(&claims)
}

#[tokio::test]
async fn tokens_are_needed_and_checked() {
    let access = Access::new().bearer("right").signing_key(key());
    let relay = Running::start(&["127.0.0.1:1-65535"], |config| config.access = access).await;
    let expired = {
        let mut claims = Claims::new(seconds() - 1);
        claims.subject = Some("late".to_owned());
        key().sign(&claims)
    };
    let foreign = SigningKey::new(&[9; 32])
        .unwrap()
        .sign(&Claims::new(seconds() + 60));
    for (token, is_right) in [
        ("", false),
        ("wrong", false),
        ("righ", false),
        ("right ", false),
        (&*expired, false),
        (&*foreign, false),
        ("right", true),
        (&*signed(60, &[], None), true),
    ] {
        match relay.mux(token).await {
            Ok(_) => assert!(is_right, "{token}"),
            Err((status, reason)) => {
                assert!(!is_right, "{token}: {reason}");
                assert_eq!(status, 401, "{reason}");
                assert!(!reason.is_empty() && (token.is_empty() || !reason.contains(token)));
            }
        }
    }
    let url = relay.socket("?token=right", "cql.mux.v1", None).await;
    assert_eq!(url.err().unwrap().0, 400, "a token in the URL");
    assert_eq!(relay.metric("refused_total{status=\"401\"}").await, 6);
    relay.stop().await;
}

#[tokio::test]
async fn a_token_for_one_target_cannot_reach_another() {
    let (first, second) = (echo_node().await.to_string(), echo_node().await.to_string());
    let access = Access::new().signing_key(key());
    let alias = format!("two={second}");
    let rules = ["127.0.0.1:1-65535", &alias];
    let relay = Running::start(&rules, |config| config.access = access).await;
    let token = signed(60, &[&first], None);
    let mut client = relay.mux(&token).await.unwrap();
    let id = client.open(&first, Wish::None);
    assert!(client.opened(id).await.is_ok());
    for target in [&*second, "two", &*first.replace("127.0.0.1", "127.0.0.2")] {
        let id = client.open(target, Wish::None);
        assert_eq!(client.opened(id).await.unwrap_err().0, Reason::Forbidden);
        assert_eq!(relay.plain(target, &token).await.err().unwrap().0, 403);
    }
    assert!(relay.plain(&first, &token).await.is_ok());
    // And one for an alias reaches what is behind it by this name only.
    let token = signed(60, &["two"], None);
    let mut client = relay.mux(&token).await.unwrap();
    let id = client.open("two", Wish::None);
    assert!(client.opened(id).await.is_ok());
    let id = client.open(&second, Wish::None);
    assert_eq!(client.opened(id).await.unwrap_err().0, Reason::Forbidden);
    // What the relay does not allow, no token opens.
    let token = signed(60, &["8.8.8.8:9042"], None);
    let mut client = relay.mux(&token).await.unwrap();
    let id = client.open("8.8.8.8:9042", Wish::None);
    assert_eq!(client.opened(id).await.unwrap_err().0, Reason::Forbidden);
    drop(client);
    relay.stop().await;
}

#[tokio::test]
async fn a_token_that_expires_opens_nothing_more() {
    let node = echo_node().await.to_string();
    let access = Access::new().signing_key(key());
    let relay = Running::start(&["127.0.0.1:1-65535"], |config| config.access = access).await;
    let token = signed(1, &[], None);
    let mut client = relay.mux(&token).await.unwrap();
    let id = client.open(&node, Wish::None);
    assert!(client.opened(id).await.is_ok());
    tokio::time::sleep(Duration::from_millis(1200)).await;
    // What is open goes on.
    client.send(id, OPTIONS).await;
    assert_eq!(client.receive(id, OPTIONS.len()).await, OPTIONS);
    let id = client.open(&node, Wish::None);
    let (reason, text) = client.opened(id).await.unwrap_err();
    assert_eq!((reason, &*text), (Reason::Forbidden, "token has expired"));
    assert_eq!(relay.mux(&token).await.err().unwrap().0, 401);
    drop(client);
    relay.stop().await;
}

#[tokio::test]
async fn places_are_counted_by_token_and_by_address() {
    let access = Access::new().bearer("one").bearer("two").signing_key(key());
    let relay = Running::start(&["127.0.0.1:1-65535"], |config| {
        config.access = access;
        config.limits.connections_max = 4;
        config.limits.connections_per_address_max = 4;
        config.limits.connections_per_token_max = 2;
    })
    .await;
    let mine = signed(60, &[], Some(1));
    let first = relay.mux(&mine).await.unwrap();
    assert_eq!(relay.mux(&mine).await.err().unwrap().0, 429);
    drop(first);
    // The place is free once the relay has seen the end.
    let start = Instant::now();
    let again = loop {
        match relay.mux(&mine).await {
            Ok(again) => break again,
            Err((status, _)) => assert_eq!(status, 429),
        }
        assert!(start.elapsed() < support::HANG);
    };
    let kept = [relay.mux("one").await, relay.mux("one").await];
    assert!(kept.iter().all(Result::is_ok));
    assert_eq!(relay.mux("one").await.err().unwrap().0, 429);
    let last = relay.mux("two").await.unwrap();
    let (status, reason) = relay.mux("two").await.err().unwrap();
    assert_eq!(status, 503, "{reason}");
    drop((again, kept, last));
    relay.stop().await;

    let relay = Running::start(&[], |config| config.limits.connections_per_address_max = 1).await;
    let first = relay.mux("").await.unwrap();
    assert_eq!(relay.mux("").await.err().unwrap().0, 429);
    drop(first);
    relay.stop().await;
}

#[tokio::test]
async fn pages_of_other_origins_stay_out() {
    let mine = Some("https://shop.example");
    let other = Some("https://evil.example");
    for (access, token, origin, is_in) in [
        (Access::new(), "", None, true),
        (Access::new(), "", other, false),
        (Access::new().origin("https://shop.example"), "", mine, true),
        (
            Access::new().origin("https://shop.example"),
            "",
            other,
            false,
        ),
        (Access::new().bearer("t"), "t", other, true),
        (
            Access::new().bearer("t").origin("https://shop.example"),
            "t",
            other,
            false,
        ),
        (
            Access::new().bearer("t").origin("https://shop.example"),
            "t",
            mine,
            true,
        ),
        (
            Access::new().bearer("t").origin("https://shop.example"),
            "",
            mine,
            false,
        ),
    ] {
        let relay = Running::start(&[], |config| config.access = access).await;
        let socket = relay
            .socket("", &protocols("cql.mux.v1", token), origin)
            .await;
        assert_eq!(socket.is_ok(), is_in, "{token} {origin:?}");
        drop(socket);
        relay.stop().await;
    }
}

#[tokio::test]
async fn slow_beginnings_and_idle_channels_end() {
    let node = echo_node().await.to_string();
    let relay = Running::start(&["127.0.0.1:1-65535"], |config| {
        config.limits.handshake_timeout = Duration::from_millis(300);
        config.limits.first_bytes_timeout = Duration::from_millis(300);
        config.limits.idle_timeout = Duration::from_millis(700);
    })
    .await;
    // Half a request.
    let mut stream = TcpStream::connect(relay.address).await.unwrap();
    stream
        .write_all(b"GET /cql HTTP/1.1\r\nHost: ")
        .await
        .unwrap();
    let mut rest = Vec::new();
    let start = Instant::now();
    tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut rest)
        .await
        .unwrap();
    assert!(start.elapsed() < Duration::from_secs(5) && rest.is_empty());
    // Nothing, and half a frame.
    for bytes in [&[][..], &OPTIONS[..5]] {
        let mut client = relay.plain(&node, "").await.unwrap();
        client.send(bytes).await;
        assert_eq!(client.closed().await.0, 4000 + Reason::NotCql as u16);
    }
    // CQL, then nothing more; and no channel at all.
    let mut client = relay.mux("").await.unwrap();
    let id = client.open(&node, Wish::None);
    client.send(id, OPTIONS).await;
    assert_eq!(client.closed(id).await.0, Reason::Idle);
    let (code, _) = client.step().await.expect("a close frame");
    assert_eq!(code, 4000 + Reason::Idle as u16);
    relay.stop().await;
}

#[tokio::test]
async fn bytes_a_second_are_kept_to() {
    let node = echo_node().await.to_string();
    let relay = Running::start(&["127.0.0.1:1-65535"], |config| {
        config.limits.bytes_per_second_per_address = Some(100_000);
    })
    .await;
    let mut client = relay.mux("").await.unwrap();
    let id = client.open(&node, Wish::None);
    let bytes = [OPTIONS, &[7; 100_000]].concat();
    let start = Instant::now();
    for _ in 0..2 {
        client.send(id, &bytes).await;
        client.receive(id, bytes.len()).await;
    }
    // 400,000 bytes in both directions, 100,000 of them for nothing.
    let took = start.elapsed();
    assert!(took > Duration::from_millis(2500), "{took:?}");
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert!(relay.metric("throttled_total").await > 0);
    drop(client);
    relay.stop().await;
}

#[tokio::test]
async fn channels_of_one_socket_are_bounded() {
    let node = echo_node().await.to_string();
    let relay = Running::start(&["127.0.0.1:1-65535"], |config| {
        config.limits.channels_max = 2;
    })
    .await;
    let mut client = relay.mux("").await.unwrap();
    let ids: Vec<_> = (0..3).map(|_| client.open(&node, Wish::None)).collect();
    assert!(client.opened(ids[0]).await.is_ok());
    assert!(client.opened(ids[1]).await.is_ok());
    assert_eq!(client.opened(ids[2]).await.unwrap_err().0, Reason::TooMany);
    client.tunnel.release(ids[0]);
    client.flush().await;
    while relay.metric("channels").await > 1 {
        tokio::task::yield_now().await;
    }
    let id = client.open(&node, Wish::None);
    assert!(client.opened(id).await.is_ok());
    drop(client);
    relay.stop().await;
}
