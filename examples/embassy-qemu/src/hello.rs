//! `mode=hello`: the network as a small product uses it. Connects, sends a few bytes
//! and takes as many back. What an image with a driver weighs more than one that
//! does this is what the driver weighs.
//!
//! The far end is that of [`echo`](crate::echo).

use embassy_net::tcp::TcpSocket;
use embassy_time::{Duration, with_timeout};
use static_cell::ConstStaticCell;

use crate::boot::Board;
use crate::println;

const WITHIN: Duration = Duration::from_secs(3);
/// Lengths of request and answer, and a request.
const SAID: [u8; 16] = *b"\0\0\0\x08\0\0\0\x08messina!";

static BUFFERS: ConstStaticCell<([u8; 256], [u8; 256])> =
    ConstStaticCell::new(([0; 256], [0; 256]));

/// Says hello.
pub async fn run(board: Board) -> Result<(), &'static str> {
    match with_timeout(WITHIN, say(board)).await {
        Ok(said) => said,
        Err(_) => Err("no hello within three seconds"),
    }
}

async fn say(board: Board) -> Result<(), &'static str> {
    let Board {
        stack, parameters, ..
    } = board;
    let (rx, tx) = BUFFERS.take();
    let mut socket = TcpSocket::new(stack, rx, tx);
    let peer = (parameters.host, parameters.port);
    socket.connect(peer).await.map_err(|_| "connect refused")?;
    let mut rest = &SAID[..];
    while !rest.is_empty() {
        let written = socket.write(rest).await;
        rest = &rest[written.map_err(|_| "reset while writing")?..];
    }
    let mut heard = 0;
    let mut bytes = [0; 8];
    while heard < bytes.len() {
        match socket.read(&mut bytes[heard..]).await {
            Ok(0) | Err(_) => return Err("reset while reading"),
            Ok(read) => heard += read,
        }
    }
    println!("heard {heard}");
    Ok(())
}
