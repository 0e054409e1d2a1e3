//! Records what a driver and a server say to each other, frame by frame, as text.
//!
//! A proxy on loopback: it hands bytes on unchanged, cuts copies of both directions into frames of
//! the native protocol (versions 3 and 4: a header of nine bytes and a body) and writes each as a
//! comment line and lines of hexadecimal digits. It is for use by hand: small golden files are then
//! picked from what it wrote. It knows no more of the protocol than frame borders, opcodes and where
//! the text of QUERY and PREPARE stands, so it cannot share a mistake with what is tested.
//!
//! `messina-interop capture --server 127.0.0.1:9042 --out FILE` prints where to connect and records
//! until its standard input ends; with `--ours` it lets our driver have its exchange ([`exchange`]).
//! `python/exchange.py`, `javascript/exchange.cjs` and `rust/src/exchange.rs` have the same with
//! other drivers; each takes the contact as its argument and wants the tables that ours has made.
//!
//! A frame of the file looks so, `>` to the server and `<` from it:
//!
//! ```text
//! # 1 > OPTIONS on stream 0, 0 bytes
//! > 04 00 0000 05 00000000
//! ```

pub mod exchange;

use core::{
    fmt::Write as _,
    net::{Ipv4Addr, SocketAddr},
};
use std::{
    fs::File,
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use anyhow::{Context as _, Result};

const HEADER_LEN: usize = 9;

/// A longer body is handed on but not recorded, nor is anything after it on its connection.
const BODY_LEN_MAX: usize = 1 << 20;

/// Connections that one recording may have.
const CONNECTIONS_MAX: usize = 64;

/// Bytes of a body on one line.
const LINE_BYTES: usize = 40;

const OPCODES: [&str; 17] = [
    "ERROR",
    "STARTUP",
    "READY",
    "AUTHENTICATE",
    "opcode 4",
    "OPTIONS",
    "SUPPORTED",
    "QUERY",
    "RESULT",
    "PREPARE",
    "EXECUTE",
    "REGISTER",
    "EVENT",
    "BATCH",
    "AUTH_CHALLENGE",
    "AUTH_RESPONSE",
    "AUTH_SUCCESS",
];

/// A proxy that records. It lives until the process ends.
#[derive(Debug)]
pub struct Capture {
    address: SocketAddr,
}

impl Capture {
    /// Listens on a free port of 127.0.0.1, hands connections on to `server` and writes their frames
    /// into `file`.
    ///
    /// # Errors
    /// Fails when it cannot listen or make the file.
    pub fn start(server: SocketAddr, file: &Path) -> Result<Self> {
        let out = File::create(file).with_context(|| format!("cannot make {}", file.display()))?;
        let out = Arc::new(Mutex::new(out));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        thread::spawn(move || {
            for (number, stream) in listener.incoming().take(CONNECTIONS_MAX).enumerate() {
                let Ok(client) = stream else { return };
                // The server's refusal shows as the end of the connection.
                if let Ok(server) = TcpStream::connect(server) {
                    let _ = relay(number + 1, &client, &server, &out);
                }
            }
        });
        Ok(Self { address })
    }

    /// Where drivers connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn relay(
    number: usize,
    client: &TcpStream,
    server: &TcpStream,
    out: &Arc<Mutex<File>>,
) -> io::Result<()> {
    for (mark, from, to) in [('>', client, server), ('<', server, client)] {
        let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
        to.set_nodelay(true)?;
        let out = Arc::clone(out);
        thread::spawn(move || {
            let mut frames = Frames::new(number, mark);
            let mut chunk = [0; 16 * 1024];
            while let Ok(len @ 1..) = from.read(&mut chunk) {
                // Recorded before it is handed on, so that a question stands above its answer.
                let text = frames.take(&chunk[..len]);
                let mut file = out.lock().unwrap_or_else(PoisonError::into_inner);
                let recorded = file.write_all(text.as_bytes());
                drop(file);
                if recorded.is_err() || to.write_all(&chunk[..len]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Write);
        });
    }
    Ok(())
}

/// Cuts one direction of a connection into frames.
#[derive(Debug)]
struct Frames {
    connection: usize,
    mark: char,
    held: Vec<u8>,
    lost: bool,
}

impl Frames {
    fn new(connection: usize, mark: char) -> Self {
        Self {
            connection,
            mark,
            held: Vec::new(),
            lost: false,
        }
    }

    /// The text of all frames that are whole now.
    fn take(&mut self, bytes: &[u8]) -> String {
        let mut text = String::new();
        if self.lost {
            return text;
        }
        self.held.extend_from_slice(bytes);
        while let Some(header) = self.held.first_chunk::<HEADER_LEN>() {
            let [_, _, _, _, _, len @ ..] = *header;
            let len = u32::from_be_bytes(len) as usize;
            if len > BODY_LEN_MAX {
                self.lost = true;
                let _ = writeln!(
                    text,
                    "# {} {} a body of {len} bytes",
                    self.connection, self.mark
                );
                break;
            }
            if self.held.len() < HEADER_LEN + len {
                break;
            }
            let frame: Vec<u8> = self.held.drain(..HEADER_LEN + len).collect();
            self.put(&mut text, &frame);
        }
        text
    }

    fn put(&self, text: &mut String, frame: &[u8]) {
        let (header, body) = frame.split_at(HEADER_LEN);
        let [version, flags, s0, s1, opcode, l0, l1, l2, l3] = *header else {
            return;
        };
        let (mark, connection) = (self.mark, self.connection);
        let name = OPCODES.get(usize::from(opcode)).unwrap_or(&"opcode");
        let stream = i16::from_be_bytes([s0, s1]);
        // A compressed body, or one with something in front of the message, is left to the reader.
        let said = (flags == 0).then(|| statement(name, body)).flatten();
        let said = said.map_or_else(String::new, |said| format!(": {said}"));
        let _ = writeln!(
            text,
            "\n# {connection} {mark} {name} on stream {stream}, {} bytes{said}",
            body.len()
        );
        let _ = writeln!(
            text,
            "{mark} {version:02x} {flags:02x} {s0:02x}{s1:02x} {opcode:02x} \
            {l0:02x}{l1:02x}{l2:02x}{l3:02x}"
        );
        for line in body.chunks(LINE_BYTES) {
            let _ = write!(text, "{mark} ");
            line.iter().for_each(|byte| {
                let _ = write!(text, "{byte:02x}");
            });
            text.push('\n');
        }
    }
}

/// The text of a QUERY or PREPARE on one line, or what kind of result or error it is.
fn statement(name: &str, body: &[u8]) -> Option<String> {
    let int = u32::from_be_bytes(*body.first_chunk()?);
    match name {
        "QUERY" | "PREPARE" => {
            let text = body.get(4..)?.get(..int as usize)?;
            let text = String::from_utf8_lossy(text);
            Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
        }
        "RESULT" => Some(
            match int {
                1 => "void",
                2 => "rows",
                3 => "keyspace set",
                4 => "prepared",
                5 => "schema changed",
                _ => "unknown",
            }
            .to_owned(),
        ),
        "ERROR" => Some(format!("code {int:04x}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An OPTIONS, a QUERY and the answers, however the bytes come cut.
    #[test]
    fn frames_are_found_at_every_cut() {
        let wire = [
            &b"\x04\x00\x00\x00\x05\x00\x00\x00\x00"[..],
            b"\x04\x00\x00\x01\x07\x00\x00\x00\x0a\x00\x00\x00\x03USE\x00\x01\x00",
        ]
        .concat();
        let expected = "\n# 3 > OPTIONS on stream 0, 0 bytes\n> 04 00 0000 05 00000000\n\
            \n# 3 > QUERY on stream 1, 10 bytes: USE\n> 04 00 0001 07 0000000a\n\
            > 00000003555345000100\n";
        for cut in 0..wire.len() {
            let mut frames = Frames::new(3, '>');
            let text = frames.take(&wire[..cut]) + &frames.take(&wire[cut..]);
            assert_eq!(text, expected, "cut at {cut}");
        }
    }

    #[test]
    fn what_is_too_long_ends_the_recording_of_its_connection() {
        let mut frames = Frames::new(1, '<');
        let text = frames.take(b"\x84\x00\x00\x00\x08\x7f\xff\xff\xff\x00");
        assert_eq!(text, "# 1 < a body of 2147483647 bytes\n");
        assert_eq!(frames.take(b"\x84\x00\x00\x00\x02\x00\x00\x00\x00"), "");
    }
}
