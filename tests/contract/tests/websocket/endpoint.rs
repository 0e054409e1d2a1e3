//! The far end of a WebSocket, as a test wants it: written on the WebSocket library alone.

use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use core::net::SocketAddr;
use futures_util::{SinkExt, StreamExt};
use messina_websocket::tunnel::{ChannelId, Limits, Tunnel};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};

pub(crate) type Socket = WebSocketStream<TcpStream>;

/// What a client asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) uri: String,
    pub(crate) protocols: Vec<String>,
}

/// An endpoint on a port of its own.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    /// Every handshake that came.
    pub(crate) asked: Arc<Mutex<Vec<Asked>>>,
}

/// How an endpoint answers handshakes.
#[derive(Clone, Copy)]
pub(crate) enum Manner {
    /// Takes the first sub-protocol.
    First,
    /// Knows nothing of sub-protocols.
    Bare,
    /// Refuses with a status.
    Status(u16),
}

impl Endpoint {
    /// Runs `serve` for each WebSocket.
    pub(crate) async fn start<F>(
        manner: Manner,
        serve: impl Fn(Socket) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Self {
            address: listener.local_addr().unwrap(),
            asked: Arc::default(),
        };
        let asked = Arc::clone(&endpoint.asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let asked = Arc::clone(&asked);
                if let Ok(socket) = accept(stream, manner, &asked).await {
                    tokio::spawn(serve(socket));
                }
            }
        });
        endpoint
    }

    pub(crate) fn url(&self) -> String {
        format!("ws://{}/cql", self.address)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

#[expect(clippy::result_large_err, reason = "the library's own callback")]
async fn accept(
    stream: TcpStream,
    manner: Manner,
    asked: &Mutex<Vec<Asked>>,
) -> Result<Socket, tokio_tungstenite::tungstenite::Error> {
    let answer = |request: &Request, mut response: Response| {
        let entries = request.headers().get_all("sec-websocket-protocol");
        let entries = entries
            .iter()
            .flat_map(|list| list.to_str().unwrap().split(','));
        let protocols: Vec<String> = entries.map(|entry| entry.trim().to_owned()).collect();
        if let (Manner::First, Some(first)) = (manner, protocols.first()) {
            let value = HeaderValue::from_str(first).unwrap();
            response
                .headers_mut()
                .insert("sec-websocket-protocol", value);
        }
        asked.lock().unwrap().push(Asked {
            uri: request.uri().to_string(),
            protocols,
        });
        if let Manner::Status(status) = manner {
            let mut refusal = ErrorResponse::new(None);
            *refusal.status_mut() = StatusCode::from_u16(status).unwrap();
            return Err(refusal);
        }
        Ok(response)
    };
    accept_hdr_async(stream, answer).await
}

/// Sends all bytes back, in messages that have nothing to do with those that came; pings between.
pub(crate) async fn echo(mut socket: Socket) {
    let (mut held, mut step) = (BytesMut::new(), 0_usize);
    while let Some(Ok(message)) = socket.next().await {
        if let Message::Binary(bytes) = message {
            held.extend_from_slice(&bytes);
        }
        while !held.is_empty() {
            step += 1;
            let len = held.len().min((step * 7919) % 5000);
            let part = held.split_to(len).freeze();
            if step % 5 == 0
                && socket
                    .send(Message::Ping(Bytes::from_static(b"?")))
                    .await
                    .is_err()
            {
                return;
            }
            if socket.send(Message::Binary(part)).await.is_err() {
                return;
            }
        }
    }
}

/// The far end of a tunnel whose channels send everything back.
pub(crate) async fn echo_tunnel(mut socket: Socket) {
    let mut tunnel = Tunnel::relay(Limits::relay());
    let mut channels: Vec<(ChannelId, BytesMut)> = Vec::new();
    while let Some(Ok(message)) = socket.next().await {
        let Message::Binary(bytes) = message else {
            continue;
        };
        tunnel.handle_input(&bytes).unwrap();
        while let Some(opening) = tunnel.poll_opening() {
            tunnel.accept(opening.channel, 4711);
            channels.push((opening.channel, BytesMut::new()));
        }
        loop {
            let mut has_moved = false;
            channels.retain_mut(|(id, held)| {
                if held.is_empty() {
                    match tunnel.read(*id, held) {
                        Ok(Some(0)) => tunnel.finish(*id),
                        Ok(None) => {}
                        Ok(Some(_)) => has_moved = true,
                        Err(_) => {
                            tunnel.release(*id);
                            return false;
                        }
                    }
                }
                if !held.is_empty()
                    && let Ok(Some(len)) = tunnel.write(*id, held)
                {
                    let _ = held.split_to(len);
                    has_moved = true;
                }
                true
            });
            while tunnel.poll_changed().is_some() {}
            while let Some(part) = tunnel.poll_output(3001) {
                has_moved = true;
                if socket.send(Message::Binary(part.freeze())).await.is_err() {
                    return;
                }
            }
            if !has_moved {
                break;
            }
        }
    }
}

/// How a bridge cuts what the node sends into messages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// As much as is there, so that frames are joined.
    Joined,
    /// Each read in five messages, one of them empty.
    Five,
    /// A long message, then a short one, again and again.
    LongAndShort,
    /// A ping before each.
    Pinged,
    /// A text message once a few bytes have passed.
    Text,
}

/// Carries a WebSocket's bytes to a node and back.
pub(crate) async fn bridge(socket: Socket, node: SocketAddr, cut: Cut) {
    let node = TcpStream::connect(node).await.unwrap();
    node.set_nodelay(true).unwrap();
    let (mut from_node, mut to_node) = node.into_split();
    let (mut to_client, mut from_client) = socket.split();
    let up = async {
        while let Some(Ok(message)) = from_client.next().await {
            if let Message::Binary(bytes) = message
                && to_node.write_all(&bytes).await.is_err()
            {
                return;
            }
        }
    };
    let down = async {
        let (mut buffer, mut passed) = (vec![0; 200_000], 0);
        loop {
            let len = match from_node.read(&mut buffer).await {
                Ok(len) if len > 0 => len,
                _ => return,
            };
            passed += len;
            let bytes = &buffer[..len];
            let fifth = len.div_ceil(4).max(1);
            let parts: Vec<&[u8]> = match cut {
                Cut::Joined | Cut::Pinged | Cut::Text => vec![bytes],
                Cut::Five => {
                    let mut parts: Vec<&[u8]> = bytes.chunks(fifth).collect();
                    parts.insert(1, &[]);
                    parts
                }
                Cut::LongAndShort => bytes
                    .chunks(70 << 10)
                    .flat_map(|long| {
                        let (short, long) = long.split_at(long.len().min(10));
                        [short, long]
                    })
                    .collect(),
            };
            for part in parts {
                if matches!(cut, Cut::Pinged) {
                    let ping = Message::Ping(Bytes::from_static(b"still there?"));
                    if to_client.send(ping).await.is_err() {
                        return;
                    }
                }
                let part = Bytes::copy_from_slice(part);
                if to_client.send(Message::Binary(part)).await.is_err() {
                    return;
                }
            }
            if matches!(cut, Cut::Text) && passed > 4000 {
                let _ = to_client.send(Message::Text("hello".into())).await;
                passed = 0;
            }
        }
    };
    tokio::select! {
        () = up => {}
        () = down => {}
    }
}
