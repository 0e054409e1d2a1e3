//! Running the binary from outside, with a limit on its time.

use core::time::Duration;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use serde_json::Value;

/// Longest that any call may take before it counts as hanging.
const HANG: Duration = Duration::from_secs(60);

/// How a call ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code; none if it was killed.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    #[allow(dead_code, reason = "not every test looks at it")]
    pub(crate) took: Duration,
}

/// Runs `messina` with these arguments and nothing from the environment.
pub(crate) fn messina<A: AsRef<str>>(arguments: &[A]) -> Ended {
    messina_with(arguments, "")
}

/// The same with a text on standard input.
pub(crate) fn messina_with<A: AsRef<str>>(arguments: &[A], input: &str) -> Ended {
    let started = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_messina"))
        .args(arguments.iter().map(AsRef::as_ref))
        .env_remove("MESSINA_CONTACT")
        .env_remove("MESSINA_PASSWORD")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // The child may end without reading.
    let writer =
        thread::spawn(move || drop(std::io::Write::write_all(&mut stdin, input.as_bytes())));
    let (stdout, stderr) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > HANG {
            child.kill().unwrap();
            break child.wait().unwrap();
        }
        thread::sleep(Duration::from_millis(5));
    };
    let took = started.elapsed();
    writer.join().unwrap();
    Ended {
        code: status.code(),
        stdout: stdout.join().unwrap(),
        stderr: stderr.join().unwrap(),
        took,
    }
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    let mut pipe = pipe.unwrap();
    thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).unwrap();
        text
    })
}

/// The JSON values of a stream.
#[allow(dead_code, reason = "not every test reads them")]
pub(crate) fn json_lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}
