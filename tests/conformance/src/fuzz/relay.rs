//! What strangers send to the relay before it knows them. The bodies are in the relay itself, beside
//! what they look into.

use messina_relay::fuzzing;

use super::Target;

pub(super) const REQUEST: Target = Target {
    name: "relay_request",
    body: fuzzing::request,
    corpus: || texts(&REQUESTS),
};

pub(super) const TARGET: Target = Target {
    name: "relay_target",
    body: fuzzing::target,
    corpus: || texts(&TARGETS),
};

pub(super) const TOKEN: Target = Target {
    name: "relay_token",
    body: fuzzing::token,
    corpus: || texts(&TOKENS),
};

pub(super) const FIRST_BYTES: Target = Target {
    name: "relay_first_bytes",
    body: fuzzing::first_bytes,
    corpus: || FIRST.iter().map(|bytes| bytes.to_vec()).collect(),
};

pub(super) const LOGIN: Target = Target {
    name: "relay_login",
    body: fuzzing::login,
    corpus: || LOGINS.iter().map(|bytes| bytes.to_vec()).collect(),
};

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

const REQUESTS: [&str; 3] = [
    "GET /cql HTTP/1.1\r\nHost: relay\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\
     Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
     Sec-WebSocket-Protocol: cql.mux.v1, token.c2VjcmV0\r\nOrigin: https://a.example\r\n\r\n\u{2}\u{7f}",
    "GET /cql?target=127.0.0.1%3A19042&shard=3&of=4 HTTP/1.1\r\nUpgrade: websocket\r\n\
     Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: cql\r\n\
     Authorization: Bearer secret\r\n\r\n",
    "GET /metrics HTTP/1.1\r\nHost: relay\r\n\r\n",
];

const TARGETS: [&str; 12] = [
    "db.example:9042",
    "10.0.0.1:19042",
    "[2001:db8::1]:9042",
    "[::ffff:127.0.0.1]:9042",
    "node1",
    "node1=10.0.0.1:9042",
    "10.0.0.0/8:9042,19042-19045",
    "[fd00::]/8:9042",
    "127.1:9042",
    "0x7f.1:9042",
    "2130706433:9042",
    "[fe80::1%lo]:9042",
];

const TOKENS: [&str; 4] = [
    r#"{"exp":1800000060,"sub":"page","targets":["node1","10.0.0.0/8:9042"],"connections":2}"#,
    r#"{"exp":1800000060,"nbf":1800000030}"#,
    r#"{"exp":0}"#,
    "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE4MDAwMDAwNjB9.AAAA",
];

const FIRST: [&[u8]; 5] = [
    b"\x04\0\0\x01\x01\0\0\0\x16\0\x01\0\x0bCQL_VERSION\0\x053.0.0",
    b"\x05\x10\0\0\x05\0\0\0\0",
    b"\x16\x03\x01\0\xf5\x01\0\0\xf1",
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x03\0\0\0\x05\0\0\0\0",
];

const LOGINS: [&[u8]; 4] = [
    b"\x29\x03\x04\0\0\x01\x01\0\0\0\x16\0\x01\0\x0bCQL_VERSION\0\x053.0.0\x04\0\0\x02\x07\0\0\0\x01x\
      \x84\0\0\x01\x03\0\0\0\x03\0\x01A\x84\0\0\x01\x10\0\0\0\x04\xff\xff\xff\xff\
      \x84\0\0\x02\x08\0\0\0\x04\0\0\0\x01",
    b"\x1f\x01\x04\0\0\x01\x01\0\0\0\x16\0\x01\0\x0bCQL_VERSION\0\x053.0.0\
      \x84\0\0\x01\x02\0\0\0\0rest",
    b"\x1f\x02\x04\0\0\x01\x01\0\0\0\x16\0\x01\0\x0bCQL_VERSION\0\x053.0.0\
      \x84\0\0\x01\x03\0\0\0\x03\0\x01A\x84\0\0\x01\0\0\0\0\x0c\0\0\x01\0\0\x06user u",
    b"\x09\x04\x05\0\0\x07\x05\0\0\0\0\x85\0\0\x07\x06\0\0\0\x02\0\0",
];
