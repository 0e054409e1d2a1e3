//! Is a CQL server there? OPTIONS and, where a login is wanted, STARTUP and AUTH_RESPONSE.
//!
//! These few frames are written here by hand, from the native protocol specification version 4
//! (sections 2, 4.1.1 to 4.1.3, 4.2.2 to 4.2.6): the harness must not use the driver under test to
//! say that a server is ready. One connection per question, everything bounded in time and size.

use core::{net::SocketAddr, time::Duration};
use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpStream,
};

use anyhow::{Context as _, Result, bail, ensure};

const ERROR: u8 = 0x00;
const STARTUP: u8 = 0x01;
const READY: u8 = 0x02;
const AUTHENTICATE: u8 = 0x03;
const OPTIONS: u8 = 0x05;
const SUPPORTED: u8 = 0x06;
const AUTH_RESPONSE: u8 = 0x0f;
const AUTH_SUCCESS: u8 = 0x10;

/// No answer to these questions is longer.
const BODY_LEN_MAX: usize = 64 * 1024;

/// A user name and a password.
#[derive(Clone)]
#[non_exhaustive]
pub struct Credentials {
    /// The role to log in as.
    pub user: String,
    /// Its password; never printed.
    pub password: String,
}

impl Credentials {
    /// A user and a password.
    #[must_use]
    pub fn new(user: &str, password: &str) -> Self {
        Self {
            user: user.to_owned(),
            password: password.to_owned(),
        }
    }
}

impl core::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// Asks OPTIONS and gives what SUPPORTED lists.
///
/// # Errors
/// Fails when nothing answers within `limit` or the answer is anything else.
pub fn supported(address: SocketAddr, limit: Duration) -> Result<BTreeMap<String, Vec<String>>> {
    let mut stream = connect(address, limit)?;
    match ask(&mut stream, OPTIONS, &[])? {
        (SUPPORTED, body) => parse_string_multimap(&body),
        (opcode, body) => bail!("OPTIONS was answered with {}", describe(opcode, &body)),
    }
}

/// Logs in and gives the authenticator's name, or `None` where the server wants no login.
///
/// # Errors
/// Fails when nothing answers within `limit` or the login is refused.
pub fn log_in(
    address: SocketAddr,
    credentials: &Credentials,
    limit: Duration,
) -> Result<Option<String>> {
    let mut stream = connect(address, limit)?;
    let mut startup = vec![0, 1];
    put_string(&mut startup, "CQL_VERSION");
    put_string(&mut startup, "3.0.0");
    let authenticator = match ask(&mut stream, STARTUP, &startup)? {
        (READY, _) => return Ok(None),
        (AUTHENTICATE, body) => Reader(&body).string()?,
        (opcode, body) => bail!("STARTUP was answered with {}", describe(opcode, &body)),
    };
    let token = format!("\0{}\0{}", credentials.user, credentials.password);
    let mut response = u32::try_from(token.len())?.to_be_bytes().to_vec();
    response.extend_from_slice(token.as_bytes());
    match ask(&mut stream, AUTH_RESPONSE, &response)? {
        (AUTH_SUCCESS, _) => Ok(Some(authenticator)),
        (opcode, body) => bail!("the login was answered with {}", describe(opcode, &body)),
    }
}

fn connect(address: SocketAddr, limit: Duration) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, limit)
        .with_context(|| format!("cannot connect to {address}"))?;
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))?;
    Ok(stream)
}

/// Sends one version 4 request on stream 0 and reads the answer.
fn ask(stream: &mut (impl Read + Write), opcode: u8, body: &[u8]) -> Result<(u8, Vec<u8>)> {
    let mut frame = vec![0x04, 0x00, 0x00, 0x00, opcode];
    frame.extend_from_slice(&u32::try_from(body.len())?.to_be_bytes());
    frame.extend_from_slice(body);
    stream.write_all(&frame)?;

    let mut header = [0; 9];
    stream.read_exact(&mut header).context("no whole answer")?;
    let [version, _flags, _, _, opcode, len @ ..] = header;
    ensure!(
        version == 0x84,
        "an answer of version {version:#04x} instead of 0x84"
    );
    let len = u32::from_be_bytes(len) as usize;
    ensure!(len <= BODY_LEN_MAX, "an answer of {len} bytes");
    let mut body = vec![0; len];
    stream.read_exact(&mut body).context("no whole answer")?;
    Ok((opcode, body))
}

fn describe(opcode: u8, body: &[u8]) -> String {
    if opcode != ERROR {
        return format!("opcode {opcode:#04x}");
    }
    let mut reader = Reader(body);
    let code = reader.take(4).map(<[u8]>::to_vec).unwrap_or_default();
    let hex: String = code.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("error 0x{hex}: {}", reader.string().unwrap_or_default())
}

fn parse_string_multimap(body: &[u8]) -> Result<BTreeMap<String, Vec<String>>> {
    let mut reader = Reader(body);
    let mut map = BTreeMap::new();
    for _ in 0..reader.short()? {
        let key = reader.string()?;
        let values = (0..reader.short()?)
            .map(|_| reader.string())
            .collect::<Result<_>>()?;
        map.insert(key, values);
    }
    Ok(map)
}

fn put_string(body: &mut Vec<u8>, text: &str) {
    debug_assert!(text.len() < 1 << 16);
    body.extend_from_slice(&(text.len() as u16).to_be_bytes());
    body.extend_from_slice(text.as_bytes());
}

/// A cursor that never reads past the end.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.0.split_at_checked(len) else {
            bail!("the answer ends early");
        };
        self.0 = rest;
        Ok(taken)
    }

    fn short(&mut self) -> Result<u16> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn string(&mut self) -> Result<String> {
        let len = self.short()?;
        Ok(String::from_utf8_lossy(self.take(usize::from(len))?).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;
    use std::{
        io::{Cursor, Result as IoResult},
        net::TcpListener,
        thread,
    };

    use super::*;

    /// Answers with fixed bytes and remembers what was written.
    struct Script {
        answer: Cursor<Vec<u8>>,
        written: Vec<u8>,
    }

    impl Read for Script {
        fn read(&mut self, into: &mut [u8]) -> IoResult<usize> {
            self.answer.read(into)
        }
    }

    impl Write for Script {
        fn write(&mut self, bytes: &[u8]) -> IoResult<usize> {
            self.written.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> IoResult<()> {
            Ok(())
        }
    }

    /// A SUPPORTED body: COMPRESSION with two values, CQL_VERSION with one.
    const SUPPORTED_BODY: &[u8] =
        b"\x00\x02\x00\x0bCOMPRESSION\x00\x02\x00\x06snappy\x00\x03lz4\x00\x0bCQL_VERSION\x00\x01\x00\x053.4.7";

    #[test]
    fn options_is_nine_bytes_and_supported_is_read() {
        let mut answer = vec![0x84, 0, 0, 0, 0x06, 0, 0, 0, SUPPORTED_BODY.len() as u8];
        answer.extend_from_slice(SUPPORTED_BODY);
        let mut script = Script {
            answer: Cursor::new(answer),
            written: Vec::new(),
        };
        let (opcode, body) = ask(&mut script, OPTIONS, &[]).unwrap();
        assert_eq!(script.written, [0x04, 0, 0, 0, 0x05, 0, 0, 0, 0]);
        assert_eq!(opcode, SUPPORTED);
        let map = parse_string_multimap(&body).unwrap();
        assert_eq!(map["COMPRESSION"], ["snappy", "lz4"]);
        assert_eq!(map["CQL_VERSION"], ["3.4.7"]);
    }

    #[test]
    fn every_cut_of_a_supported_body_is_an_error() {
        for end in 0..SUPPORTED_BODY.len() {
            assert!(
                parse_string_multimap(&SUPPORTED_BODY[..end]).is_err(),
                "cut at {end}"
            );
        }
    }

    #[test]
    fn wrong_version_and_lying_length_are_errors() {
        let table: [(&[u8], &str); 3] = [
            (&[0x85, 0, 0, 0, 0x06, 0, 0, 0, 0], "version 0x85"),
            (
                &[0x84, 0, 0, 0, 0x06, 0xff, 0xff, 0xff, 0xff],
                "4294967295 bytes",
            ),
            (&[0x84, 0, 0, 0], "no whole answer"),
        ];
        for (answer, expected) in table {
            let mut script = Script {
                answer: Cursor::new(answer.to_vec()),
                written: Vec::new(),
            };
            let error = ask(&mut script, OPTIONS, &[]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn an_error_body_is_told_in_words() {
        // Bad credentials, specification section 9: code 0x0100, then the message.
        let body = b"\x00\x00\x01\x00\x00\x03bad";
        assert_eq!(describe(ERROR, body), "error 0x00000100: bad");
        assert_eq!(describe(READY, &[]), "opcode 0x02");
    }

    #[test]
    fn a_server_that_says_nothing_costs_the_limit_and_no_more() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let silent = thread::spawn(move || listener.accept());
        assert!(supported(address, Duration::from_millis(100)).is_err());
        drop(silent.join());
    }
}
