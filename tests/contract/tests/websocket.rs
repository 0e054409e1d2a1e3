//! The link contract through WebSockets, plain and as a tunnel; what the far end can say; and case W1
//! of the failures seen in the field: messages are a byte stream in order.

#[path = "websocket/endpoint.rs"]
mod endpoint;

use core::future::poll_fn;
use core::net::SocketAddr;
use core::num::NonZeroU16;
use core::task::Poll;
use core::time::Duration;

use bytes::{Bytes, BytesMut};
use endpoint::{Cut, Endpoint, Manner, bridge, echo, echo_tunnel};
use futures_util::{SinkExt, StreamExt};
use messina_core::drive::{self, Link, Steering, Target, Transport};
use messina_core::error::{ErrorKind, LinkError, LinkErrorKind};
use messina_core::testing::link_contract;
use messina_core::time::Instant;
use messina_sim::node::Options;
use messina_sim::tcp::SimServer;
use messina_tokio::Config;
use messina_websocket::tokio::{Protocol, Relay, WebSocketLink, WebSocketTransport, connect};
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

fn plain(endpoint: &Endpoint) -> WebSocketTransport {
    let relay = Relay::new(&endpoint.url()).unwrap();
    WebSocketTransport::new(relay.protocol(Protocol::Cql)).unwrap()
}

fn target() -> Target {
    let endpoint = drive::Endpoint::Name {
        host: "node".into(),
        port: 9042,
    };
    Target::new(endpoint, Instant::FAR_FUTURE)
}

async fn read(link: &mut WebSocketLink) -> Result<Vec<u8>, LinkError> {
    let mut into = BytesMut::with_capacity(1 << 17);
    poll_fn(|cx| link.poll_read(cx, &mut into)).await?;
    Ok(into.to_vec())
}

#[tokio::test]
async fn plain_links_keep_the_contract() {
    let endpoint = Endpoint::start(Manner::First, echo).await;
    let mut target = target();
    let of = NonZeroU16::new(8).unwrap();
    target.steering = Steering::Shard { shard: 3, of };
    let relay = Relay::new(&endpoint.url()).unwrap().protocol(Protocol::Cql);
    let transport = WebSocketTransport::new(relay.token("a.b?")).unwrap();
    link_contract(transport.connect(target).await.unwrap())
        .await
        .unwrap();
    let asked = &endpoint.asked()[0];
    assert_eq!(asked.uri, "/cql?target=node:9042&shard=3&of=8");
    assert_eq!(asked.protocols, ["cql", "token.YS5iPw"]);
}

#[tokio::test]
async fn channels_keep_the_contract_over_one_socket() {
    let endpoint = Endpoint::start(Manner::First, echo_tunnel).await;
    let relay = Relay::new(&endpoint.url()).unwrap();
    let (mux, pump) = WebSocketTransport::new(relay).unwrap().into_mux();
    let pump = tokio::spawn(pump);
    let links = [
        mux.connect(target()),
        mux.connect(target()),
        mux.connect(target()),
    ];
    let contracts =
        links.map(|link| tokio::spawn(async { link_contract(link.await.unwrap()).await }));
    for contract in contracts {
        contract.await.unwrap().unwrap();
    }
    let asked = endpoint.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(
        (&*asked[0].uri, &*asked[0].protocols[0]),
        ("/cql", "cql.mux.v1")
    );
    drop(mux);
    let ended = tokio::time::timeout(Duration::from_secs(5), pump).await;
    ended.expect("the pump ends with its mux").unwrap();
}

#[tokio::test]
async fn endpoints_without_sub_protocols_carry_plain_links() {
    let endpoint = Endpoint::start(Manner::Bare, echo).await;
    let transport = plain(&endpoint);
    for _ in 0..2 {
        let link = transport.connect(target()).await.unwrap();
        link_contract(link).await.unwrap();
    }
    let protocols: Vec<usize> = endpoint
        .asked()
        .iter()
        .map(|asked| asked.protocols.len())
        .collect();
    assert_eq!(protocols, [1, 0, 0], "it is asked once");

    let relay = Relay::new(&endpoint.url()).unwrap();
    let tunnel = WebSocketTransport::new(relay).unwrap();
    let error = tunnel.connect(target()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "link failed: no common sub-protocol (code 1002)"
    );
}

#[tokio::test]
async fn what_a_relay_says_is_in_the_error() {
    let table = [
        (
            401,
            "connection refused: the relay wants a valid token (code 401)",
        ),
        (
            403,
            "connection refused: not allowed by the relay (code 403)",
        ),
        (
            429,
            "connection refused: too many connections at the relay (code 429)",
        ),
        (
            503,
            "connection refused: the relay is full or about to stop (code 503)",
        ),
        (
            500,
            "connection refused: no WebSocket at this address (code 500)",
        ),
    ];
    for (status, text) in table {
        let endpoint = Endpoint::start(Manner::Status(status), echo).await;
        let error = plain(&endpoint).connect(target()).await.unwrap_err();
        assert_eq!(error.to_string(), text);
        // And in what a whole session that cannot be made tells.
        let relay = Relay::new(&endpoint.url()).unwrap();
        let mut config = Config::server();
        config.add_contact_points("node:9042").unwrap();
        config.timeouts.connect = Duration::from_millis(300);
        let error = connect(config, relay).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Link(_)), "{error:?}");
        assert!(error.to_string().contains(text), "{error}");
    }
    let table = [
        (1000, Ok(())),
        (1001, Ok(())),
        (
            4006,
            Err((
                LinkErrorKind::Refused,
                "connection refused: target not allowed by the relay (code 4006)",
            )),
        ),
        (
            4009,
            Err((
                LinkErrorKind::ClosedByPeer,
                "closed by peer: nothing moved for too long (code 4009)",
            )),
        ),
        (
            1011,
            Err((
                LinkErrorKind::ClosedByPeer,
                "closed by peer: fault of the relay (code 1011)",
            )),
        ),
        (
            3999,
            Err((
                LinkErrorKind::ClosedByPeer,
                "closed by peer: closed by the relay (code 3999)",
            )),
        ),
    ];
    for (code, expected) in table {
        let endpoint = Endpoint::start(Manner::First, move |mut socket| async move {
            let reason = "why".into();
            let close = CloseFrame {
                code: code.into(),
                reason,
            };
            let last = Message::Binary(Bytes::from_static(b"last"));
            socket.send(last).await.unwrap();
            socket.close(Some(close)).await.unwrap();
            while let Some(Ok(_)) = socket.next().await {}
        })
        .await;
        let mut link = plain(&endpoint).connect(target()).await.unwrap();
        assert_eq!(read(&mut link).await.unwrap(), b"last");
        for _ in 0..2 {
            match (read(&mut link).await, expected) {
                (Ok(bytes), Ok(())) => assert_eq!(bytes, b""),
                (Err(error), Err((kind, text))) => {
                    assert_eq!((error.kind(), &*error.to_string()), (kind, text));
                }
                other => panic!("{code}: {other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn a_text_message_is_a_protocol_error_and_closes() {
    let (told, code) = oneshot::channel();
    let told = std::sync::Mutex::new(Some(told));
    let endpoint = Endpoint::start(Manner::First, move |mut socket| {
        let told = told.lock().unwrap().take().unwrap();
        async move {
            socket.send(Message::Text("{}".into())).await.unwrap();
            while let Some(Ok(message)) = socket.next().await {
                if let Message::Close(Some(frame)) = message {
                    told.send(u16::from(frame.code)).unwrap();
                    return;
                }
            }
        }
    })
    .await;
    let mut link = plain(&endpoint).connect(target()).await.unwrap();
    let error = read(&mut link).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "link failed: a text message came (code 1003)"
    );
    assert_eq!(read(&mut link).await.unwrap_err(), error, "it stays");
    assert_eq!(code.await.unwrap(), 1003);
}

#[tokio::test]
async fn a_far_end_that_does_not_read_bounds_what_is_taken() {
    let (go, gone) = oneshot::channel::<()>();
    let gone = std::sync::Mutex::new(Some(gone));
    let endpoint = Endpoint::start(Manner::First, move |mut socket| {
        let gone = gone.lock().unwrap().take().unwrap();
        async move {
            let _ = gone.await;
            while let Some(Ok(_)) = socket.next().await {}
        }
    })
    .await;
    let mut link = plain(&endpoint).connect(target()).await.unwrap();
    let (bytes, mut taken) = (vec![7; 100_000], 0);
    let blocked = tokio::time::timeout(Duration::from_millis(300), async {
        loop {
            taken += poll_fn(|cx| link.poll_write(cx, &bytes)).await.unwrap();
        }
    });
    blocked.await.unwrap_err();
    // What the operating system holds on loopback, and little more.
    assert!(taken < 12 << 20, "{taken}");
    go.send(()).unwrap();
    let more = tokio::time::timeout(
        Duration::from_secs(5),
        poll_fn(|cx| link.poll_write(cx, &bytes)),
    );
    more.await.unwrap().unwrap();
}

#[tokio::test]
async fn nobody_and_silence_are_told_apart() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", closed.local_addr().unwrap());
    drop(closed);
    let transport = WebSocketTransport::new(Relay::new(&url).unwrap()).unwrap();
    let error = transport.connect(target()).await.unwrap_err();
    assert_eq!(error.kind(), LinkErrorKind::Refused);
    assert_eq!(error.saying(), None);
    let silent = Endpoint::start(Manner::First, |socket| async move {
        drop(socket);
    })
    .await;
    let mut link = plain(&silent).connect(target()).await.unwrap();
    let error = read(&mut link).await.unwrap_err();
    assert_eq!(error.kind(), LinkErrorKind::Reset, "no farewell");
}

/// Case W1, on the frames it names: every way to cut them, as bytes.
#[tokio::test]
async fn frames_come_in_order_however_messages_cut_them() {
    let frames = [
        "84000005080000002300000002000000010000000100016b0001740001760009000000010000000400000001",
        "84000006080000002300000002000000010000000100016b0001740001760009000000010000000400000002",
    ];
    let bytes: Vec<u8> = frames
        .concat()
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    let sent = bytes.clone();
    let endpoint = Endpoint::start(Manner::First, move |mut socket| {
        let bytes = sent.clone();
        async move {
            let message = |part: &[u8]| Message::Binary(Bytes::copy_from_slice(part));
            for cut in 0..=bytes.len() {
                let (first, second) = bytes.split_at(cut);
                socket.send(message(first)).await.unwrap();
                socket.send(Message::Ping(Bytes::new())).await.unwrap();
                socket.send(message(&[])).await.unwrap();
                socket.send(message(second)).await.unwrap();
            }
            while let Some(Ok(_)) = socket.next().await {}
        }
    })
    .await;
    let mut link = plain(&endpoint).connect(target()).await.unwrap();
    let mut received = Vec::new();
    while received.len() < bytes.len() * (bytes.len() + 1) {
        received.extend(read(&mut link).await.unwrap());
    }
    assert_eq!(received, bytes.repeat(bytes.len() + 1));
}

/// Case W1 (a), (b), (c) and (e), the whole driver: every answer belongs to its request.
#[tokio::test]
async fn answers_reach_their_requests_however_messages_cut_them() {
    let server = SimServer::start(options()).await.unwrap();
    for cut in [Cut::Joined, Cut::Five, Cut::LongAndShort, Cut::Pinged] {
        let session = session(&server, cut).await.unwrap();
        let key = "CREATE KEYSPACE IF NOT EXISTS w1 WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}";
        session.query(key, ()).await.unwrap();
        let table = "CREATE TABLE IF NOT EXISTS w1.t (k int PRIMARY KEY, v blob)";
        session.query(table, ()).await.unwrap();
        let insert = session
            .prepare("INSERT INTO w1.t (k, v) VALUES (?, ?)")
            .await
            .unwrap();
        let select = session
            .prepare("SELECT v FROM w1.t WHERE k = ?")
            .await
            .unwrap();
        let length = |key: i32| if key % 7 == 0 { 70 << 10 } else { 10 };
        for key in 0..40 {
            let value = vec![u8::try_from(key).unwrap(); length(key)];
            session.execute(&insert, (key, value)).await.unwrap();
        }
        let reads = (0..400).map(|number| {
            let (session, select, key) = (session.clone(), select.clone(), number % 40);
            tokio::spawn(async move {
                let result = session.execute(&select, (key,)).await.unwrap();
                (key, result.single_row::<(Vec<u8>,)>().unwrap().0)
            })
        });
        for read in reads.collect::<Vec<_>>() {
            let (key, value) = read.await.unwrap();
            assert_eq!(
                value,
                vec![u8::try_from(key).unwrap(); length(key)],
                "{cut:?}"
            );
        }
    }
    server.stop().await;
}

/// Case W1 (d): a text message between answers closes its connection; the request under way fails
/// and tells why, later ones go over the next connection.
#[tokio::test]
async fn a_text_message_between_answers_fails_its_connection_only() {
    let server = SimServer::start(options()).await.unwrap();
    let session = session(&server, Cut::Text).await.unwrap();
    let (mut failed, mut answered_after) = (0, 0);
    for _ in 0..1000 {
        match session.query("SELECT * FROM system.local", ()).await {
            Ok(_) if failed > 0 => answered_after += 1,
            Ok(_) => {}
            // Asked while the next connection was being opened.
            Err(error) if error.kind() == ErrorKind::Unreachable => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => {
                failed += 1;
                let text = error.to_string();
                assert!(text.contains("a text message came (code 1003)"), "{text}");
            }
        }
        if failed > 1 && answered_after > 0 {
            break;
        }
    }
    assert!(failed > 1 && answered_after > 0, "{failed} failed");
    server.stop().await;
}

/// One node of one shard, on ports that the system chooses.
fn options() -> Options {
    let mut options = Options::uniform(1, 1);
    options.port = 0;
    options.shard_aware_port = None;
    options
}

async fn session(
    server: &SimServer,
    cut: Cut,
) -> Result<messina_tokio::Session, messina_tokio::Error> {
    let nodes: Vec<SocketAddr> = server.contacts().to_vec();
    let node = nodes[0];
    // Which node is asked for stands in the address, and is ignored, as by a foreign endpoint.
    let endpoint = Endpoint::start(Manner::First, move |socket| bridge(socket, node, cut)).await;
    let relay = Relay::new(&endpoint.url())?.protocol(Protocol::Cql);
    let mut config = Config::server();
    config.add_contact_points(&node.to_string())?;
    config.timeouts.connect = Duration::from_secs(2);
    connect(config, relay).await
}

/// A waiting read is woken by bytes; this is what a driver that idles relies on.
#[tokio::test]
async fn a_waiting_read_is_woken() {
    let endpoint = Endpoint::start(Manner::First, |mut socket| async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        socket
            .send(Message::Binary(Bytes::from_static(b"late")))
            .await
            .unwrap();
        while let Some(Ok(_)) = socket.next().await {}
    })
    .await;
    let mut link = plain(&endpoint).connect(target()).await.unwrap();
    let mut into = BytesMut::with_capacity(10);
    let first = poll_fn(|cx| Poll::Ready(link.poll_read(cx, &mut into))).await;
    assert!(first.is_pending());
    assert_eq!(read(&mut link).await.unwrap(), b"late");
}
