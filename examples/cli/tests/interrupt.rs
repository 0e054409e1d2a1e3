//! The simulated cluster as a server, and Ctrl-C.
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

use core::time::Duration;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

/// How long a process may take to end after it was told to.
const END_LIMIT: Duration = Duration::from_secs(20);

/// A process that is interrupted, or killed if the test fails before.
struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_messina"))
            .args(arguments)
            .env_remove("MESSINA_CONTACT")
            .env_remove("MESSINA_PASSWORD")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout }
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Interrupts it; how it ended, and the rest of its output.
    fn interrupt(&mut self) -> (ExitStatus, String) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-INT", &pid])
                .status()
                .unwrap()
                .success()
        );
        let told = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(told.elapsed() < END_LIMIT, "does not end");
            thread::sleep(Duration::from_millis(5));
        };
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (status, rest)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already if the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The authority is there while the cluster is, and clients that trust it come in.
#[test]
fn the_authority_of_a_cluster_is_gone_with_it() {
    let (mut running, ready) = sim(&["--tls", "--tls-port", "0"]);
    let ca = ready["ca"].as_str().unwrap().to_owned();
    let contact = ready["contact_tls"][0].as_str().unwrap();
    assert_ne!(ready["contact_tls"], ready["contact"]);
    let query = ["query", "--contact", contact, "--ca", &ca];
    let statement = ["SELECT key FROM system.local", "--format", "json"];
    let ended = Command::new(env!("CARGO_BIN_EXE_messina"))
        .args([&query[..], &statement[..]].concat())
        .output()
        .unwrap();
    assert!(ended.status.success(), "{ended:?}");

    let (status, _) = running.interrupt();
    assert!(status.success());
    assert!(!std::path::Path::new(&ca).exists(), "{ca} is left");
}

fn sim(more: &[&str]) -> (Running, Value) {
    let free = ["sim", "--port", "0", "--shard-aware-port", "0"];
    let mut sim = Running::start(&[&free, more].concat());
    let ready = sim.line();
    (sim, ready)
}

fn control(address: &str, command: &Value) -> Value {
    let mut stream = TcpStream::connect(address).unwrap();
    writeln!(stream, "{command}").unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

#[test]
fn a_simulated_cluster_says_where_it_is_and_ends_when_told() {
    let (mut sim, ready) = sim(&["--dc", "a:2", "--dc", "b:1", "--node-tablets", "2=v1"]);
    assert_eq!(ready["ready"], true);
    let fields: Vec<_> = ready.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["ready", "contact", "control"]);
    let contacts = ready["contact"].as_array().unwrap();
    let hosts: Vec<_> = contacts
        .iter()
        .map(|at| at.as_str().unwrap().rsplit_once(':').unwrap().0)
        .collect();
    assert_eq!(hosts, ["127.0.0.1", "127.0.0.2", "127.0.0.3"]);
    let address = ready["control"].as_str().unwrap();
    let stats = control(address, &json!({"cmd": "stats"}));
    assert_eq!(
        (&stats["ok"], stats["nodes"].as_array().unwrap().len()),
        (&json!(true), 3)
    );
    assert_eq!(control(address, &json!({"cmd": "nonsense"}))["ok"], false);
    let (status, rest) = sim.interrupt();
    assert_eq!((status.code(), rest.as_str()), (Some(0), ""));
}

#[test]
fn an_interrupted_query_says_how_far_it_came() {
    let (mut sim, ready) = sim(&["--nodes", "1", "--shards", "1"]);
    let contact = ready["contact"][0].as_str().unwrap();
    let select = "SELECT key FROM system.local";
    let many = [
        "query",
        "--contact",
        contact,
        "--repeat",
        "1000000000",
        "--concurrency",
        "8",
        select,
    ];
    let mut query = Running::start(&many);
    let address = ready["control"].as_str().unwrap();
    let started = Instant::now();
    while control(address, &json!({"cmd": "stats"}))["nodes"][0]["queries"].as_u64() < Some(200) {
        assert!(started.elapsed() < END_LIMIT, "runs no queries");
        thread::sleep(Duration::from_millis(5));
    }
    let (status, rest) = query.interrupt();
    assert_eq!(status.code(), Some(1));
    let summary: Value = serde_json::from_str(&rest).unwrap();
    let summary = &summary["summary"];
    assert_eq!(summary["interrupted"], true);
    assert_eq!(summary["errors"], json!({}));
    assert_eq!(summary["executed"], summary["ok"]);
    let (status, _) = sim.interrupt();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn an_interrupted_load_says_what_was_done() {
    let (mut sim, ready) = sim(&["--nodes", "1", "--shards", "1"]);
    let contact = ready["contact"][0].as_str().unwrap();
    let load = ["bench", "--contact", contact, "--rows", "10"];
    let address = ready["control"].as_str().unwrap();
    for more in [
        &["--seconds", "600"][..],
        &["--rate", "50", "--seconds", "600"],
    ] {
        let executions =
            || control(address, &json!({"cmd": "stats"}))["nodes"][0]["executes"].as_u64();
        let before = executions().unwrap();
        let mut bench = Running::start(&[&load[..], more].concat());
        let started = Instant::now();
        while executions() < Some(before + 100) {
            assert!(started.elapsed() < END_LIMIT, "makes no requests");
            thread::sleep(Duration::from_millis(5));
        }
        let (status, rest) = bench.interrupt();
        assert_eq!(status.code(), Some(1));
        let report: Value = serde_json::from_str(&rest).unwrap();
        assert_eq!(report["interrupted"], true);
        assert_eq!(report["errors"], json!({}));
        assert!(report["requests"].as_u64() > Some(10), "{report}");
    }
    let (status, _) = sim.interrupt();
    assert_eq!(status.code(), Some(0));
}
