//! The logs of all traces, by their stored digests.
//!
//! A digest that differs means that core puts out other bytes or decides otherwise than when it was stored.
//! `cargo run -p messina-trace` prints the logs. If what changed in them was wanted, `cargo run -p messina-trace
//! --example record` records the traces anew and stores the new digests.

use messina_trace::replay_all;

#[test]
fn the_logs_are_those_that_were_stored() {
    let mut digests = String::new();
    replay_all(&mut digests, false).expect("a string takes everything");
    let stored = include_str!("../digests.txt");
    for (found, stored) in digests.lines().zip(stored.lines()) {
        assert_eq!(found, stored, "`cargo run -p messina-trace` prints the log");
    }
    assert_eq!(digests.lines().count(), stored.lines().count());
}

/// A trace that asks for nothing, or is not understood, would be the same everywhere.
#[test]
fn every_trace_puts_something_out() {
    for trace in messina_trace::library::TRACES {
        let log = messina_trace::replay(trace);
        let has = |start: &str| log.as_str().lines().any(|line| line.starts_with(start));
        assert!(has("> "), "{} writes nothing", trace.name);
        assert!(!has("line "), "{}: {}", trace.name, log.as_str());
        assert!(!has("setting "), "{}: {}", trace.name, log.as_str());
        assert!(
            !log.as_str().contains("cannot be written"),
            "{}",
            trace.name
        );
    }
}
