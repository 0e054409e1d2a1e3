//! `GET /metrics` and `GET /health` on a listener of their own.

use core::time::Duration;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::server::Shared;

/// Answers until it is dropped.
pub(crate) async fn run(listener: TcpListener, shared: Arc<Shared>) {
    let mut answers = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = answers.join_next() => {}
            accepted = listener.accept(), if answers.len() < ANSWERS_MAX => match accepted {
                Ok((stream, _)) => {
                    let shared = Arc::clone(&shared);
                    answers.spawn(timeout(ANSWER_TIMEOUT, async move {
                        let _ = answer(stream, &shared).await;
                    }));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            },
        }
    }
}

async fn answer(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut head = Vec::new();
    let path = loop {
        let mut piece = [0; 1024];
        let len = stream.read(&mut piece).await?;
        head.extend_from_slice(&piece[..len]);
        let mut fields = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut fields);
        match request.parse(&head) {
            Ok(httparse::Status::Complete(_)) if request.method == Some("GET") => {
                break request.path.unwrap_or_default().to_owned();
            }
            Ok(httparse::Status::Partial) if len > 0 && head.len() < HEAD_LEN_MAX => {}
            _ => return Ok(()),
        }
    };
    let (status, body) = match path.as_str() {
        "/metrics" => ("200 OK", shared.metrics.text()),
        "/health" if shared.is_stopping() => ("503 Service Unavailable", "draining\n".to_owned()),
        "/health" => ("200 OK", "ok\n".to_owned()),
        _ => ("404 Not Found", "nothing here\n".to_owned()),
    };
    let len = body.len();
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {len}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await
}

/// Most answers at once.
const ANSWERS_MAX: usize = 32;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

const HEAD_LEN_MAX: usize = 8 << 10;
