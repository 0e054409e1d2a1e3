//! The links on the web, in a JavaScript host: a program compiled to WASM (`tests/web`) against
//! endpoints in this process. `cargo xtask web` builds the program and names its folder; without it
//! nothing is run here.

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "websocket/endpoint.rs"]
mod endpoint;

use core::net::SocketAddr;
use core::time::Duration;
use std::env;
use std::path::Path;

use endpoint::{Cut, Endpoint, Manner, bridge, echo, echo_tunnel};
use futures_util::{SinkExt, StreamExt};
use messina_relay::{Access, Relay, RelayConfig, Rule};
use messina_sim::node::Options;
use messina_sim::tcp::SimServer;
use tokio::process::Command;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

/// Names the folder of the program.
const PROGRAM: &str = "MESSINA_WEB_PROGRAM";

/// Runs one check of the program; gives what it tells.
async fn check(name: &str, arguments: &[&str]) -> Option<String> {
    let folder = env::var(PROGRAM).ok()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../web/run.mjs");
    let node = env::var("MESSINA_NODE").unwrap_or_else(|_| "node".to_owned());
    let mut command = Command::new(node);
    // Node 20 has the web's socket behind this; later ones take it in silence.
    command
        .arg("--experimental-websocket")
        .arg(script)
        .arg(folder)
        .arg(name)
        .args(arguments);
    command.kill_on_drop(true);
    let output = timeout(Duration::from_secs(60), command.output()).await;
    let output = output.expect("within a minute").expect("node is there");
    let told = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {arguments:?}: {problem}");
    Some(told)
}

#[tokio::test]
async fn the_timer_keeps_its_contract() {
    check("timer", &["ws://127.0.0.1:1"]).await;
}

#[tokio::test]
async fn links_keep_the_contract_in_both_forms() {
    let plain = Endpoint::start(Manner::First, echo).await;
    let tunnel = Endpoint::start(Manner::First, echo_tunnel).await;
    if check("plain_contract", &[&plain.url()]).await.is_some() {
        let asked = &plain.asked()[0];
        assert_eq!(asked.uri, "/cql?target=node:9042");
        assert_eq!(asked.protocols, ["cql", "token.YS5iPw"]);
    }
    let url = format!("ws://{}", tunnel.address);
    if check("mux_contract", &[&url]).await.is_some() {
        let asked = tunnel.asked();
        assert_eq!(asked.len(), 1);
        assert_eq!(
            (&*asked[0].uri, &*asked[0].protocols[0]),
            ("/cql", "cql.mux.v1")
        );
    }
}

#[tokio::test]
async fn a_far_end_that_does_not_read_bounds_what_is_taken() {
    let endpoint = Endpoint::start(Manner::First, |mut socket| async move {
        sleep(Duration::from_millis(500)).await;
        while let Some(Ok(_)) = socket.next().await {}
    })
    .await;
    check("slow_reader", &[&endpoint.url()]).await;
}

#[tokio::test]
async fn what_the_far_end_says_is_in_the_error() {
    let text = Endpoint::start(Manner::First, |mut socket| async move {
        socket.send(Message::Text("{}".into())).await.unwrap();
        while let Some(Ok(_)) = socket.next().await {}
    })
    .await;
    let closes = |code: u16| {
        Endpoint::start(Manner::First, move |mut socket| async move {
            let (code, reason) = (code.into(), "why".into());
            socket
                .close(Some(CloseFrame { code, reason }))
                .await
                .unwrap();
            while let Some(Ok(_)) = socket.next().await {}
        })
    };
    let (forbidden, done) = (closes(4006).await, closes(1000).await);
    let refused = Endpoint::start(Manner::Status(403), echo).await;
    for (endpoint, expected) in [
        (text, "link failed: a text message came (code 1003)"),
        (
            forbidden,
            "connection refused: target not allowed by the relay (code 4006)",
        ),
        (done, "end"),
        (
            refused,
            "connection refused: the WebSocket could not be opened (code 1006)",
        ),
    ] {
        if let Some(told) = check("failure", &[&endpoint.url()]).await {
            assert_eq!(told, expected);
        }
    }
}

/// Case W1 (a), (b), (c) and (e), the whole driver in a JavaScript host.
#[tokio::test]
async fn answers_reach_their_requests_however_messages_cut_them() {
    if env::var(PROGRAM).is_err() {
        return;
    }
    let mut options = Options::uniform(1, 1);
    options.port = 0;
    options.shard_aware_port = None;
    let server = SimServer::start(options).await.unwrap();
    let node: SocketAddr = server.contacts()[0];
    for cut in [Cut::Joined, Cut::Five, Cut::LongAndShort, Cut::Pinged] {
        let endpoint =
            Endpoint::start(Manner::First, move |socket| bridge(socket, node, cut)).await;
        check("session", &[&endpoint.url(), &node.to_string(), "false"]).await;
    }
    server.stop().await;
}

/// One WebSocket to the shipped relay, which asks for a token, and a cluster of two nodes behind it.
#[tokio::test]
async fn a_session_goes_through_the_relay_in_one_socket() {
    if env::var(PROGRAM).is_err() {
        return;
    }
    let mut options = Options::uniform(2, 2);
    options.port = 0;
    options.shard_aware_port = Some(0);
    let server = SimServer::start(options).await.unwrap();
    let mut config = RelayConfig::new("127.0.0.1:0".parse().unwrap());
    config.allow = [Rule::parse("127.0.0.0/8:1-65535").unwrap()]
        .into_iter()
        .collect();
    config.access = Access::new().bearer("secret");
    let relay = Relay::bind(config).await.unwrap();
    let url = format!("ws://{}", relay.local_addr().unwrap());
    let running = tokio::spawn(relay.run(core::future::pending()));
    let node = server.contacts()[0].to_string();
    check("session", &[&url, &node, "true", "secret"]).await;
    running.abort();
    server.stop().await;
}
