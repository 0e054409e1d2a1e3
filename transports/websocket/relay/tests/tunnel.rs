//! Bytes through both forms of the tunnel: whole, in order, both ways at once, to their ends.

mod support;

use messina_websocket::tunnel::{Reason, Wish};
use support::{HANG, OPTIONS, Running, echo_node};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

#[tokio::test]
async fn plain_form_carries_bytes_both_ways() {
    let node = echo_node().await;
    let relay = Running::start(&["127.0.0.1:1-65535"], |_| {}).await;
    let mut client = relay.plain(&node.to_string(), "").await.unwrap();
    client.send(OPTIONS).await;
    assert_eq!(client.receive(OPTIONS.len()).await, OPTIONS);
    for len in [1, 1000, 1025, 16 << 10, 300 << 10] {
        let bytes = payload(len);
        client.send(&bytes).await;
        assert!(client.receive(len).await == bytes, "{len}");
    }
    drop(client);
    relay.stop().await;
}

#[tokio::test]
async fn multiplexed_form_carries_many_connections() {
    let node = echo_node().await.to_string();
    let relay = Running::start(&["127.0.0.1:1-65535"], |_| {}).await;
    let mut client = relay.mux("").await.unwrap();
    let ids: Vec<_> = (0..20).map(|_| client.open(&node, Wish::None)).collect();
    for id in &ids {
        // Early data: before the relay has said that it is open.
        client.send(*id, OPTIONS).await;
    }
    for id in &ids {
        assert_eq!(client.receive(*id, OPTIONS.len()).await, OPTIONS);
    }
    let bytes = payload(60_000);
    for id in &ids {
        client.send(*id, &bytes).await;
    }
    for id in &ids {
        assert!(client.receive(*id, bytes.len()).await == bytes);
    }
    assert_eq!(relay.metric("channels").await, 20);
    drop(client);
    relay.stop().await;
}

#[tokio::test]
async fn each_direction_ends_for_itself() {
    let node = echo_node().await.to_string();
    let relay = Running::start(&["127.0.0.1:1-65535"], |_| {}).await;
    let mut client = relay.mux("").await.unwrap();
    let id = client.open(&node, Wish::None);
    let bytes = [OPTIONS, &payload(200_000)].concat();
    client.send(id, &bytes[..100_000]).await;
    assert!(client.receive(id, 100_000).await == bytes[..100_000]);
    client.send(id, &bytes[100_000..]).await;
    client.tunnel.finish(id);
    // What the node still has to say comes after the client has finished.
    let rest = bytes.len() - 100_000;
    assert!(client.receive(id, rest).await == bytes[100_000..]);
    let mut piece = bytes::BytesMut::new();
    while client.tunnel.read(id, &mut piece) != Ok(Some(0)) {
        assert_eq!(client.step().await, None);
    }
    assert_eq!(relay.metric("channels").await, 0);
    drop(client);
    relay.stop().await;
}

#[tokio::test]
async fn a_node_that_ends_closes_the_plain_form() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let node = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut frame = [0; 9];
        stream.read_exact(&mut frame).await.unwrap();
        stream.write_all(b"last words").await.unwrap();
    });
    let relay = Running::start(&["127.0.0.1:1-65535"], |_| {}).await;
    let mut client = relay.plain(&node, "").await.unwrap();
    client.send(OPTIONS).await;
    assert_eq!(client.receive(10).await, b"last words");
    assert_eq!(client.closed().await.0, 1000);
    relay.stop().await;
}

#[tokio::test]
async fn failures_of_the_node_have_their_reasons() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = listener.local_addr().unwrap().to_string();
    drop(listener);
    let relay = Running::start(&["127.0.0.1:1-65535", "no.such.name.invalid:9042"], |_| {}).await;
    let mut client = relay.mux("").await.unwrap();
    let refused = client.open(&nobody, Wish::None);
    let unknown = client.open("no.such.name.invalid:9042", Wish::None);
    let (reason, _) = client.opened(refused).await.unwrap_err();
    assert_eq!(reason, Reason::Refused);
    let (reason, _) = client.opened(unknown).await.unwrap_err();
    assert_eq!(reason, Reason::Resolve);
    let client = relay.plain(&nobody, "").await.unwrap();
    let (code, reason) = client.closed().await;
    assert_eq!(code, 4000 + Reason::Refused as u16, "{reason}");
    relay.stop().await;
}

#[tokio::test]
async fn a_wished_shard_is_a_source_port() {
    let node = echo_node().await.to_string();
    let relay = Running::start(&["127.0.0.1:1-65535"], |_| {}).await;
    let mut client = relay.mux("").await.unwrap();
    for of in [1_u16, 3, 8, 64] {
        for shard in [0, of / 2, of - 1] {
            let of = core::num::NonZeroU16::new(of).unwrap();
            let id = client.open(&node, Wish::Shard { shard, of });
            let port = client.opened(id).await.unwrap();
            assert_eq!(port % of, shard);
            assert!(port >= 49_152);
        }
    }
    drop(client);
    relay.stop().await;
}

#[tokio::test]
async fn only_cql_gets_through() {
    let relay = Running::start(&["127.0.0.1:1-65535"], |_| {}).await;
    let node = echo_node().await.to_string();
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"SSH-2.0-x\r\n",
        b"*1\r\n$4\r\nPING\r\n",
        &[0x16, 3, 1, 2, 0, 1, 0],
        // QUERY as the first frame.
        &[4, 0, 0, 1, 7, 0, 0, 0, 4, 1, 2, 3, 4],
    ] {
        let mut client = relay.plain(&node, "").await.unwrap();
        client.send(bytes).await;
        let (code, reason) = client.closed().await;
        assert_eq!(code, 4000 + Reason::NotCql as u16, "{reason}");
        let mut client = relay.mux("").await.unwrap();
        let id = client.open(&node, Wish::None);
        client.send(id, bytes).await;
        assert_eq!(client.closed(id).await.0, Reason::NotCql);
    }
    assert_eq!(relay.metric("bytes_total{to=\"node\"}").await, 0);
    relay.stop().await;
}

#[tokio::test]
async fn rules_of_the_tunnel_are_kept() {
    use futures_util::{SinkExt, StreamExt};
    use tokio_tungstenite::tungstenite::Message;
    let relay = Running::start(&["127.0.0.1:1-65535"], |_| {}).await;
    for (message, expected) in [
        (Message::Text("hello".into()), 1003),
        (Message::Binary(vec![99; 7].into()), 4100),
        (Message::Binary(vec![0; (1 << 20) + 1].into()), 1009),
    ] {
        let mut client = relay.mux("").await.unwrap();
        client.socket.send(message).await.unwrap();
        let closed = tokio::time::timeout(HANG, client.socket.next()).await;
        match closed.unwrap() {
            Some(Ok(Message::Close(Some(frame)))) => {
                assert_eq!(u16::from(frame.code), expected);
                assert!(!frame.reason.is_empty());
            }
            other => panic!("{other:?}"),
        }
    }
    relay.stop().await;
}
