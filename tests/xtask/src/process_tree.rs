//! Ends a child process together with everything that it started, each by its process id. Nothing else on the
//! machine is touched. Without `/proc` only the child itself is ended.

use core::time::Duration;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

/// Ends a child and what it started, and waits until they are gone. Each process is stopped before its
/// children are listed, so that none is started unseen.
pub(crate) fn end_with_descendants(child: &mut Child) {
    let mut found = vec![child.id()];
    let mut next = 0;
    while let Some(&id) = found.get(next) {
        signal("STOP", id);
        found.extend(children(id));
        next += 1;
    }
    for &id in &found {
        signal("KILL", id);
    }
    let _ = child.kill();
    let _ = child.wait();
    let deadline = Instant::now() + Duration::from_secs(2);
    while found.iter().any(|&id| is_running(id)) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whether the process is there and not just waiting to be reaped.
pub(crate) fn is_running(id: u32) -> bool {
    stat(Path::new(&format!("/proc/{id}"))).is_some_and(|(state, _)| state != "Z")
}

fn signal(name: &str, id: u32) {
    let mut command = Command::new("kill");
    command
        .args([format!("-{name}"), id.to_string()])
        .stderr(Stdio::null());
    let _ = command.status();
}

/// Process ids right below `parent`. Empty where there is no `/proc`.
fn children(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    entries
        .filter(|path| stat(path).is_some_and(|(_, found)| found == parent))
        .filter_map(|path| path.file_name()?.to_str()?.parse().ok())
        .collect()
}

/// State and parent of a process, from "id (name) state parent ..": the name may hold anything, so this reads
/// behind its last parenthesis.
fn stat(process: &Path) -> Option<(String, u32)> {
    let text = fs::read_to_string(process.join("stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}
