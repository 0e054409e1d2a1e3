//! The far end of the firmware's echo: a server on loopback that takes requests of a size and gives answers of a
//! size, both told in the first eight bytes. Ends when dropped.

use core::net::SocketAddr;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::command::{Failure, Outcome};

/// Largest answer.
const ANSWER_MAX: usize = 4 << 20;
/// How long a client may be silent.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// One client at a time.
#[derive(Debug)]
pub(super) struct EchoServer {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl EchoServer {
    pub(super) fn start() -> Outcome<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            for client in listener.incoming() {
                if seen.load(Ordering::Acquire) {
                    return;
                }
                // A client that fails says so itself.
                let _ = client.map_err(Failure::from).and_then(serve);
            }
        });
        Ok(Self {
            address,
            is_over,
            thread: Some(thread),
        })
    }

    pub(super) const fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for EchoServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // Wakes the listener; a client that is being served ends by its time limit.
        if TcpStream::connect(self.address).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn serve(mut client: TcpStream) -> Outcome {
    client.set_nodelay(true)?;
    client.set_read_timeout(Some(SILENCE_MAX))?;
    client.set_write_timeout(Some(SILENCE_MAX))?;
    let mut sizes = [0; 8];
    client.read_exact(&mut sizes)?;
    let [a, b, c, d, e, f, g, h] = sizes;
    let request = u32::from_be_bytes([a, b, c, d]) as usize;
    let answer = u32::from_be_bytes([e, f, g, h]) as usize;
    if request == 0 || answer > ANSWER_MAX {
        return Err(Failure::new("sizes out of range"));
    }
    let pattern: Vec<u8> = (0..answer as u32).map(pattern).collect();
    let (mut pending, mut buffer) = (0, vec![0; 64 << 10]);
    loop {
        let len = client.read(&mut buffer)?;
        if len == 0 {
            return Ok(());
        }
        pending += len;
        let answers = pattern.repeat(pending / request);
        pending %= request;
        client.write_all(&answers)?;
    }
}

/// The same as the firmware's.
fn pattern(position: u32) -> u8 {
    (position.wrapping_mul(0x9E37_79B1) >> 24) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_requests_are_answered_in_their_size() {
        let server = EchoServer::start().expect("a port");
        let mut client = TcpStream::connect(server.address).expect("a listener");
        client.write_all(&[0, 0, 0, 4, 0, 0, 0, 3]).expect("sent");
        client.write_all(b"12341234").expect("sent");
        client.write_all(b"12").expect("sent");
        let mut answers = [0; 6];
        client.read_exact(&mut answers).expect("two answers");
        let one = [0, 1, 2].map(pattern);
        assert_eq!(answers, [one, one].as_flattened());
        drop(client);
        drop(server);
    }
}
