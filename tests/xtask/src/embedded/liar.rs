//! A proxy in front of a node that gives answers of strange lengths when it is told to. In place of the answer to
//! the next EXECUTE comes a frame of up to 1 MiB of zeros, or, where that is said to be longer, its header and
//! nothing more: whoever believes that waits for ever, or has no memory left. Ends when dropped.

use core::net::SocketAddr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::command::Outcome;

const HEADER_LEN: usize = 9;
const EXECUTE: u8 = 0x0a;
/// An answer that is really sent.
const SENT_MAX: u32 = 1 << 20;
/// How long a connection may be silent.
const SILENCE_MAX: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Liar {
    address: SocketAddr,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct State {
    /// The length of the next lie.
    wanted: Mutex<Option<u32>>,
    /// Clients that have ended their connection behind one.
    left: AtomicU32,
    is_over: AtomicBool,
}

impl Liar {
    /// Listens on a port of its own, for a server on the same address.
    pub(super) fn start(server: u16) -> Outcome<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let thread = thread::spawn(move || {
            for client in listener.incoming() {
                if shared.is_over.load(Ordering::Acquire) {
                    return;
                }
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    // What fails shows as the end of the connection.
                    let _ = client.and_then(|client| serve(&client, server, &shared));
                });
            }
        });
        Ok(Self {
            address,
            state,
            thread: Some(thread),
        })
    }

    pub(super) const fn port(&self) -> u16 {
        self.address.port()
    }

    /// The answer to the next EXECUTE has this length. Whether it is one that only its header comes of.
    pub(super) fn lie(&self, length: u32) -> bool {
        let wanted = self.state.wanted.lock();
        *wanted.unwrap_or_else(PoisonError::into_inner) = Some(length);
        length > SENT_MAX
    }

    /// How many clients have left behind a lie.
    pub(super) fn left(&self) -> u32 {
        self.state.left.load(Ordering::Acquire)
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::Release);
        // Wakes the listener.
        if TcpStream::connect(self.address).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn serve(client: &TcpStream, server: u16, state: &Arc<State>) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", server))?;
    for stream in [client, &server] {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
    }
    let answers = Arc::new(Mutex::new(Answers {
        client: client.try_clone()?,
        are_over: false,
    }));
    let back = {
        let (mut server, answers) = (server.try_clone()?, Arc::clone(&answers));
        thread::spawn(move || {
            let mut chunk = [0; 16 << 10];
            while let Ok(len @ 1..) = server.read(&mut chunk) {
                let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
                if answers.are_over || answers.client.write_all(&chunk[..len]).is_err() {
                    return;
                }
            }
            let answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
            if !answers.are_over {
                let _ = answers.client.shutdown(Shutdown::Write);
            }
        })
    };
    let outcome = hand_on(client, &server, state, &answers);
    let _ = server.shutdown(Shutdown::Both);
    let _ = back.join();
    outcome
}

/// What goes to the client; whole frames of ours, or what the server sends.
struct Answers {
    client: TcpStream,
    are_over: bool,
}

/// Hands requests on, frame by frame, until one is answered with a lie.
fn hand_on(
    mut client: &TcpStream,
    mut server: &TcpStream,
    state: &State,
    answers: &Mutex<Answers>,
) -> io::Result<()> {
    let mut frame = Vec::new();
    loop {
        frame.resize(HEADER_LEN, 0);
        client.read_exact(&mut frame)?;
        let [_, _, high, low, opcode, a, b, c, d] = frame[..] else {
            return Ok(());
        };
        let len = u32::from_be_bytes([a, b, c, d]);
        frame.resize(HEADER_LEN + len as usize, 0);
        client.read_exact(&mut frame[HEADER_LEN..])?;
        if opcode == EXECUTE {
            let wanted = state.wanted.lock();
            let wanted = wanted.unwrap_or_else(PoisonError::into_inner).take();
            if let Some(length) = wanted {
                let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
                answers.are_over = length > SENT_MAX;
                answers.client.write_all(&[0x84, 0, high, low, 0x08])?;
                answers.client.write_all(&length.to_be_bytes())?;
                if answers.are_over {
                    break;
                }
                answers.client.write_all(&vec![0; length as usize])?;
                continue;
            }
        }
        server.write_all(&frame)?;
    }
    // Whatever else the client says, it is to leave.
    while let Ok(1..) = client.read(&mut [0; 1024]) {}
    state.left.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers each frame with an empty one on its stream.
    fn answering() -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        thread::spawn(move || {
            let (mut client, _) = listener.accept().expect("a client");
            let mut frame = [0; HEADER_LEN];
            while client.read_exact(&mut frame).is_ok() {
                let [_, _, high, low, ..] = frame;
                let answer = [0x84, 0, high, low, 0x08, 0, 0, 0, 0];
                client.write_all(&answer).expect("sent");
            }
        });
        port
    }

    #[test]
    fn only_an_answer_to_execute_is_a_lie_and_only_when_wanted() {
        let liar = Liar::start(answering()).expect("a port");
        let mut client = TcpStream::connect(liar.address).expect("a listener");
        let mut ask = |opcode| {
            let request = [4, 0, 0, 7, opcode, 0, 0, 0, 0];
            client.write_all(&request).expect("sent");
            let mut answer = [0; HEADER_LEN];
            client.read_exact(&mut answer).expect("an answer");
            answer
        };
        let honest = [0x84, 0, 0, 7, 0x08, 0, 0, 0, 0];
        assert_eq!(ask(EXECUTE), honest);
        liar.lie(0xffff_fffe);
        assert_eq!(ask(0x07), honest);
        assert_eq!(ask(EXECUTE), [0x84, 0, 0, 7, 0x08, 0xff, 0xff, 0xff, 0xfe]);
        assert_eq!(liar.left(), 0);
        drop(client);
        while liar.left() == 0 {
            thread::yield_now();
        }
    }
}
