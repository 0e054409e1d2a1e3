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
    let mut captured: Vec<_> = captured.into_iter().collect();
    captured.push(("driver-cassandra", driver()));
    captured
}

/// The driver for small images is told what a real node has told: statements, rows of every type, pages,
/// conditions, errors, a statement that was forgotten.
fn driver() -> String {
    let about =
        "Apache Cassandra 5.0.9: its answers in all captures, to the driver for small images.";
    let mut recorder = Recorder::new(about, Options::uniform(1, 1));
    for setting in [
        "machine server single",
        "contact 127.0.0.1:9042",
        "login cassandra cassandra",
        "start 1",
    ] {
        recorder.step(setting);
    }
    open(
        &mut recorder,
        0,
        &file("cassandra-handshake"),
        &["options", "startup", "login"],
    );
    let mut driver = Asking {
        recorder,
        number: 1,
        statements: Vec::new(),
    };
    for name in ["cassandra-types", "cassandra-rows", "cassandra-errors"] {
        driver.ask_all(&file(name));
    }
    driver.recorder.text()
}

/// What a captured client has asked, as the driver would be asked for it.
struct Asking {
    recorder: Recorder,
    number: u32,
    /// Ids, and the numbers of the requests that prepared them.
    statements: Vec<(Vec<u8>, u32)>,
}

impl Asking {
    fn ask_all(&mut self, frames: &[Frame]) {
        for (at, frame) in frames.iter().enumerate() {
            let follows = |next: &&Frame| next.name == frame.name && !next.is_request;
            // Answers whose requests were not kept are left out, and what the driver asks by itself.
            let Some(answer) = frames.get(at + 1).filter(follows) else {
                continue;
            };
            if frame.is_request && !["prepare again", "execute again"].contains(&frame.name) {
                self.ask(frames, frame, answer);
            } else if !frame.is_request || frame.name.ends_with("again") {
                self.answer(answer);
            }
        }
    }

    fn ask(&mut self, frames: &[Frame], request: &Frame, answer: &Frame) {
        let body = request.body();
        match request.bytes[4] {
            0x07 => {
                self.number += 1;
                let text = String::from_utf8_lossy(&body[4..][..len_of(&body[..4])]);
                self.recorder
                    .step(&format!("query {} idempotent : {text}", self.number));
            }
            0x09 => {
                self.prepare(request, answer);
                return;
            }
            0x0a => {
                let id = &body[2..][..len_of(&body[..2])];
                if !self.statements.iter().any(|(known, _)| known == id) {
                    // It was prepared before the capture began.
                    let again = |is_request| {
                        let mut named = frames.iter().filter(|frame| frame.name == "prepare again");
                        named
                            .find(|frame| frame.is_request == is_request)
                            .expect("it is there")
                    };
                    self.prepare(again(true), again(false));
                }
                self.number += 1;
                let held = self.statements.iter().find(|(known, _)| known == id);
                let statement = held.expect("it was prepared").1;
                let cells = cells(&body[2 + id.len()..]);
                let number = self.number;
                self.recorder
                    .step(&format!("execute {number} {statement} : {cells}"));
            }
            _ => return,
        }
        self.answer(answer);
    }

    fn prepare(&mut self, request: &Frame, answer: &Frame) {
        self.number += 1;
        let text = String::from_utf8_lossy(&request.body()[4..]);
        self.recorder
            .step(&format!("prepare {} : {text}", self.number));
        self.answer(answer);
        let prepared = &answer.body()[4..];
        let id = prepared[2..][..len_of(&prepared[..2])].to_vec();
        self.statements.push((id, self.number));
    }

    fn answer(&mut self, answer: &Frame) {
        let stream = self.recorder.last_stream();
        self.recorder.arrive(0, &on_stream(answer, stream));
    }
}

/// A length of two or four bytes.
fn len_of(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |len, byte| len << 8 | usize::from(*byte))
}

/// The values in the parameters of a request.
fn cells(parameters: &[u8]) -> String {
    let (flags, mut rest) = (parameters[2], &parameters[3..]);
    if flags & 1 == 0 {
        return String::new();
    }
    let count = len_of(&rest[..2]);
    rest = &rest[2..];
    let mut cells = Vec::new();
    for _ in 0..count {
        let (len, behind) = rest.split_at(4);
        let len = i32::from_be_bytes(len.try_into().expect("four bytes"));
        let bytes = &behind[..usize::try_from(len).unwrap_or(0)];
        cells.push(match len {
            -2 => "unset".to_owned(),
            -1 => "null".to_owned(),
            _ => Hex(bytes).to_string(),
        });
        rest = &behind[bytes.len()..];
    }
    cells.join(" ")
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
