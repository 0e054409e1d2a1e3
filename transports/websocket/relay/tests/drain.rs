//! The end of a relay, and clients that do not read.

mod support;

use core::time::Duration;
use std::time::Instant;

use messina_websocket::tunnel::Wish;
use support::{OPTIONS, Running, echo_node, get};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

#[tokio::test]
async fn quiet_connections_end_at_once_and_hear_why() {
    let node = echo_node().await.to_string();
    let mut relay = Running::start(&["127.0.0.1:1-65535"], |_| {}).await;
    let mut mux = relay.mux("").await.unwrap();
    let id = mux.open(&node, Wish::None);
    mux.send(id, OPTIONS).await;
    assert_eq!(mux.receive(id, OPTIONS.len()).await, OPTIONS);
    let mut plain = relay.plain(&node, "").await.unwrap();
    plain.send(OPTIONS).await;
    assert_eq!(plain.receive(OPTIONS.len()).await, OPTIONS);
    assert!(get(relay.metrics, "/health").await.ends_with("ok\n"));
    let start = Instant::now();
    relay.tell_to_stop();
    let closed = loop {
        if let Some(closed) = mux.step().await {
            break closed;
        }
    };
    assert!(mux.tunnel.is_draining(), "it heard before the end");
    assert_eq!(closed.0, 1012);
    assert_eq!(plain.closed().await.0, 1012);
    drop(mux);
    let drained = relay.drained().await;
    assert_eq!((drained.connections, drained.dropped), (2, 0));
    assert!(start.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn busy_connections_may_finish() {
    let node = echo_node().await.to_string();
    let mut relay = Running::start(&["127.0.0.1:1-65535"], |config| {
        config.limits.drain_timeout = Duration::from_secs(2);
    })
    .await;
    let mut client = relay.mux("").await.unwrap();
    let id = client.open(&node, Wish::None);
    client.send(id, OPTIONS).await;
    assert_eq!(client.receive(id, OPTIONS.len()).await, OPTIONS);
    relay.tell_to_stop();
    let start = Instant::now();
    // Longer than what counts as quiet, without a pause of that length.
    while start.elapsed() < Duration::from_millis(1000) {
        client.send(id, b"work").await;
        assert_eq!(client.receive(id, 4).await, b"work");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(client.tunnel.is_draining());
    assert_eq!(client.tunnel.open(&node, Wish::None), None);
    assert!(tokio::net::TcpStream::connect(relay.address).await.is_err());
    // One that never stops is ended.
    loop {
        if client.tunnel.write(id, b"more").is_ok() {
            client.flush().await;
        }
        if let Some((code, _)) = client.step().await {
            assert_eq!(code, 1012);
            break;
        }
    }
    let took = start.elapsed();
    assert!(took < Duration::from_secs(4), "{took:?}");
    drop(client);
    relay.drained().await;
}

/// A node that takes its time is waited for, and no longer than for its answer.
#[tokio::test]
async fn an_answer_that_is_owed_still_comes() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let node = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut frame = [0; 9];
        stream.read_exact(&mut frame).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1500)).await;
        stream.write_all(b"at last").await.unwrap();
        let _ = stream.read_exact(&mut frame).await;
    });
    let mut relay = Running::start(&["127.0.0.1:1-65535"], |_| {}).await;
    let mut client = relay.plain(&node, "").await.unwrap();
    client.send(OPTIONS).await;
    while relay.metric("bytes_total{to=\"node\"}").await == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    relay.tell_to_stop();
    let start = Instant::now();
    assert_eq!(client.receive(7).await, b"at last");
    assert_eq!(client.closed().await.0, 1012);
    let took = start.elapsed();
    assert!(took < Duration::from_secs(6), "{took:?}");
    relay.drained().await;
}

/// A node that sends without end, and a client that takes nothing: the relay stops reading.
#[tokio::test]
async fn a_slow_reader_holds_up_its_node() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let node = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut frame = [0; 9];
                stream.read_exact(&mut frame).await.unwrap();
                let flood = vec![1; 64 << 10];
                while stream.write_all(&flood).await.is_ok() {}
            });
        }
    });
    let relay = Running::start(&["127.0.0.1:1-65535"], |_| {}).await;
    // Credit for one mebibyte, and no more until it is read.
    let mut client = relay.mux("").await.unwrap();
    let id = client.open(&node, Wish::None);
    client.send(id, OPTIONS).await;
    let mut plain = relay.plain(&node, "").await.unwrap();
    plain.send(OPTIONS).await;
    let carried = "bytes_total{to=\"client\"}";
    let mut before = u64::MAX;
    let start = Instant::now();
    let held = loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = relay.metric(carried).await;
        if now == before && now > 0 {
            break now;
        }
        before = now;
        assert!(start.elapsed() < support::HANG, "it never stops reading");
    };
    // A window for the one, the kernel's buffers for the other.
    assert!(held < 32 << 20, "{held}");
    // And everything is there once it is read.
    assert!(
        client
            .receive(id, 64 << 10)
            .await
            .iter()
            .all(|byte| *byte == 1)
    );
    assert!(plain.receive(1 << 20).await.iter().all(|byte| *byte == 1));
    drop((client, plain));
    relay.stop().await;
}
