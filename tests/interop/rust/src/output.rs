//! Lines out, and the simulator's counters in.

use core::time::Duration;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// One JSON line on standard output; that nobody reads it is no reason to fail.
pub(crate) fn say(line: &Value) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Does one check and prints its line; gives what came of it.
pub(crate) async fn check<T>(
    name: &str,
    table: Option<&str>,
    action: impl Future<Output = Result<(Value, T)>>,
) -> Option<T> {
    let start = Instant::now();
    let result = action.await;
    let mut line = json!({ "check": name });
    if let Some(table) = table {
        line["table"] = json!(table);
    }
    let kept = match result {
        Ok((saw, kept)) => {
            line["saw"] = saw;
            Some(kept)
        }
        Err(error) => {
            line["error"] = json!(format!("{error:#}"));
            None
        }
    };
    line["seconds"] = json!((start.elapsed().as_secs_f64() * 1000.0).round() / 1000.0);
    say(&line);
    kept
}

/// The simulator's counters; null where there is no control port. Blocks for a moment.
pub(crate) fn stats(control: Option<&str>) -> Result<Value> {
    let Some(address) = control else {
        return Ok(Value::Null);
    };
    let mut stream = TcpStream::connect(address).context("no control port")?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(b"{\"cmd\": \"stats\"}\n")?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}
