//! Prints what the replays of all traces put out on this machine; with `digests` only their digests.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a command talks to its user")]

fn main() {
    let is_whole = std::env::args().nth(1).as_deref() != Some("digests");
    let mut text = String::new();
    if messina_trace::replay_all(&mut text, is_whole).is_ok() {
        print!("{text}");
    }
}
