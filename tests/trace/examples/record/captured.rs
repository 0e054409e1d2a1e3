//! Frames of real Cassandra nodes, from the captures of `tests/conformance`.
//!
//! A captured request goes out with its own body; its answer comes back with the stream id that the player
//! chose for it, the only bytes that are not the captured ones.

use messina_conformance::captures::{Frame, file};
use messina_sim::node::Options;
use messina_trace::log::Hex;

use crate::recorder::{Pieces, Recorder};

pub(crate) fn all() -> Vec<(&'static str, String)> {
    let files = [
        ("cassandra-handshake", Pieces::Bytes),
        ("cassandra-types", Pieces::Drawn),
        ("cassandra-rows", Pieces::Bytes),
        ("cassandra-errors", Pieces::Drawn),
    ];
    let captured = files.map(|(name, pieces)| (name, record(name, pieces)));
    captured.into_iter().collect()
}

/// What a connection opens with, and what belongs to connections of its own.
const OPENING: [&str; 4] = ["options", "startup", "login", "register"];
const OTHERS: [&str; 3] = ["wrong password", "version 9", "query before startup"];

fn record(name: &'static str, pieces: Pieces) -> String {
    let about = format!("Apache Cassandra 5.0.9: its answers in the captures named {name}.");
    let mut recorder = Recorder::new(&about, Options::uniform(1, 1));
    recorder.pieces = pieces;
    recorder.step("login cassandra cassandra");
    recorder.step("events");
    let opening = file("cassandra-handshake");
    open(&mut recorder, 0, &opening, &OPENING);
    let frames = file(name);
    let mut number = 0;
    for (at, frame) in frames.iter().enumerate() {
        if OPENING.contains(&frame.name) || OTHERS.contains(&frame.name) {
            continue;
        }
        if frame.is_request {
            number += 1;
            let (opcode, body) = (frame.bytes[4], Hex(frame.body()));
            recorder.step(&format!("raw {number} {opcode} {body}"));
        } else if frame.bytes[4] == 0x0c {
            recorder.arrive(0, &frame.bytes);
        } else {
            // An answer whose request was not kept gets one that says nothing.
            if !frames[..at].last().is_some_and(|last| last.is_request) {
                number += 1;
                recorder.step(&format!("query {number} idempotent : {}", frame.name));
            }
            recorder.arrive(0, &on_stream(frame, recorder.last_stream()));
        }
    }
    if name == "cassandra-handshake" {
        for (link, other) in (1..).zip(OTHERS) {
            let answers = ["options", "startup", other];
            open(&mut recorder, link, &frames, &answers);
        }
    }
    recorder.text()
}

/// A connection whose frames of these names come one after the other.
fn open(recorder: &mut Recorder, link: u32, frames: &[Frame], names: &[&str]) {
    recorder.step(&format!("open {link}"));
    for name in names {
        let answer = frames
            .iter()
            .find(|frame| !frame.is_request && frame.name == *name);
        let answer = answer.unwrap_or_else(|| panic!("no answer to {name}"));
        recorder.arrive(link, &on_stream(answer, recorder.last_stream()));
    }
}

fn on_stream(frame: &Frame, stream: [u8; 2]) -> Vec<u8> {
    let mut bytes = frame.bytes.clone();
    bytes[2..4].copy_from_slice(&stream);
    bytes
}
