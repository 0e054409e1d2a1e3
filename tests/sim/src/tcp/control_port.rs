//! The control port: lines in, lines out; what they mean is the business of [`crate::control`].

use core::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{CONNECTIONS_MAX, SimHandle, stopped};

/// Longest line of the control port.
const CONTROL_LINE_MAX: u64 = 64 << 10;

/// Serves any number of clients until the server stops.
pub(super) async fn listen_control(
    handle: SimHandle,
    listener: TcpListener,
    mut stop: watch::Receiver<bool>,
) {
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            result = listener.accept() => match result {
                Ok((stream, _)) if clients.len() < CONNECTIONS_MAX => {
                    clients.spawn(serve_control(handle.clone(), stream));
                }
                Ok(_) => {}
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            },
            Some(_) = clients.join_next() => {}
            () = stopped(&mut stop) => break,
        }
    }
}

async fn serve_control(handle: SimHandle, mut stream: TcpStream) {
    let (reader, mut writer) = stream.split();
    let mut reader = BufReader::new(reader);
    let mut line = String::new();
    loop {
        line.clear();
        let mut limited = (&mut reader).take(CONTROL_LINE_MAX);
        match limited.read_line(&mut line).await {
            Ok(len) if len > 0 && line.ends_with('\n') => {}
            _ => return,
        }
        let mut answer = handle.control(&line);
        answer.push('\n');
        if writer.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}
