//! `mode=echo`: the network without CQL. Sends requests of a size and takes answers of a size, as
//! many under way as the driver would have, and prints what that takes; the baseline for all above.
//!
//! The far end learns both sizes from the first eight bytes, big-endian, and answers each request with
//! the pattern of [`pattern`], which is checked here.

use embassy_net::tcp::TcpSocket;
use embassy_time::{Duration, Instant, with_timeout};
use static_cell::ConstStaticCell;

use crate::board::executor::busy_ticks;
use crate::boot::Board;
use crate::println;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Sockets that rest, as those of the driver do that have no connection: the stack looks at all of
/// them for each frame.
const RESTING: usize = 2;
/// The windows are those of a connection of the driver.
const RX_BYTES: usize = 2048;
const TX_BYTES: usize = 1024;

static BUFFERS: ConstStaticCell<([u8; RX_BYTES], [u8; TX_BYTES])> =
    ConstStaticCell::new(([0; RX_BYTES], [0; TX_BYTES]));

static RESTING_BUFFERS: ConstStaticCell<[([u8; 4], [u8; 4]); RESTING]> =
    ConstStaticCell::new([([0; 4], [0; 4]); RESTING]);

/// Runs the echo test.
pub async fn run(board: Board) -> Result<(), &'static str> {
    let Board {
        stack, parameters, ..
    } = board;
    let (rx, tx) = BUFFERS.take();
    let resting = RESTING_BUFFERS.take().each_mut();
    let _resting = resting.map(|(rx, tx)| TcpSocket::new(stack, rx, tx));
    let mut socket = TcpSocket::new(stack, rx, tx);
    socket.set_nagle_enabled(false);
    let begin = Instant::now();
    let peer = (parameters.host, parameters.port);
    with_timeout(CONNECT_TIMEOUT, socket.connect(peer))
        .await
        .map_err(|_| "connect timed out")?
        .map_err(|_| "connect refused")?;
    println!("connect_us {}", begin.elapsed().as_micros());

    let sizes = [u32::from(parameters.request), parameters.answer];
    for size in sizes {
        write_all(&mut socket, &size.to_be_bytes()).await?;
    }
    let depth = u32::from(parameters.depth);
    exchange(&mut socket, board, depth).await?;
    let (begin, busy) = (Instant::now(), busy_ticks());
    exchange(&mut socket, board, parameters.count).await?;
    let busy = busy_ticks().wrapping_sub(busy);
    println!("echo_us {}", begin.elapsed().as_micros());
    println!("echo_busy_ticks {busy}");
    socket.close();
    // Success of `flush` is no proof of delivery; the bytes that came back are.
    let _ = with_timeout(CONNECT_TIMEOUT, socket.flush()).await;
    Ok(())
}

/// Requests up to the depth, then one for each answer.
async fn exchange(
    socket: &mut TcpSocket<'_>,
    board: Board,
    count: u32,
) -> Result<(), &'static str> {
    let parameters = board.parameters;
    let first = count.min(u32::from(parameters.depth));
    for _ in 0..first {
        send(socket, parameters.request.into()).await?;
    }
    for answer in 0..count {
        receive(socket, parameters.answer).await?;
        if answer + first < count {
            send(socket, parameters.request.into()).await?;
        }
    }
    Ok(())
}

async fn send(socket: &mut TcpSocket<'_>, len: u32) -> Result<(), &'static str> {
    let mut chunk = [0; 128];
    let mut position = 0;
    while position < len {
        let part = chunk.len().min((len - position) as usize);
        for (byte, at) in chunk[..part].iter_mut().zip(position..) {
            *byte = at as u8;
        }
        write_all(socket, &chunk[..part]).await?;
        position += part as u32;
    }
    Ok(())
}

async fn write_all(socket: &mut TcpSocket<'_>, mut bytes: &[u8]) -> Result<(), &'static str> {
    while !bytes.is_empty() {
        let written = socket
            .write(bytes)
            .await
            .map_err(|_| "reset while writing")?;
        bytes = &bytes[written..];
    }
    Ok(())
}

/// Looks at the first and the last byte of what each read gives: the cost is that of the network.
async fn receive(socket: &mut TcpSocket<'_>, len: u32) -> Result<(), &'static str> {
    let mut position = 0;
    while position < len {
        let part = socket.read_with(|arrived| {
            let part = arrived.len().min((len - position) as usize);
            let is_right = match &arrived[..part] {
                [first, .., last] => {
                    *first == pattern(position) && *last == pattern(position + part as u32 - 1)
                }
                [only] => *only == pattern(position),
                [] => true,
            };
            (part, is_right.then_some(part))
        });
        match part.await.map_err(|_| "reset while reading")? {
            Some(part) => position += part as u32,
            None => return Err("the echo differs"),
        }
    }
    Ok(())
}

/// A byte that depends on every bit of the position, so that a lost or doubled segment is seen.
pub fn pattern(position: u32) -> u8 {
    (position.wrapping_mul(0x9E37_79B1) >> 24) as u8
}
