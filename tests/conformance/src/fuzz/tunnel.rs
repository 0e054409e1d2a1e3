//! The tunnel: frames of any make, and two honest ends whose bytes come in pieces of any size.

use std::collections::{BTreeMap, VecDeque};

use bytes::BytesMut;
use messina_websocket::tunnel::{ChannelId, Limits, Progress, Reason, Tunnel, Wish};

use super::{Input, Target};

/// Bytes of a stranger.
pub(super) const TUNNEL: Target = Target {
    name: "tunnel",
    body: frames,
    corpus: frame_corpus,
};

/// Operations of two ends.
pub(super) const TUNNEL_PAIR: Target = Target {
    name: "tunnel_pair",
    body: pair,
    corpus: pair_corpus,
};

/// A side, the size of pieces, then the stream. Pieces of any size are read the same, what is held
/// is bounded, and after a violation nothing goes on.
fn frames(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let is_client = input.byte() % 2 == 1;
    let size = usize::from(input.byte()).max(1);
    let stream = input.rest();
    let (whole, pieces) = (
        feed(is_client, stream, stream.len().max(1)),
        feed(is_client, stream, size),
    );
    assert_eq!(whole, pieces);
}

/// Everything that can be seen of a stream.
fn feed(is_client: bool, stream: &[u8], size: usize) -> Vec<String> {
    let mut limits = Limits::relay();
    limits.channels_max = 4;
    limits.window = 8 << 10;
    limits.output_max = 1 << 20;
    let mut tunnel = match is_client {
        true => Tunnel::client(limits),
        false => Tunnel::relay(limits),
    };
    let mut ids = Vec::new();
    if is_client {
        ids.extend(tunnel.open("a:1", Wish::None));
        ids.extend(tunnel.open("b:2", Wish::None));
    }
    let mut seen = Vec::new();
    for piece in stream.chunks(size) {
        if let Err(violation) = tunnel.handle_input(piece) {
            seen.push(format!("{violation:?}"));
            assert_eq!(tunnel.handle_input(b"x"), Err(violation));
            assert_eq!(tunnel.open("c:3", Wish::None), None);
            break;
        }
        while let Some(opening) = tunnel.poll_opening() {
            assert!(opening.target.len() <= messina_websocket::tunnel::TARGET_MAX);
            seen.push(format!("{opening:?}"));
            ids.push(opening.channel);
        }
    }
    // A violation drops what was not taken yet, so that is not compared then.
    if seen.last().is_some_and(|last| !last.starts_with("Opening")) {
        let violation = seen.pop();
        return violation.into_iter().collect();
    }
    assert!(tunnel.channel_count() <= 4);
    let changed: Vec<ChannelId> = core::iter::from_fn(|| tunnel.poll_changed()).collect();
    assert!(changed.len() <= tunnel.channel_count(), "each once");
    seen.push(format!("{}", tunnel.is_draining()));
    for id in ids {
        let mut held = BytesMut::new();
        let read = tunnel.read(id, &mut held);
        assert!(held.len() <= 8 << 10, "more than the window");
        let (progress, text) = (tunnel.progress(id), tunnel.close_text(id));
        seen.push(format!("{read:?} {held:?} {progress:?} {text}"));
    }
    while let Some(part) = tunnel.poll_output(100) {
        assert!(!part.is_empty() && part.len() <= 100);
        seen.push(format!("{part:?}"));
    }
    seen
}

fn frame_corpus() -> Vec<Vec<u8>> {
    let open = b"\x01\x01\0\0\0\x08\0\x01\x03\0\x04\0a:1";
    let data = b"\x03\x01\0\0\0\x09\0\x04\0\0\x01\x05\0\0\0\0";
    let rest = b"\x04\x01\0\0\0\x04\0\0\x10\0\0\x05\x01\0\0\0\0\0\x06\x01\0\0\0\x03\0\0no";
    let opened = b"\x02\x01\0\0\0\x02\0\xff\xc0";
    let drain = b"\x07\0\0\0\0\0\0";
    vec![
        [&b"\0\x01"[..], open, data, rest].concat(),
        [&b"\0\x05"[..], open, data, data, rest].concat(),
        [&b"\x01\x03"[..], opened, data, rest, drain].concat(),
        [&b"\0\x02"[..], open, open].concat(),
        [&b"\x01\x02"[..], drain, b"\x09\0\0\0\0\0\0"].concat(),
    ]
}

/// One way between the ends: bytes that left the one and have not come to the other.
type Wire = VecDeque<u8>;

/// What a channel carried in one direction, seen from outside.
#[derive(Default)]
struct Flow {
    sent: Vec<u8>,
    received: usize,
    is_finished: bool,
}

struct Pair {
    client: Tunnel,
    relay: Tunnel,
    to_relay: Wire,
    to_client: Wire,
    /// By channel: to the relay, to the client.
    flows: BTreeMap<ChannelId, [Flow; 2]>,
    closed: Vec<ChannelId>,
}

/// Operations, one byte each with what belongs to it. Honest ends never see a violation, bytes come
/// whole and in order, and once both ends read, everything that was sent arrives.
fn pair(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut limits = Limits::relay();
    limits.channels_max = 6;
    limits.window = 4 << 10 << input.below(3);
    limits.output_max = 1 << (8 + input.below(8));
    let mut pair = Pair {
        client: Tunnel::client(limits),
        relay: Tunnel::relay(limits),
        to_relay: Wire::new(),
        to_client: Wire::new(),
        flows: BTreeMap::new(),
        closed: Vec::new(),
    };
    let mut number = 0_u8;
    for _ in 0..OPERATIONS_MAX {
        if input.is_empty() {
            break;
        }
        pair.operate(&mut input, &mut number);
    }
    pair.settle();
}

impl Pair {
    fn operate(&mut self, input: &mut Input<'_>, number: &mut u8) {
        let operation = input.byte();
        let ids: Vec<ChannelId> = self.flows.keys().copied().collect();
        let id = (!ids.is_empty()).then(|| ids[usize::from(operation >> 4) % ids.len()]);
        match (operation & 0xf, id) {
            (0 | 1, _) => {
                if let Some(id) = self.client.open("node:9042", Wish::None) {
                    self.flows.insert(id, Default::default());
                }
            }
            (2 | 3, _) => self.carry(usize::from(input.word()) + 1, true),
            (4 | 5, _) => self.carry(usize::from(input.word()) + 1, false),
            (6..=8, Some(id)) => {
                // No two bytes that follow each other are the same, and no two writes begin alike.
                *number = number.wrapping_add(1);
                let places = (0_u8..=250).cycle().skip(usize::from(*number));
                let bytes: Vec<u8> = places.take(usize::from(input.word())).collect();
                self.write(id, usize::from(operation & 1), &bytes);
            }
            (9..=11, Some(id)) => self.read(id, usize::from(operation & 1)),
            (12, Some(id)) => {
                self.client.finish(id);
                self.flows.entry(id).or_default()[0].is_finished = true;
            }
            (13, Some(id)) if matches!(self.relay.progress(id), Progress::Open(_)) => {
                self.relay.finish(id);
                self.flows.entry(id).or_default()[1].is_finished = true;
            }
            (14, Some(id)) => {
                match input.byte() % 2 {
                    0 => self.client.close(id, Reason::Abandoned, "enough"),
                    _ => self.relay.close(id, Reason::Reset, "gone"),
                }
                self.closed.push(id);
            }
            (15, Some(id)) if input.one_in(8) => {
                self.client.release(id);
                self.flows.remove(&id);
            }
            _ => {}
        }
    }

    /// Moves bytes from one end to the other, as long as that takes any.
    fn carry(&mut self, most: usize, is_to_relay: bool) {
        let (from, to, wire) = match is_to_relay {
            true => (&mut self.client, &mut self.relay, &mut self.to_relay),
            false => (&mut self.relay, &mut self.client, &mut self.to_client),
        };
        if let Some(bytes) = from.poll_output(most) {
            assert!(!bytes.is_empty() && bytes.len() <= most);
            wire.extend(bytes);
        }
        while to.wants_input() && !wire.is_empty() {
            let piece: Vec<u8> = wire.drain(..wire.len().min(most.min(997))).collect();
            to.handle_input(&piece).expect("honest ends break no rule");
        }
        while let Some(opening) = self.relay.poll_opening() {
            assert_eq!(opening.target, "node:9042");
            self.relay.accept(opening.channel, 50_000);
        }
        while self.relay.poll_changed().is_some() {}
        while self.client.poll_changed().is_some() {}
    }

    fn write(&mut self, id: ChannelId, way: usize, bytes: &[u8]) {
        let tunnel = match way {
            0 => &mut self.client,
            _ => &mut self.relay,
        };
        if let Ok(Some(len)) = tunnel.write(id, bytes)
            && let Some(flows) = self.flows.get_mut(&id)
        {
            assert!(!flows[way].is_finished, "written behind the end");
            flows[way].sent.extend_from_slice(&bytes[..len]);
        }
    }

    fn read(&mut self, id: ChannelId, way: usize) {
        let tunnel = match way {
            0 => &mut self.relay,
            _ => &mut self.client,
        };
        let mut piece = BytesMut::new();
        let read = tunnel.read(id, &mut piece);
        let Some(flows) = self.flows.get_mut(&id) else {
            return;
        };
        let flow = &mut flows[way];
        match read {
            Ok(Some(0)) => assert!(flow.is_finished, "an end that nobody made"),
            Ok(Some(len)) => {
                let expected = &flow.sent[flow.received..flow.received + len];
                assert_eq!(&piece[..], expected, "bytes in order");
                flow.received += len;
            }
            _ => {}
        }
    }

    /// Both ends read all there is until nothing moves.
    fn settle(&mut self) {
        let ids: Vec<ChannelId> = self.flows.keys().copied().collect();
        let mut last = None;
        for _ in 0..TURNS_MAX {
            self.carry(64 << 10, true);
            self.carry(64 << 10, false);
            for id in &ids {
                self.read(*id, 0);
                self.read(*id, 1);
            }
            let received = self.flows.values().flatten().map(|flow| flow.received);
            let state = (
                received.sum::<usize>(),
                self.client.output_len() + self.relay.output_len(),
                self.to_client.len() + self.to_relay.len(),
            );
            if last == Some(state) && state.1 + state.2 == 0 {
                break;
            }
            last = Some(state);
        }
        assert_eq!(
            self.client.output_len() + self.relay.output_len(),
            0,
            "stuck"
        );
        for (id, flows) in &self.flows {
            let is_open = matches!(self.relay.progress(*id), Progress::Open(_))
                && matches!(self.client.progress(*id), Progress::Open(_));
            if is_open && !self.closed.contains(id) {
                for flow in flows {
                    assert_eq!(flow.received, flow.sent.len(), "bytes are missing");
                }
            }
        }
    }
}

fn pair_corpus() -> Vec<Vec<u8>> {
    vec![
        b"\x01\x03\0\x06\0\x10\x02\x10\0\x04\x10\0\x09\x07\x20\0\x04\xff\xff\x0a\x0c\x0d".to_vec(),
        b"\0\0\0\0\0\x06\x10\0\x16\x10\0\x26\x10\0\x02\xff\xff\x04\xff\xff\x07\x40\0\x17\x40\0\x04\x40\0"
            .to_vec(),
        b"\x02\x07\0\x06\xff\xff\x02\0\x01\x02\xff\xff\x09\x04\xff\xff\x06\xff\xff\x0e\0\x02\xff\xff"
            .to_vec(),
        b"\0\x01\0\0\x02\xff\xff\x04\xff\xff\x0e\x01\x04\xff\xff\x0f\x07\x1c\x02\xff\xff\x0b".to_vec(),
    ]
}

const OPERATIONS_MAX: usize = 400;

const TURNS_MAX: usize = 4000;
