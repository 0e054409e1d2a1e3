//! `mode=echo`: the network without CQL. Sends a pattern, checks that it comes back, and prints how
//! long it took; what this costs is the baseline for everything above it.

use alloc::vec;

use embassy_futures::join::join;
use embassy_net::Stack;
use embassy_net::tcp::{TcpReader, TcpSocket, TcpWriter};
use embassy_time::{Duration, Instant, with_timeout};

use crate::parameters::Parameters;
use crate::println;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const SOCKET_BYTES: usize = 4096;
const CHUNK_BYTES: usize = 256;

/// Runs the echo test.
pub async fn run(stack: Stack<'_>, parameters: &Parameters) -> Result<(), &'static str> {
    let (mut rx, mut tx) = (vec![0; SOCKET_BYTES], vec![0; SOCKET_BYTES]);
    let mut socket = TcpSocket::new(stack, &mut rx, &mut tx);
    let begin = Instant::now();
    with_timeout(
        CONNECT_TIMEOUT,
        socket.connect((parameters.host, parameters.port)),
    )
    .await
    .map_err(|_| "connect timed out")?
    .map_err(|_| "connect refused")?;
    println!("connect_us {}", begin.elapsed().as_micros());

    let begin = Instant::now();
    let (reader, writer) = socket.split();
    let (sent, received) = join(
        send(writer, parameters.bytes),
        receive(reader, parameters.bytes),
    )
    .await;
    sent.and(received)?;
    println!("echo_bytes {}", parameters.bytes);
    println!("echo_us {}", begin.elapsed().as_micros());
    socket.close();
    // Success of `flush` is no proof of delivery; the bytes that came back are.
    let _ = with_timeout(CONNECT_TIMEOUT, socket.flush()).await;
    Ok(())
}

async fn send(mut writer: TcpWriter<'_>, bytes: u32) -> Result<(), &'static str> {
    let mut position = 0;
    while position < bytes {
        let mut chunk = [0; CHUNK_BYTES];
        let len = chunk.len().min((bytes - position) as usize);
        for (byte, at) in chunk.iter_mut().zip(position..) {
            *byte = pattern(at);
        }
        let written = writer
            .write(&chunk[..len])
            .await
            .map_err(|_| "reset while writing")?;
        position += written as u32;
    }
    Ok(())
}

async fn receive(mut reader: TcpReader<'_>, bytes: u32) -> Result<(), &'static str> {
    let mut position = 0;
    while position < bytes {
        let mut chunk = [0; CHUNK_BYTES];
        let len = reader
            .read(&mut chunk)
            .await
            .map_err(|_| "reset while reading")?;
        if len == 0 {
            return Err("closed before the echo was complete");
        }
        if chunk[..len]
            .iter()
            .zip(position..)
            .any(|(byte, at)| *byte != pattern(at))
        {
            return Err("the echo differs");
        }
        position += len as u32;
    }
    Ok(())
}

/// A byte that depends on every bit of the position, so that a lost or doubled segment is seen.
fn pattern(position: u32) -> u8 {
    (position.wrapping_mul(0x9E37_79B1) >> 24) as u8
}
