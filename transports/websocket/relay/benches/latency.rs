//! Round trips through the relay against the barest pipe from a WebSocket to TCP that the same
//! libraries give, in one run, by turns. The far end of all is the same node that echoes.
//!
//! `cargo bench -p messina-relay --bench latency` prints microseconds for each size, median and 99th
//! percentile, and the ratio of the medians; `-- 4000` sets the round trips of one turn.
//! Client and node are threads with runtimes of their own; pipe and relay share one, so that the system wakes
//! both alike. `-- --serve` runs no client: it prints where pipe and relay are, and ends with its standard input
//! (`bindings-wasm/bench/relay.mjs`).

#[path = "../tests/support/mod.rs"]
mod support;

use core::net::SocketAddr;
use core::time::Duration;
use std::io::{Read as _, Write as _};
use std::sync::mpsc;
use std::time::Instant;

use bytes::BytesMut;
use futures_util::{SinkExt, StreamExt};
use messina_relay::{Access, Relay, RelayConfig, Rule};
use messina_websocket::tunnel::{ChannelId, Wish};
use support::{Mux, OPTIONS, Plain, echo_node};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

const SIZES: [usize; 8] = [64, 512, 1000, 1025, 4096, 16_384, 32_768, 65_536];
const TURNS: usize = 5;

/// With a token, web pages are let in too.
const TOKEN: &str = "bench";

fn main() {
    let count = std::env::args().find_map(|argument| argument.parse().ok());
    let count = count.unwrap_or(2000_usize);
    let node = on_thread(|told| async move {
        told.send(echo_node().await).unwrap();
        core::future::pending().await
    });
    let (pipe, relay) = on_thread(move |told| async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config = RelayConfig::new("127.0.0.1:0".parse().unwrap());
        config.allow = [Rule::parse(&format!("{node}")).unwrap()]
            .into_iter()
            .collect();
        config.access = Access::new().bearer(TOKEN);
        let relay = Relay::bind(config).await.unwrap();
        let addresses = (listener.local_addr(), relay.local_addr());
        told.send((addresses.0.unwrap(), addresses.1.unwrap()))
            .unwrap();
        tokio::spawn(run_pipe(node, listener));
        relay.run(core::future::pending()).await;
    });
    if std::env::args().any(|argument| argument == "--serve") {
        let mut out = std::io::stdout();
        let protocols = |name| support::protocols(name, TOKEN).replace(", ", r#"", ""#);
        let (plain, mux) = (protocols("cql"), protocols("cql.mux.v1"));
        let line = format!(
            r#"{{"pipe":{{"url":"ws://{pipe}/","protocols":[]}},"plain":{{"url":"ws://{relay}/cql?target={node}","protocols":["{plain}"]}},"mux":{{"url":"ws://{relay}/cql","protocols":["{mux}"],"target":"{node}"}}}}"#
        );
        writeln!(out, "{line}").unwrap();
        out.flush().unwrap();
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime
        .unwrap()
        .block_on(run_client(count, node, pipe, relay));
}

/// Runs something for ever on a thread of its own; where it is, which it tells.
fn on_thread<T: Send + 'static, F: Future<Output = ()>>(
    run: impl FnOnce(mpsc::Sender<T>) -> F + Send + 'static,
) -> T {
    let (told, hears) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(run(told));
    });
    hears.recv().unwrap()
}

/// The pipe: each message becomes a write, each read becomes a message.
async fn run_pipe(node: SocketAddr, listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).unwrap();
        let mut client = tokio_tungstenite::accept_async(stream).await.unwrap();
        let mut far = TcpStream::connect(node).await.unwrap();
        far.set_nodelay(true).unwrap();
        tokio::spawn(async move {
            let mut piece = vec![0; 64 << 10];
            loop {
                tokio::select! {
                    message = client.next() => match message {
                        Some(Ok(Message::Binary(bytes))) => far.write_all(&bytes).await.unwrap(),
                        _ => return,
                    },
                    read = far.read(&mut piece) => match read {
                        Ok(len @ 1..) => {
                            let message = Message::Binary(piece[..len].to_vec().into());
                            client.send(message).await.unwrap();
                        }
                        _ => return,
                    },
                }
            }
        });
    }
}

/// One way to the node.
enum Way {
    Pipe(Box<WebSocketStream<TcpStream>>),
    Plain(Box<Plain>),
    Mux(Box<Mux>, ChannelId),
}

impl Way {
    async fn round_trip(&mut self, bytes: &[u8]) {
        match self {
            Self::Pipe(socket) => {
                let message = Message::Binary(bytes.to_vec().into());
                socket.send(message).await.unwrap();
                let mut missing = bytes.len();
                while missing > 0 {
                    match socket.next().await {
                        Some(Ok(Message::Binary(piece))) => missing -= piece.len(),
                        other => panic!("{other:?}"),
                    }
                }
            }
            Self::Plain(plain) => {
                plain.send(bytes).await;
                let mut missing = bytes.len();
                while missing > 0 {
                    match plain.socket.next().await {
                        Some(Ok(Message::Binary(piece))) => missing -= piece.len(),
                        other => panic!("{other:?}"),
                    }
                }
            }
            Self::Mux(mux, id) => {
                mux.send(*id, bytes).await;
                let mut missing = bytes.len();
                let mut piece = BytesMut::new();
                while missing > 0 {
                    piece.clear();
                    match mux.tunnel.read(*id, &mut piece).unwrap() {
                        Some(len) => missing -= len,
                        None => match mux.socket.next().await {
                            Some(Ok(Message::Binary(bytes))) => {
                                mux.tunnel.handle_input(&bytes).unwrap();
                            }
                            other => panic!("{other:?}"),
                        },
                    }
                }
            }
        }
    }
}

async fn run_client(count: usize, node: SocketAddr, pipe: SocketAddr, relay: SocketAddr) {
    let stream = TcpStream::connect(pipe).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (piped, _) = tokio_tungstenite::client_async(format!("ws://{pipe}/"), stream)
        .await
        .unwrap();
    let target = node.to_string();
    let plain = support::plain(relay, &target, TOKEN).await.unwrap();
    let mut mux = support::mux(relay, TOKEN).await.unwrap();
    let id = mux.open(&target, Wish::None);
    let mut ways = [
        Way::Pipe(Box::new(piped)),
        Way::Plain(Box::new(plain)),
        Way::Mux(Box::new(mux), id),
    ];
    for way in &mut ways {
        way.round_trip(OPTIONS).await;
    }
    let mut out = std::io::stdout();
    let head = "bytes     pipe p50   p99     cql p50   p99  ratio    cql.mux.v1 p50   p99  ratio";
    writeln!(out, "{head}").unwrap();
    for size in SIZES {
        let bytes = vec![7; size];
        let mut took: [Vec<Duration>; 3] = Default::default();
        let mut medians: [Vec<u128>; 3] = Default::default();
        for _ in 0..TURNS {
            for (at, way) in ways.iter_mut().enumerate() {
                let mut turn = Vec::with_capacity(count);
                for _ in 0..count / TURNS {
                    let start = Instant::now();
                    way.round_trip(&bytes).await;
                    turn.push(start.elapsed());
                }
                turn.sort_unstable();
                medians[at].push(turn[turn.len() / 2].as_nanos());
                took[at].extend(turn);
            }
        }
        let figures = took.map(|mut took| {
            took.sort_unstable();
            let at = |share: usize| micros(took[took.len() * share / 100]);
            (at(50), at(99))
        });
        let ratio = |at: usize| {
            let mut ratios: Vec<f64> = (medians[at].iter().zip(&medians[0]))
                .map(|(ours, bare)| *ours as f64 / *bare as f64)
                .collect();
            ratios.sort_by(f64::total_cmp);
            ratios[ratios.len() / 2]
        };
        let [bare, plain, mux] = figures;
        writeln!(
            out,
            "{size:>6} {:>10.1} {:>6.1} {:>10.1} {:>6.1} {:>5.2} {:>16.1} {:>6.1} {:>5.2}",
            bare.0,
            bare.1,
            plain.0,
            plain.1,
            ratio(1),
            mux.0,
            mux.1,
            ratio(2)
        )
        .unwrap();
    }
}

fn micros(took: Duration) -> f64 {
    took.as_secs_f64() * 1e6
}
