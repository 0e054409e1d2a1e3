//! What goes wrong, a person is told: one line that says what to do, in time, with the right exit
//! code; never a panic, never a hang.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

mod support;

use core::net::SocketAddr;
use core::time::Duration;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Instant;

use messina_sim::node::{Credentials, Options};
use messina_sim::tcp::SimServer;
use serde_json::Value;
use support::{Ended, json_lines, messina};

/// The limit that the calls are given, and what a loaded machine may add to it.
const CONNECT_MS: u64 = 3000;
const SLACK: Duration = Duration::from_secs(10);

/// Runs a query that must fail before it connects; once for people, once for programs.
fn refused(contact: &str, more: &[&str], code: i32, kind: &str, hint: &str) -> Ended {
    let limit = CONNECT_MS.to_string();
    let mut arguments = vec![
        "query",
        "--contact",
        contact,
        "--connect-timeout",
        limit.as_str(),
    ];
    arguments.extend(more);
    if !more.iter().any(|argument| argument.contains("SEL")) {
        arguments.push("SELECT key FROM system.local");
    }
    let ended = messina(&arguments);
    assert_one_line(&ended, code, hint);

    arguments.extend(["--format", "json"]);
    let ended = messina(&arguments);
    let object = error_object(&ended);
    assert_eq!(object["kind"], kind, "{ended:?}");
    assert_eq!(object["applied"], "no", "{ended:?}");
    assert!(
        object["message"].as_str().unwrap().contains(hint),
        "{ended:?}"
    );
    assert_eq!(ended.code, Some(code), "{ended:?}");
    ended
}

fn assert_one_line(ended: &Ended, code: i32, hint: &str) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    let stderr = without_log(ended);
    assert_eq!(stderr.lines().count(), 1, "{ended:?}");
    assert!(stderr.starts_with("error: "), "{ended:?}");
    assert!(ended.stderr.contains(hint), "{hint:?} is not in {ended:?}");
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    assert!(
        ended.took < Duration::from_millis(CONNECT_MS) + SLACK,
        "{ended:?}"
    );
}

/// What the driver has to say in its log is said besides.
fn without_log(ended: &Ended) -> String {
    let known = " WARN no node of the cluster may be contacted";
    let lines = ended.stderr.lines();
    let told: Vec<&str> = lines.filter(|line| !line.starts_with(known)).collect();
    told.join("\n")
}

fn error_object(ended: &Ended) -> Value {
    let mut lines = json_lines(&without_log(ended));
    assert_eq!(lines.len(), 1, "{ended:?}");
    let fields = [
        "kind", "message", "code", "applied", "attempt", "host_id", "shard",
    ];
    let object = lines.remove(0)["error"].take();
    for field in fields {
        assert!(object.get(field).is_some(), "{field} is not in {object}");
    }
    object
}

/// A server that treats every connection alike, until it is dropped.
struct Fake {
    address: SocketAddr,
}

impl Fake {
    /// Answers the first bytes of each connection with `answer` and closes it, or with `None` says
    /// nothing and keeps it open for as long as a client may wait.
    fn start(answer: Option<&'static [u8]>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let end = Instant::now() + Duration::from_millis(4 * CONNECT_MS) + 2 * SLACK;
        thread::spawn(move || {
            let mut held = Vec::new();
            while Instant::now() < end && held.len() < 1000 {
                let Ok((mut stream, _)) = listener.accept() else {
                    thread::sleep(Duration::from_millis(2));
                    continue;
                };
                match answer {
                    None => held.push(stream),
                    Some(answer) => {
                        // The client may be gone: that is its affair.
                        let _ = stream.set_nonblocking(false);
                        let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
                        let _ = stream.read(&mut [0; 512]);
                        let _ = stream.write_all(answer);
                    }
                }
            }
        });
        Self { address }
    }

    fn contact(&self) -> String {
        self.address.to_string()
    }
}

#[test]
fn nobody_there() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    refused(
        &free.to_string(),
        &[],
        1,
        "connect",
        "is a node running there?",
    );
    let two = format!("{free},{free}");
    refused(&two, &[], 1, "connect", "is a node running there?");
    refused(
        "no-such-host.invalid",
        &[],
        1,
        "connect",
        "check the host name",
    );
}

#[test]
fn servers_that_are_no_nodes() {
    let http = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    let port = "is this the CQL port";
    for (answer, kind, hint) in [
        (&b""[..], "connect", port),
        (http, "protocol", port),
        // A TLS alert.
        (b"\x15\x03\x01\x00\x02\x02\x46\x00\x00", "protocol", port),
        // A request where a response is due.
        (b"\x04\x00\x00\x00\x05\x00\x00\x00\x00", "protocol", port),
        // SUPPORTED with a length of 2^31 - 1, and with a negative one.
        (b"\x84\x00\x00\x00\x06\x7f\xff\xff\xff", "limit", ""),
        (b"\x84\x00\x00\x00\x06\xff\xff\xff\xff", "protocol", port),
        // A body that ends too early, one of the wrong kind, one for a stream nobody used.
        (
            b"\x84\x00\x00\x00\x06\x00\x00\x00\x02\x00\x05",
            "protocol",
            port,
        ),
        (
            b"\x84\x00\x00\x00\x08\x00\x00\x00\x04\x00\x00\x00\x01",
            "protocol",
            port,
        ),
        (
            b"\x84\x00\x00\x07\x06\x00\x00\x00\x02\x00\x00",
            "protocol",
            port,
        ),
    ] {
        let fake = Fake::start(Some(answer));
        refused(&fake.contact(), &[], 1, kind, hint);
    }
}

#[test]
fn a_server_that_closes_after_supported() {
    // No keys at all, then the connection ends while STARTUP is under way.
    let fake = Fake::start(Some(b"\x84\x00\x00\x00\x06\x00\x00\x00\x02\x00\x00"));
    refused(&fake.contact(), &[], 1, "connect", "is this the CQL port");
}

#[test]
fn a_server_of_another_version() {
    let text = b"Invalid or unsupported protocol version: 4";
    for version in [0x83, 0x84, 0x85] {
        let mut frame = vec![version, 0, 0, 0, 0, 0, 0, 0, 48, 0, 0, 0, 10, 0, 42];
        frame.extend(text);
        let fake = Fake::start(Some(frame.leak()));
        refused(&fake.contact(), &[], 1, "protocol", "protocols 4 and 5");
    }
}

#[test]
fn a_server_that_says_nothing() {
    let fake = Fake::start(None);
    let ended = refused(&fake.contact(), &[], 1, "connect", "--connect-timeout");
    assert!(ended.took >= Duration::from_millis(CONNECT_MS), "{ended:?}");
}

#[test]
fn wrong_usage() {
    for (arguments, hint) in [
        (&["query", "SELECT 1"][..], "--contact"),
        (&["query", "--contact", "a b", "SELECT 1"], "HOST:PORT"),
        (
            &["query", "--contact", "host:99999", "SELECT 1"],
            "HOST:PORT",
        ),
        (
            &["query", "--contact", "h", "--nonsense", "SELECT 1"],
            "--nonsense",
        ),
        (
            &[
                "query",
                "--contact",
                "h",
                "--consistency",
                "MOST",
                "SELECT 1",
            ],
            "LOCAL_QUORUM",
        ),
        (
            &["query", "--contact", "h", "--user", "u", "SELECT 1"],
            "--password",
        ),
        (&["query", "--contact", "h"], "no statement"),
        (
            &["query", "--contact", "h", "/* nothing */"],
            "no statement",
        ),
        (
            &["query", "--contact", "h", "--file", "/no/such/file"],
            "/no/such/file",
        ),
        (
            &["query", "--contact", "h", "--bind", "[1", "SELECT 1"],
            "not JSON",
        ),
        (
            &["query", "--contact", "h", "--bind", "1", "SELECT 1"],
            "JSON array",
        ),
        (
            &[
                "query",
                "--contact",
                "h",
                "--named",
                "--bind",
                "[]",
                "SELECT 1",
            ],
            "JSON object",
        ),
        (
            &[
                "query",
                "--contact",
                "h",
                "--bind",
                "[]",
                "SELECT 1; SELECT 2",
            ],
            "one statement",
        ),
        (
            &["query", "--contact", "h", "--batch", "some", "SELECT 1"],
            "--batch",
        ),
        (
            &[
                "query",
                "--contact",
                "h",
                "--tls-server-name",
                "n",
                "SELECT 1",
            ],
            "--ca",
        ),
        (&["inspect"], "--contact"),
        (
            &["inspect", "--contact", "h", "--format", "csv"],
            "table or json",
        ),
        (
            &["bench", "--contact", "h", "--format", "csv"],
            "table or json",
        ),
        (
            &["bench", "--contact", "h", "--table", "t"],
            "KEYSPACE.TABLE",
        ),
        (
            &[
                "bench",
                "--contact",
                "h",
                "--seconds",
                "1",
                "--requests",
                "1",
            ],
            "--seconds",
        ),
        (
            &["route", "--contact", "h", "SELECT 1; SELECT 2"],
            "one statement",
        ),
        (
            &["route", "--contact", "h", "--bind", "{}", "SELECT 1"],
            "--bind",
        ),
        (&["sim", "--tls-port", "0"], "--tls-cert"),
        (&["sim", "--tls-cert", "file"], "--tls-key"),
        (&["sim", "--dc", "a"], "NAME:NODES"),
        (&["sim", "--node-tablets", "7=v1"], "counted from 0"),
        (&["demo", "--nodes", "0"], "--nodes"),
        (&["nonsense"], "nonsense"),
    ] {
        let ended = messina(arguments);
        assert_one_line(&ended, 2, hint);
        assert_eq!(ended.stdout, "", "{ended:?}");
        let ended = messina(&[arguments, &["--format=json"]].concat());
        if !arguments.contains(&"--format") && arguments[0] != "sim" {
            assert_eq!(error_object(&ended)["kind"], "usage", "{ended:?}");
            assert_eq!(ended.code, Some(2), "{ended:?}");
        }
    }
}

/// Errors of a cluster that is well.
#[test]
fn a_cluster_says_no() {
    let mut options = Options::uniform(2, 2);
    (options.port, options.shard_aware_port) = (0, Some(0));
    options.auth = Some(Credentials::new("u", "p\u{e4}ss"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(SimServer::start(options)).unwrap();
    let contact = server.contacts()[0].to_string();
    let login = ["--user", "u", "--password", "p\u{e4}ss"];
    let with = |more: &[&'static str]| [&login[..], more].concat();

    refused(&contact, &[], 1, "auth", "--user");
    let wrong = refused(
        &contact,
        &["--user", "u", "--password", "wr0ng"],
        1,
        "auth",
        "--password",
    );
    assert!(!wrong.stderr.contains("wr0ng"), "{wrong:?}");
    refused(
        &contact,
        &with(&["--keyspace", "nix"]),
        1,
        "invalid",
        "--keyspace",
    );
    refused(&contact, &with(&["--dc", "nowhere"]), 1, "config", "dc1");
    refused(&contact, &with(&["SELEKT"]), 1, "syntax_error", "SELEKT");
    let bind = [
        "--bind",
        "[1]",
        "SELECT key FROM system.local WHERE key = ?",
    ];
    refused(
        &contact,
        &with(&bind),
        1,
        "encode",
        "text is written as a string",
    );
    let bind = ["--bind", "[]", "SELECT key FROM system.local WHERE key = ?"];
    refused(&contact, &with(&bind), 1, "encode", "key text");
    let table = ["SELECT * FROM system.nothing"];
    refused(&contact, &with(&table), 1, "invalid", "unconfigured table");

    // What fails does not keep the rest from running, and the summary says to how much.
    let mixed = "SELECT key FROM system.local; SELEKT; SELECT key FROM system.local";
    let arguments = ["query", "--contact", &contact, mixed, "--format", "json"];
    let ended = messina(&[&arguments[..], &login[..]].concat());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let lines = json_lines(&ended.stdout);
    assert_eq!(lines.len(), 3, "{ended:?}");
    let summary = &lines[2]["summary"];
    assert_eq!(
        (&summary["executed"], &summary["ok"]),
        (&3.into(), &2.into())
    );
    assert_eq!(summary["errors"]["syntax_error"], 1);
    runtime.block_on(server.stop());
}
