//! Requests beside a handshake, against nodes that do not take them so early. The test plays the
//! node.

use super::*;
use messina_sim::node::Options;

/// A frame of the node.
fn frame(stream: u8, opcode: u8, body: &[u8]) -> Vec<u8> {
    let len = u8::try_from(body.len()).unwrap();
    [&[0x84, 0, 0, stream, opcode, 0, 0, 0, len], body].concat()
}

/// ERROR: protocol.
fn too_early(stream: u8) -> Vec<u8> {
    frame(stream, 0, &[0, 0, 0, 0x0a, 0, 1, b'x'])
}

fn authenticate(stream: u8) -> Vec<u8> {
    frame(stream, 3, &[0, 1, b'A'])
}

fn success() -> Vec<u8> {
    frame(0, 0x10, &[0xff; 4])
}

fn supported(stream: u8) -> Vec<u8> {
    frame(stream, 6, &[0, 0])
}

fn void(stream: u8) -> Vec<u8> {
    frame(stream, 8, &[0, 0, 0, 1])
}

fn keyspace_set(stream: u8) -> Vec<u8> {
    frame(stream, 8, &[0, 0, 0, 3, 0, 2, b'k', b's'])
}

const OPTIONS: u8 = 5;
const STARTUP: u8 = 1;
const QUERY: u8 = 7;
const AUTH_RESPONSE: u8 = 0x0f;

const LOGIN: [(&str, &[u8]); 3] = [
    ("contactPoints", b"node"),
    ("user", b"alice"),
    ("password", b"secret"),
];

impl Shell<Instance> {
    fn scripted() -> Self {
        let mut shell = Self::new(Options::uniform(1, 1));
        shell.script = Some(Vec::new());
        shell
    }

    /// Stream and opcode of each frame that was sent since the last look.
    fn sent(&mut self) -> Vec<(u8, u8)> {
        while !self.step() {}
        let sent = self.script.replace(Vec::new()).unwrap();
        let (mut frames, mut rest) = (Vec::new(), &sent[..]);
        while let [4, _, 0, stream, opcode, 0, 0, high, low, after @ ..] = rest {
            frames.push((*stream, *opcode));
            rest = &after[usize::from(*high) << 8 | usize::from(*low)..];
        }
        assert!(rest.is_empty());
        frames
    }

    fn says(&mut self, link: u32, frames: &[Vec<u8>]) -> Vec<(u8, u8)> {
        self.feed(link, &frames.concat());
        self.sent()
    }

    fn outcome(&mut self, request: u32) -> Option<Ended> {
        self.ended.remove(&request)
    }
}

#[test]
fn requests_that_come_too_early_are_sent_again_behind_the_login() {
    let mut shell = Shell::scripted();
    let start = shell.begin(&LOGIN);
    assert_eq!(shell.sent(), [(0, OPTIONS), (1, STARTUP)]);
    let first = shell.ask("SELECT 1", RunOptions::default());
    assert_eq!(shell.sent(), []);
    assert_eq!(shell.says(0, &[supported(0)]), []);
    assert_eq!(
        shell.says(0, &[authenticate(1)]),
        [(0, AUTH_RESPONSE), (1, QUERY)]
    );
    assert_eq!(shell.outcome(start), Some(Ended::Done));
    assert_eq!(shell.says(0, &[too_early(1)]), []);
    let second = shell.ask("SELECT 2", RunOptions::default());
    assert_eq!(shell.sent(), [], "it waits for the login as well");
    assert_eq!(shell.says(0, &[success()]), [(1, QUERY), (2, QUERY)]);
    shell.says(0, &[void(2), void(1)]);
    for request in [first, second] {
        assert_eq!(told(shell.outcome(request).unwrap()).bits, 1, "one attempt");
    }
    // Such an error means what it says from now on.
    let third = shell.ask("SELECT 3", RunOptions::default());
    assert_eq!(shell.sent().len(), 1);
    shell.says(0, &[too_early(1), too_early(2)]);
    assert_eq!(failed(shell.outcome(third).unwrap()).1, 0x0a);
}

#[test]
fn the_keyspace_is_asked_for_again_behind_the_login() {
    let mut shell = Shell::scripted();
    let start = shell.begin(&[LOGIN[0], LOGIN[1], LOGIN[2], ("keyspace", b"ks")]);
    let first = shell.ask("SELECT 1", RunOptions::default());
    shell.sent();
    assert_eq!(
        shell.says(0, &[supported(0), authenticate(1)]),
        [(0, AUTH_RESPONSE), (1, QUERY)]
    );
    assert_eq!(shell.says(0, &[too_early(1)]), []);
    assert_eq!(shell.says(0, &[success()]), [(1, QUERY)]);
    assert_eq!((shell.outcome(start), shell.outcome(first)), (None, None));
    assert_eq!(shell.says(0, &[keyspace_set(1)]), [(1, QUERY)]);
    assert_eq!(shell.outcome(start), Some(Ended::Done));
    shell.says(0, &[void(1)]);
    assert_eq!(told(shell.outcome(first).unwrap()).bits, 1);
}

#[test]
fn a_node_that_does_not_like_it_is_met_step_by_step() {
    let mut shell = Shell::scripted();
    let start = shell.begin(&LOGIN[..1]);
    assert_eq!(shell.sent(), [(0, OPTIONS), (1, STARTUP)]);
    shell.instance.handle_closed(0);
    assert_eq!(shell.sent(), [(0, OPTIONS)]);
    assert_eq!(shell.says(1, &[supported(0)]), [(0, STARTUP)]);
    assert_eq!(shell.says(1, &[frame(0, 2, &[])]), []);
    assert_eq!(shell.outcome(start), Some(Ended::Done));
    assert_eq!(shell.asked.len(), 2);
    // A second time it is a failure.
    let mut shell = Shell::scripted();
    let start = shell.begin(&LOGIN[..1]);
    for link in 0..2 {
        assert_eq!(shell.sent()[0], (0, OPTIONS));
        shell.instance.handle_closed(link);
    }
    assert_eq!(shell.sent(), []);
    assert_eq!(failed(shell.outcome(start).unwrap()), transport(2));
}
