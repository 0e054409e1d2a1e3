//! The TCP shell on loopback: ports, shards, stopped nodes, the control port, a clean end.

use core::net::SocketAddr;
use core::time::Duration;

use messina_sim::node::Options;
use messina_sim::tcp::SimServer;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};

const OPTIONS_REQUEST: [u8; 9] = [4, 0, 0, 1, 5, 0, 0, 0, 0];

async fn server(nodes: usize, shards: u32) -> SimServer {
    let mut options = Options::uniform(nodes, shards);
    options.port = 0;
    options.shard_aware_port = Some(0);
    SimServer::start(options).await.expect("ports are free")
}

/// The SUPPORTED body as text.
async fn supported(stream: &mut TcpStream) -> String {
    stream.write_all(&OPTIONS_REQUEST).await.unwrap();
    let mut header = [0; 9];
    stream.read_exact(&mut header).await.unwrap();
    let mut body = vec![0; u32::from_be_bytes(header[5..].try_into().unwrap()) as usize];
    stream.read_exact(&mut body).await.unwrap();
    String::from_utf8_lossy(&body).into_owned()
}

/// The value that follows a key in a SUPPORTED body.
fn value(body: &str, key: &str) -> String {
    let after = body.split(key).nth(1).expect("key is there");
    after
        .chars()
        .skip_while(|c| !c.is_ascii_digit())
        .take_while(char::is_ascii_digit)
        .collect()
}

#[tokio::test]
async fn servers_side_by_side_listen_on_all_their_addresses() {
    let (one, two) = (server(3, 2).await, server(2, 3).await);
    for (server, nodes) in [(&one, 3), (&two, 2)] {
        assert_eq!(server.contacts().len(), nodes);
        for contact in server.contacts() {
            let mut stream = TcpStream::connect(contact).await.unwrap();
            assert!(supported(&mut stream).await.contains("SCYLLA_NR_SHARDS"));
        }
    }
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn the_source_port_chooses_the_shard() {
    let server = server(1, 4).await;
    let contact = server.contacts()[0];
    let mut stream = TcpStream::connect(contact).await.unwrap();
    let port = value(&supported(&mut stream).await, "SCYLLA_SHARD_AWARE_PORT")
        .parse()
        .unwrap();
    let mut seen = Vec::new();
    for _ in 0..8 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(contact.ip(), 0)).unwrap();
        let mut stream = socket
            .connect(SocketAddr::new(contact.ip(), port))
            .await
            .unwrap();
        let source = stream.local_addr().unwrap().port();
        let shard = value(&supported(&mut stream).await, "SCYLLA_SHARD\u{0}");
        assert_eq!(shard, (source % 4).to_string());
        seen.push(shard);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_killed_node_refuses_until_it_is_started() {
    let server = server(2, 1).await;
    let control = TcpStream::connect(server.control()).await.unwrap();
    let mut control = BufReader::new(control);
    let mut stream = TcpStream::connect(server.contacts()[1]).await.unwrap();
    supported(&mut stream).await;

    assert_eq!(
        command(&mut control, r#"{"cmd":"kill","node":1}"#).await,
        "{\"ok\":true}\n"
    );
    assert_eq!(
        stream.read(&mut [0; 16]).await.unwrap_or(0),
        0,
        "the connection ends"
    );
    eventually(async || TcpStream::connect(server.contacts()[1]).await.is_err()).await;
    TcpStream::connect(server.contacts()[0])
        .await
        .expect("the other one lives");

    command(&mut control, r#"{"cmd":"start","node":1}"#).await;
    eventually(async || TcpStream::connect(server.contacts()[1]).await.is_ok()).await;
    let stats = command(&mut control, r#"{"cmd":"stats"}"#).await;
    assert!(stats.contains("\"alive\":true"), "{stats}");
    assert!(stats.contains("\"shards\":[{"), "{stats}");
    assert!(stats.contains("\"at_owner_shard\":0"), "{stats}");
    assert!(
        command(&mut control, "nonsense")
            .await
            .contains("\"ok\":false")
    );
    server.stop().await;
}

async fn command(control: &mut BufReader<TcpStream>, line: &str) -> String {
    control
        .write_all(format!("{line}\n").as_bytes())
        .await
        .unwrap();
    let mut answer = String::new();
    control.read_line(&mut answer).await.unwrap();
    answer
}

/// Until it holds, for five seconds at most.
async fn eventually(holds: impl AsyncFn() -> bool) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), wait)
        .await
        .expect("it never came");
}

#[tokio::test]
async fn stopping_ends_connections_and_frees_ports() {
    let server = server(2, 1).await;
    let contact = server.contacts()[0];
    let handle = server.handle();
    let mut stream = TcpStream::connect(contact).await.unwrap();
    supported(&mut stream).await;
    assert_eq!(handle.with(|cluster| cluster.connection_count(0)), 1);
    server.stop().await;
    assert_eq!(stream.read(&mut [0; 16]).await.unwrap_or(0), 0);
    assert_eq!(handle.with(|cluster| cluster.connection_count(0)), 0);
    assert!(TcpStream::connect(contact).await.is_err());
}

#[tokio::test]
async fn delayed_replies_come_late_but_come() {
    let server = server(1, 1).await;
    server
        .handle()
        .with(|cluster| cluster.set_delay(0, 30_000))
        .unwrap();
    let mut stream = TcpStream::connect(server.contacts()[0]).await.unwrap();
    let start = std::time::Instant::now();
    supported(&mut stream).await;
    assert!(start.elapsed() >= Duration::from_millis(30));
    server.stop().await;
}
