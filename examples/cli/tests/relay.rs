//! `messina relay` from outside: its command line, its memory with many tunnels and with clients
//! that do not read, and its end.
//!
//! The client here is written by hand, from RFC 6455 and the tunnel's table of frames.
#![cfg(target_os = "linux")]

mod support;

use core::net::SocketAddr;
use core::time::Duration;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use serde_json::Value;
use support::messina;

/// A running relay; killed when dropped.
struct Relay {
    child: Child,
    address: SocketAddr,
}

impl Relay {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_messina"))
            .args(["relay", "--listen", "127.0.0.1:0", "--log", "warn"])
            .args(arguments)
            .env_remove("MESSINA_RELAY_TOKEN")
            .env_remove("MESSINA_PASSWORD")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(ready["ready"], true, "{line}");
        let address = ready["listen"].as_str().unwrap().parse().unwrap();
        assert_eq!(ready["url"], format!("ws://{address}/cql"));
        Self { child, address }
    }

    /// Kilobytes of memory that are resident.
    fn resident_kb(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.unwrap().split_whitespace().next();
        number.unwrap().parse().unwrap()
    }

    fn interrupt(&self) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status();
        assert!(sent.unwrap().success());
    }

    fn ended(mut self) -> Option<i32> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(start.elapsed() < Duration::from_secs(30), "it does not end");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Becomes a WebSocket, or the first line of the refusal.
    fn socket(&self, query: &str, protocols: &str) -> Result<TcpStream, String> {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let request = format!(
            "GET /cql{query} HTTP/1.1\r\nHost: relay\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Protocol: {protocols}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
        let answer = String::from_utf8(answer).unwrap();
        let first = answer.lines().next().unwrap().to_owned();
        match first.starts_with("HTTP/1.1 101 ") {
            true => Ok(stream),
            false => Err(first),
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const OPTIONS: &[u8] = &[4, 0, 0, 1, 5, 0, 0, 0, 0];

/// One binary message of fewer than 126 bytes, masked by zeros.
fn send(stream: &mut TcpStream, bytes: &[u8]) {
    let len = u8::try_from(bytes.len()).unwrap();
    assert!(len < 126);
    let message = [&[0x82, 0x80 | len, 0, 0, 0, 0], bytes].concat();
    stream.write_all(&message).unwrap();
}

/// The next message: its opcode and content.
fn receive(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut head = [0; 2];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head[0] & 0x80, 0x80, "whole messages only");
    let len = match head[1] {
        126 => {
            let mut len = [0; 2];
            stream.read_exact(&mut len).unwrap();
            usize::from(u16::from_be_bytes(len))
        }
        127 => panic!("a long message"),
        len => usize::from(len),
    };
    let mut content = vec![0; len];
    stream.read_exact(&mut content).unwrap();
    (head[0] & 0xf, content)
}

/// Opens channel 1 and sends its first bytes along.
fn open_channel(stream: &mut TcpStream, target: &str) {
    open_channel_of(stream, 1, target);
}

fn open_channel_of(stream: &mut TcpStream, number: u8, target: &str) {
    let mut bytes = vec![1, number, 0, 0, 0];
    bytes.extend(u16::try_from(5 + target.len()).unwrap().to_le_bytes());
    bytes.extend([0; 5]);
    bytes.extend(target.as_bytes());
    bytes.extend([3, number, 0, 0, 0]);
    bytes.extend(u16::try_from(OPTIONS.len()).unwrap().to_le_bytes());
    bytes.extend(OPTIONS);
    send(stream, &bytes);
}

/// A node that answers each connection in this way, once its first frame has come.
fn node(answer: fn(TcpStream)) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut frame = [0; 9];
            if stream.read_exact(&mut frame).is_ok() {
                assert_eq!(frame, OPTIONS);
                kept.push(stream.try_clone().unwrap());
                answer(stream);
            }
        }
    });
    address
}

/// This process has both ends of all connections.
fn raise_descriptor_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
}

#[test]
fn a_thousand_idle_tunnels_are_small() {
    raise_descriptor_limit();
    let node = node(|mut stream| stream.write_all(OPTIONS).unwrap()).to_string();
    let relay = Relay::start(&["--allow", &node, "--token", "secret"]);
    let before = relay.resident_kb();
    let mut tunnels = Vec::new();
    for turn in 0..1000 {
        if turn % 2 == 0 {
            let query = format!("?target={node}");
            let mut stream = relay.socket(&query, "cql, token.c2VjcmV0").unwrap();
            send(&mut stream, OPTIONS);
            assert_eq!(receive(&mut stream), (2, OPTIONS.to_vec()));
            tunnels.push(stream);
        } else {
            let mut stream = relay.socket("", "cql.mux.v1, token.c2VjcmV0").unwrap();
            open_channel(&mut stream, &node);
            let mut came = Vec::new();
            while !came.ends_with(OPTIONS) {
                let (opcode, content) = receive(&mut stream);
                assert_eq!(opcode, 2);
                came.extend(content);
            }
            tunnels.push(stream);
        }
    }
    let after = relay.resident_kb();
    eprintln!("1000 idle tunnels: {before} kB before, {after} kB after");
    assert!(after <= 64 << 10, "{after} kB");
    relay.interrupt();
    for stream in &mut tunnels {
        let (mut opcode, mut content) = receive(stream);
        while opcode != 8 {
            (opcode, content) = receive(stream);
        }
        assert_eq!(content[..2], 1012_u16.to_be_bytes());
        // Say goodbye as well.
        stream.write_all(&[0x88, 0x80, 0, 0, 0, 0]).unwrap();
    }
    assert_eq!(relay.ended(), Some(0));
}

#[test]
fn clients_that_do_not_read_cost_little() {
    const COUNT: u64 = 40;
    let node = node(|mut stream| {
        thread::spawn(move || {
            let flood = vec![1; 256 << 10];
            while stream.write_all(&flood).is_ok() {}
        });
    })
    .to_string();
    let relay = Relay::start(&["--allow", &node]);
    let before = relay.resident_kb();
    let mut kept = Vec::new();
    for turn in 0..COUNT {
        if turn % 2 == 0 {
            let query = format!("?target={node}");
            let mut stream = relay.socket(&query, "cql").unwrap();
            send(&mut stream, OPTIONS);
            kept.push(stream);
        } else {
            let mut stream = relay.socket("", "cql.mux.v1").unwrap();
            open_channel(&mut stream, &node);
            // As much credit as there can be.
            let more = u32::MAX - (4 << 10);
            let mut bytes = vec![4, 1, 0, 0, 0, 4, 0];
            bytes.extend(more.to_le_bytes());
            send(&mut stream, &bytes);
            kept.push(stream);
        }
    }
    // And one with many channels, which share what may wait for it.
    let mut stream = relay.socket("", "cql.mux.v1").unwrap();
    for number in 1..=200 {
        open_channel_of(&mut stream, number, &node);
        let mut bytes = vec![4, number, 0, 0, 0, 4, 0];
        bytes.extend((u32::MAX - (4 << 10)).to_le_bytes());
        send(&mut stream, &bytes);
    }
    kept.push(stream);
    // Until the kernel's buffers are full, and then some.
    let mut last = 0;
    for _ in 0..4 {
        thread::sleep(Duration::from_millis(500));
        last = relay.resident_kb();
        eprintln!("{COUNT} slow readers: {before} kB before, {last} kB now");
    }
    let each = (last.saturating_sub(before)) / COUNT;
    assert!(each <= 512, "{each} kB for each");
}

#[test]
fn what_is_not_safe_is_wrong_usage() {
    for (arguments, told) in [
        (&["relay"][..], "nothing is allowed"),
        (
            &["relay", "--allow", "a:1", "--listen", "0.0.0.0:0"],
            "needs --token",
        ),
        (&["relay", "--allow", "a"], "ports"),
        (&["relay", "--allow", "127.1:9042"], "spelling"),
        (&["relay", "--allow", "10.0.0.1/8:9042"], "network"),
        (&["relay", "--allow", "a:1", "--token", ""], "empty"),
        (
            &["relay", "--allow", "a:1", "--token-key", "/dev/null"],
            "32 bytes",
        ),
        (&["relay", "--allow", "a:1", "--user", "u"], "--password"),
        (&["relay", "--issue-token", "60"], "--token-key"),
        (&["relay", "--allow", "a:1", "--tls-cert", "c"], "--tls-key"),
    ] {
        let ended = messina(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(told), "{arguments:?}: {ended:?}");
        assert_eq!(ended.stdout, "");
    }
}

/// Two processes: one that has the key and makes a token, one that lets its holder in.
#[test]
fn a_token_that_was_issued_lets_in_for_its_target() {
    let node = node(|mut stream| stream.write_all(OPTIONS).unwrap()).to_string();
    let file = std::env::temp_dir().join(format!("messina-relay-key-{}", std::process::id()));
    fs::write(&file, "0123456789abcdef0123456789abcdef\n").unwrap();
    let key = file.to_str().unwrap();
    let issue = |target: &str| {
        let head = ["relay", "--token-key", key, "--issue-token", "60"];
        let ended = messina(&[&head[..], &["--target", target]].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let told: Value = serde_json::from_str(&ended.stdout).unwrap();
        told["token"].as_str().unwrap().to_owned()
    };
    let head = ["relay", "--token-key", key, "--issue-token", "60"];
    let wrong = messina(&[&head[..], &["--target", "10.0.0.1/8:1"]].concat());
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    let alias = format!("one={node}");
    let relay = Relay::start(&["--allow", &alias, "--allow", &node, "--token-key", key]);
    let coded = |token: &str| {
        let coded = data_encoding::BASE64URL_NOPAD.encode(token.as_bytes());
        format!("cql, token.{coded}")
    };
    let mut stream = relay.socket("?target=one", &coded(&issue("one"))).unwrap();
    send(&mut stream, OPTIONS);
    assert_eq!(receive(&mut stream), (2, OPTIONS.to_vec()));
    let by_address = format!("?target={node}");
    let refused = relay
        .socket(&by_address, &coded(&issue("one")))
        .unwrap_err();
    assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
    assert!(relay.socket(&by_address, &coded(&issue(&node))).is_ok());
    fs::remove_file(&file).unwrap();
}

/// A line for each connection and channel, and none tells what was sent or what the token is.
#[test]
fn the_audit_tells_who_and_where_to() {
    let node = node(|mut stream| stream.write_all(b"a private answer").unwrap()).to_string();
    let mut child = Command::new(env!("CARGO_BIN_EXE_messina"))
        .args(["relay", "--listen", "127.0.0.1:0", "--allow", &node])
        .args(["--token", "secret"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    let address = ready["listen"].as_str().unwrap().parse().unwrap();
    let relay = Relay { child, address };
    let query = format!("?target={node}");
    let mut stream = relay.socket(&query, "cql, token.c2VjcmV0").unwrap();
    send(&mut stream, OPTIONS);
    assert_eq!(receive(&mut stream), (2, b"a private answer".to_vec()));
    drop(stream);
    let refused = relay.socket("?target=evil%0aline:1", "cql, token.c2VjcmV0");
    assert!(refused.unwrap_err().starts_with("HTTP/1.1 403 "));
    relay.interrupt();
    assert_eq!(relay.ended(), Some(0));
    let mut told = String::new();
    stderr.read_to_string(&mut told).unwrap();
    let count = |text: &str| told.lines().filter(|line| line.contains(text)).count();
    assert_eq!(count("event=\"connection\""), 1, "{told}");
    assert_eq!(count("event=\"channel\""), 1, "{told}");
    assert_eq!(count("to_node=9 to_client=16"), 1, "{told}");
    assert_eq!(count("event=\"refused\""), 1, "{told}");
    assert_eq!(count("event=\"end\""), 1, "{told}");
    assert_eq!(told.lines().count(), 4, "{told}");
    for secret in ["secret", "c2VjcmV0", "private"] {
        assert!(!told.contains(secret), "{told}");
    }
}

#[test]
fn tokens_and_targets_are_refused_with_a_status() {
    let relay = Relay::start(&["--allow", "127.0.0.1:9042", "--token", "secret"]);
    for (query, protocols, status) in [
        ("", "cql.mux.v1", 401),
        ("", "cql.mux.v1, token.d3Jvbmc", 401),
        ("?target=127.0.0.1:9043", "cql, token.c2VjcmV0", 403),
        ("?target=127.1:9042", "cql, token.c2VjcmV0", 403),
        ("?token=secret", "cql.mux.v1, token.c2VjcmV0", 400),
    ] {
        let refused = relay.socket(query, protocols).unwrap_err();
        assert!(
            refused.starts_with(&format!("HTTP/1.1 {status} ")),
            "{query}: {refused}"
        );
    }
    assert!(relay.socket("", "cql.mux.v1, token.c2VjcmV0").is_ok());
    relay.interrupt();
    assert_eq!(relay.ended(), Some(0));
}
