//! The HTTP request that asks for a WebSocket: what it wants, or with what status it is refused
//! (RFC 6455, section 4.2). Pure.
//!
//! The sub-protocols name the tunnel's form and hold the token (`token.` and its base64url). A
//! token in the URL is refused, because proxies and logs keep URLs.

use core::num::NonZeroU16;

use data_encoding::{BASE64URL, BASE64URL_NOPAD};
use messina_websocket::tunnel::Wish;
use messina_websocket::{CQL, CQL_MUX, TOKEN_PREFIX};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) protocol: Protocol,
    pub(crate) token: Option<String>,
    pub(crate) origin: Option<String>,
    key: Box<[u8]>,
}

/// The form of the tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Mux,
    /// One connection, named in the URL's query.
    Plain(String, Wish),
}

/// An answer that is no upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) reason: &'static str,
}

const fn refusal(status: u16, reason: &'static str) -> Refusal {
    Refusal { status, reason }
}

impl Request {
    /// Reads a request. `None`: it is not complete. The number is its length; what comes behind
    /// belongs to the WebSocket.
    pub(crate) fn parse(bytes: &[u8], path: &str) -> Result<Option<(Self, usize)>, Refusal> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut head = httparse::Request::new(&mut headers);
        let len = match head.parse(bytes) {
            Ok(httparse::Status::Complete(len)) if len <= HEAD_LEN_MAX => len,
            Ok(httparse::Status::Partial) if bytes.len() < HEAD_LEN_MAX => return Ok(None),
            Ok(_) | Err(httparse::Error::TooManyHeaders) => {
                return Err(refusal(431, "request is too long"));
            }
            Err(_) => return Err(refusal(400, "not a request of HTTP/1.1")),
        };
        let url = head.path.unwrap_or_default();
        let (asked_path, query) = url.split_once('?').unwrap_or((url, ""));
        if asked_path != path {
            return Err(refusal(404, "nothing here"));
        }
        if head.method != Some("GET") || head.version != Some(1) {
            return Err(refusal(405, "only GET of HTTP/1.1"));
        }
        let fields = Fields(head.headers);
        if !fields.has("Upgrade", "websocket") || !fields.has("Connection", "upgrade") {
            return Err(refusal(426, "this is the address of a WebSocket"));
        }
        if fields.one("Sec-WebSocket-Version")? != Some("13") {
            return Err(refusal(426, "only version 13 of WebSocket"));
        }
        let key = fields.one("Sec-WebSocket-Key")?;
        let key = key.filter(|key| key.len() == KEY_LEN);
        let key = key.ok_or(refusal(400, "no proper Sec-WebSocket-Key"))?;
        let (is_mux, token) = fields.protocols()?;
        let query = Query::parse(query)?;
        let protocol = match (is_mux, query.target) {
            (true, _) => Protocol::Mux,
            (false, Some(target)) => Protocol::Plain(target, query.wish),
            (false, None) => return Err(refusal(400, "the query names no target")),
        };
        let request = Self {
            protocol,
            token,
            origin: fields.one("Origin")?.map(str::to_owned),
            key: key.as_bytes().into(),
        };
        Ok(Some((request, len)))
    }

    /// The answer that makes it a WebSocket.
    pub(crate) fn accepted(&self) -> String {
        let protocol = match self.protocol {
            Protocol::Mux => CQL_MUX,
            Protocol::Plain(..) => CQL,
        };
        let accept = derive_accept_key(&self.key);
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n"
        )
    }
}

impl Refusal {
    /// The answer as a whole.
    pub(crate) fn response(self) -> String {
        let Self { status, reason } = self;
        let phrase = match status {
            400 => "Bad Request",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            426 => "Upgrade Required",
            429 => "Too Many Requests",
            431 => "Request Header Fields Too Large",
            _ => "Service Unavailable",
        };
        let more = match status {
            401 => "WWW-Authenticate: Bearer\r\n",
            426 => "Upgrade: websocket\r\n",
            429 | 503 => "Retry-After: 1\r\n",
            _ => "",
        };
        let len = reason.len() + 1;
        format!(
            "HTTP/1.1 {status} {phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n\
             Content-Length: {len}\r\nConnection: close\r\n{more}\r\n{reason}\n"
        )
    }
}

struct Fields<'a>(&'a [httparse::Header<'a>]);

impl<'a> Fields<'a> {
    fn all(&self, name: &'static str) -> impl Iterator<Item = &'a [u8]> + use<'a, '_> {
        let named = move |field: &&httparse::Header<'_>| field.name.eq_ignore_ascii_case(name);
        self.0.iter().filter(named).map(|field| field.value)
    }

    /// The value of a field that may stand once only.
    fn one(&self, name: &'static str) -> Result<Option<&'a str>, Refusal> {
        let mut values = self.all(name);
        let (first, second) = (values.next(), values.next());
        let text = first.map(core::str::from_utf8).transpose();
        match text {
            Ok(text) if second.is_none() => Ok(text.map(str::trim)),
            _ => Err(refusal(400, "a field that is doubled or no text")),
        }
    }

    /// The words of a field that is a list.
    fn words(&self, name: &'static str) -> impl Iterator<Item = &'a str> + use<'a, '_> {
        let texts = self
            .all(name)
            .filter_map(|value| core::str::from_utf8(value).ok());
        texts.flat_map(|text| text.split(',')).map(str::trim)
    }

    fn has(&self, name: &'static str, word: &str) -> bool {
        self.words(name)
            .any(|found| found.eq_ignore_ascii_case(word))
    }

    /// Whether the tunnel is to be multiplexed, and the token.
    fn protocols(&self) -> Result<(bool, Option<String>), Refusal> {
        let mut is_mux = None;
        let mut token = None;
        for word in self.words("Sec-WebSocket-Protocol") {
            match word.strip_prefix(TOKEN_PREFIX) {
                Some(coded) => token = Some(decode_token(coded)?),
                // The client's order is its preference.
                None if word == CQL_MUX => is_mux = is_mux.or(Some(true)),
                None if word == CQL => is_mux = is_mux.or(Some(false)),
                None => {}
            }
        }
        if token.is_none()
            && let Some(value) = self.one("Authorization")?
            && let Some((scheme, value)) = value.split_once(' ')
            && scheme.eq_ignore_ascii_case("bearer")
        {
            token = Some(value.trim().to_owned());
        }
        let is_mux = is_mux.ok_or(refusal(400, "neither sub-protocol cql.mux.v1 nor cql"))?;
        if token
            .as_ref()
            .is_some_and(|token| token.len() > TOKEN_LEN_MAX)
        {
            return Err(refusal(401, "token is too long"));
        }
        Ok((is_mux, token))
    }
}

fn decode_token(coded: &str) -> Result<String, Refusal> {
    let wrong = refusal(401, "token is not base64url");
    let coding = match coded.ends_with('=') {
        true => BASE64URL,
        false => BASE64URL_NOPAD,
    };
    let bytes = coding.decode(coded.as_bytes()).map_err(|_| wrong)?;
    String::from_utf8(bytes).map_err(|_| wrong)
}

#[derive(Default)]
struct Query {
    target: Option<String>,
    wish: Wish,
}

impl Query {
    fn parse(text: &str) -> Result<Self, Refusal> {
        let mut query = Self::default();
        let (mut shard, mut of) = (None, None);
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "target" if query.target.is_none() => {
                    let text = unescape(value).ok_or(refusal(400, "target is no text"))?;
                    query.target = Some(text);
                }
                "target" => return Err(refusal(400, "more than one target")),
                "shard" => shard = value.parse::<u16>().ok(),
                "of" => of = value.parse::<NonZeroU16>().ok(),
                "token" => return Err(refusal(400, "the token belongs to the sub-protocols")),
                _ => {}
            }
        }
        if let (Some(shard), Some(of)) = (shard, of)
            && shard < of.get()
        {
            query.wish = Wish::Shard { shard, of };
        }
        Ok(query)
    }
}

/// Undoes percent-encoding, once.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, behind) = behind.split_at_checked(2)?;
        let digits = core::str::from_utf8(digits).ok()?;
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        bytes.push(is_hex.then(|| u8::from_str_radix(digits, 16).ok())??);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}

/// Most bytes of a request's head.
pub(crate) const HEAD_LEN_MAX: usize = 16 << 10;

/// Most fields of a request.
const HEADERS_MAX: usize = 64;

/// Sixteen bytes in base64.
const KEY_LEN: usize = 24;

/// Most bytes of a token.
const TOKEN_LEN_MAX: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn request(url: &str, fields: &str) -> Result<Option<(Request, usize)>, Refusal> {
        let text = format!(
            "GET {url} HTTP/1.1\r\nHost: relay\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{fields}\r\n"
        );
        Request::parse(text.as_bytes(), "/cql")
    }

    fn status(url: &str, fields: &str) -> u16 {
        request(url, fields).unwrap_err().status
    }

    #[test]
    fn both_forms_are_read() {
        let (asked, _) = request(
            "/cql",
            "Sec-WebSocket-Protocol: cql.mux.v1, token.c2VjcmV0\r\nOrigin: https://a.example\r\n",
        )
        .unwrap()
        .unwrap();
        assert_eq!(asked.protocol, Protocol::Mux);
        assert_eq!(asked.token.as_deref(), Some("secret"));
        assert_eq!(asked.origin.as_deref(), Some("https://a.example"));
        // The example of RFC 6455, section 1.3.
        let accepted = asked.accepted();
        assert!(accepted.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
        assert!(accepted.contains("Sec-WebSocket-Protocol: cql.mux.v1\r\n"));
        assert!(!accepted.contains("token"));

        let (asked, _) = request(
            "/cql?target=127.0.0.1%3A19042&shard=3&of=4",
            "Sec-WebSocket-Protocol: cql\r\n",
        )
        .unwrap()
        .unwrap();
        let of = NonZeroU16::new(4).unwrap();
        let wish = Wish::Shard { shard: 3, of };
        let target = "127.0.0.1:19042".to_owned();
        assert_eq!(asked.protocol, Protocol::Plain(target, wish));
    }

    #[test]
    fn requests_come_in_pieces() {
        let whole = b"GET /cql HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\
            Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
            Sec-WebSocket-Protocol: cql.mux.v1\r\n\r\n";
        for len in 0..whole.len() {
            assert_eq!(Request::parse(&whole[..len], "/cql"), Ok(None), "{len}");
        }
        let more = [&whole[..], b"\x82\x80"].concat();
        let (_, len) = Request::parse(&more, "/cql").unwrap().unwrap();
        assert_eq!(len, whole.len());
    }

    #[test]
    fn refusals_have_their_status() {
        let mux = "Sec-WebSocket-Protocol: cql.mux.v1\r\n";
        let plain = "Sec-WebSocket-Protocol: cql\r\n";
        for (url, fields, expected) in [
            ("/", mux.to_owned(), 404),
            ("/cql/", mux.to_owned(), 404),
            ("/cql", String::new(), 400),
            (
                "/cql",
                "Sec-WebSocket-Protocol: graphql-ws\r\n".to_owned(),
                400,
            ),
            ("/cql", plain.to_owned(), 400),
            ("/cql?target=%zz", plain.to_owned(), 400),
            ("/cql?target=%+1", plain.to_owned(), 400),
            ("/cql?target=%f", plain.to_owned(), 400),
            ("/cql?target=a&target=b", plain.to_owned(), 400),
            ("/cql?token=secret", mux.to_owned(), 400),
            ("/cql", format!("{mux}Origin: a\r\nOrigin: b\r\n"), 400),
            (
                "/cql",
                "Sec-WebSocket-Protocol: cql.mux.v1, token.%%\r\n".to_owned(),
                401,
            ),
            ("/cql", format!("{mux}Sec-WebSocket-Key: a\r\n"), 400),
        ] {
            assert_eq!(status(url, &fields), expected, "{url} {fields}");
        }
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(HEAD_LEN_MAX));
        assert_eq!(
            Request::parse(long.as_bytes(), "/cql").unwrap_err().status,
            431
        );
        for (text, expected) in [
            ("GET /cql HTTP/1.1\r\nHost: x\r\n\r\n", 426),
            ("POST /cql HTTP/1.1\r\n\r\n", 405),
            ("\x16\x03\x01\x02", 400),
            ("GET /cql HTTP/1.0\r\n\r\n", 405),
        ] {
            let found = Request::parse(text.as_bytes(), "/cql").unwrap_err();
            assert_eq!(found.status, expected, "{text}");
        }
    }

    #[test]
    fn wishes_that_cannot_be_are_none() {
        for query in [
            "shard=4&of=4",
            "shard=1&of=0",
            "shard=1",
            "of=4",
            "shard=-1&of=4",
        ] {
            let url = format!("/cql?target=a:1&{query}");
            let (asked, _) = request(&url, "Sec-WebSocket-Protocol: cql\r\n")
                .unwrap()
                .unwrap();
            assert_eq!(
                asked.protocol,
                Protocol::Plain("a:1".to_owned(), Wish::None)
            );
        }
    }
}
