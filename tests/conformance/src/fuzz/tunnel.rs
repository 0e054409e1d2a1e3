//! A tunnel reads the same however its bytes come, and two tunnels lose and mix nothing whatever
//! their owners do.

use bytes::BytesMut;
use messina_websocket::tunnel::{
    ChannelId, DATA_MAX, Limits, Opening, Progress, Reason, Tunnel, Violation, Wish,
};

use super::{Input, Target};

pub(super) const TUNNEL: Target = Target {
    name: "tunnel",
    body,
    corpus,
};

pub(super) const TUNNEL_PAIR: Target = Target {
    name: "tunnel_pair",
    body: pair_body,
    corpus: pair_corpus,
};

/// Small enough that inputs reach every bound.
fn limits() -> Limits {
    let mut limits = Limits::relay();
    limits.channels_max = 4;
    limits.window = 6000;
    limits.output_max = 3000;
    limits
}

/// What an owner sees at the end of a stream.
#[derive(Debug, PartialEq)]
struct Seen {
    outcome: Result<(), Violation>,
    openings: Vec<Opening>,
    channels: Vec<Channel>,
    is_draining: bool,
    output: Vec<u8>,
}

/// How far it came, what was read, how reading ends, and the text of its close.
type Channel = (Progress, Vec<u8>, Result<Option<usize>, Reason>, String);

/// Which end, a list of chunk sizes, then the stream.
fn body(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let is_client = input.one_in(2);
    let sizes = input.short();
    let stream = input.rest();
    let whole = read(stream, is_client, &[]);
    let chunked = read(stream, is_client, sizes);
    assert_eq!(whole, chunked);
}

fn read(stream: &[u8], is_client: bool, sizes: &[u8]) -> Seen {
    let mut tunnel = match is_client {
        true => Tunnel::client(limits()),
        false => Tunnel::relay(limits()),
    };
    let mut opened = Vec::new();
    if is_client {
        opened.extend((0..3).filter_map(|_| tunnel.open("node:9042", Wish::None)));
    }
    let mut sizes = sizes.iter().map(|size| usize::from(*size) + 1).cycle();
    let (mut rest, mut outcome) = (stream, Ok(()));
    while !rest.is_empty() && outcome.is_ok() {
        let len = sizes.next().unwrap_or(rest.len()).min(rest.len());
        let (now, later) = rest.split_at(len);
        outcome = tunnel.handle_input(now);
        rest = later;
    }
    if let Err(violation) = outcome {
        assert_eq!(tunnel.handle_input(&[]), Err(violation), "it stays");
        assert!(tunnel.is_draining());
    }
    let openings: Vec<Opening> = core::iter::from_fn(|| tunnel.poll_opening()).collect();
    opened.extend(openings.iter().map(|opening| opening.channel));
    assert!(opened.len() <= 4);
    let changed: Vec<ChannelId> = core::iter::from_fn(|| tunnel.poll_changed()).collect();
    assert!(changed.len() <= tunnel.channel_count(), "each once");
    let channels = opened.iter().map(|id| {
        let progress = tunnel.progress(*id);
        let text = tunnel.close_text(*id).to_owned();
        let mut into = BytesMut::new();
        let _ = tunnel.read(*id, &mut into);
        assert!(into.len() <= 6000, "not more than the window");
        let last = tunnel.read(*id, &mut BytesMut::new());
        (progress, into.to_vec(), last, text)
    });
    let channels = channels.collect();
    let mut output = Vec::new();
    while let Some(part) = tunnel.poll_output(100) {
        assert!(!part.is_empty() && part.len() <= 100);
        output.extend_from_slice(&part);
    }
    Seen {
        outcome,
        openings,
        channels,
        is_draining: tunnel.is_draining(),
        output,
    }
}

/// One channel as its two owners remember it.
struct Stream {
    id: ChannelId,
    /// Bytes written and read, from the client and from the relay.
    written: [u64; 2],
    read: [u64; 2],
    is_accepted: bool,
    is_finished: [bool; 2],
}

/// The byte at a place of a stream: another one for each channel and direction.
fn byte_at(id: ChannelId, end: usize, place: u64) -> u8 {
    let sum = u64::from(id.number()) * 31 + place + end as u64 * 97;
    (sum % 251) as u8
}

/// Two ends and the bytes on their way.
struct Pair {
    ends: [Tunnel; 2],
    pipes: [Vec<u8>; 2],
    streams: Vec<Stream>,
}

/// A row of operations on both ends.
fn pair_body(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut pair = Pair {
        ends: [Tunnel::client(limits()), Tunnel::relay(limits())],
        pipes: [Vec::new(), Vec::new()],
        streams: Vec::new(),
    };
    while !input.is_empty() {
        pair.step(&mut input);
    }
    // Everything that was written arrives once both ends read.
    for _ in 0..10_000 {
        let before = pair.sums();
        for end in 0..2 {
            pair.send(end, usize::MAX);
            pair.receive(end, usize::MAX);
            for at in 0..pair.streams.len() {
                pair.read(at, end, usize::MAX);
            }
        }
        if pair.pipes.iter().all(Vec::is_empty) && pair.sums() == before {
            break;
        }
    }
    for stream in &pair.streams {
        assert_eq!(stream.read, stream.written, "{:?}", stream.id);
    }
}

impl Pair {
    fn step(&mut self, input: &mut Input<'_>) {
        let (operation, end) = (input.below(10), input.below(2));
        let len = usize::from(input.word()) % 6000;
        let at = input.below(self.streams.len());
        match operation {
            0 => self.open(),
            1..=3 => self.write(at, end, len),
            4 => self.read(at, end, len),
            5 | 6 => self.send(end, len),
            7 => self.receive(end, len),
            8 => self.finish(at, end),
            _ if input.one_in(8) => self.close(at, end),
            _ if input.one_in(32) => self.ends[1].drain(),
            _ => {}
        }
        for end in &mut self.ends {
            while end.poll_changed().is_some() {}
            // Data up to the bound and one frame; a few frames for each of four channels.
            assert!(end.output_len() <= 3000 + DATA_MAX + 7 + 40 * 300);
        }
    }

    fn open(&mut self) {
        if let Some(id) = self.ends[0].open("node:9042", Wish::None) {
            self.streams.push(Stream {
                id,
                written: [0; 2],
                read: [0; 2],
                is_accepted: false,
                is_finished: [false; 2],
            });
        }
    }

    fn write(&mut self, at: usize, end: usize, len: usize) {
        let Some(stream) = self.streams.get_mut(at) else {
            return;
        };
        if end == 1 && !stream.is_accepted {
            return;
        }
        let first = stream.written[end];
        let bytes: Vec<u8> = (first..first + len as u64)
            .map(|place| byte_at(stream.id, end, place))
            .collect();
        let (front, back) = bytes.split_at(len / 3);
        match self.ends[end].write_vectored(stream.id, &[front, back]) {
            Ok(taken) => stream.written[end] += taken.unwrap_or(0) as u64,
            Err(_) => assert!(stream.is_finished[end], "an open channel takes bytes"),
        }
    }

    fn read(&mut self, at: usize, end: usize, room: usize) {
        let Some(stream) = self.streams.get_mut(at) else {
            return;
        };
        let mut into = BytesMut::new();
        let front = usize::from(room < 5000);
        if front == 1 {
            into.reserve(room + 1);
            into.extend_from_slice(b"x");
        }
        if let Ok(Some(len)) = self.ends[end].read(stream.id, &mut into) {
            assert_eq!(into.len(), front + len);
            let from = 1 - end;
            for byte in &into[front..] {
                assert_eq!(*byte, byte_at(stream.id, from, stream.read[from]));
                stream.read[from] += 1;
            }
        }
    }

    fn send(&mut self, end: usize, max: usize) {
        if max > 0
            && let Some(part) = self.ends[end].poll_output(max)
        {
            self.pipes[end].extend_from_slice(&part);
        }
    }

    fn receive(&mut self, end: usize, len: usize) {
        if !self.ends[end].wants_input() {
            return;
        }
        let pipe = &mut self.pipes[1 - end];
        let part: Vec<u8> = pipe.drain(..len.min(pipe.len())).collect();
        let taken = self.ends[end].handle_input(&part);
        assert_eq!(taken, Ok(()), "both keep the rules");
        while let Some(opening) = self.ends[1].poll_opening() {
            assert_eq!(opening.target, "node:9042");
            self.ends[1].accept(opening.channel, 1);
            let mut streams = self.streams.iter_mut();
            if let Some(stream) = streams.find(|stream| stream.id == opening.channel) {
                stream.is_accepted = true;
            }
        }
        // What was refused or closed is over for both.
        let client = &self.ends[0];
        let is_closed = |id| matches!(client.progress(id), Progress::Closed(_));
        let (closed, kept) = core::mem::take(&mut self.streams)
            .into_iter()
            .partition(|stream: &Stream| is_closed(stream.id));
        self.streams = kept;
        for stream in closed {
            self.release(stream.id);
        }
    }

    fn finish(&mut self, at: usize, end: usize) {
        if let Some(stream) = self.streams.get_mut(at)
            && (end == 0 || stream.is_accepted)
        {
            self.ends[end].finish(stream.id);
            stream.is_finished[end] = true;
        }
    }

    fn close(&mut self, at: usize, end: usize) {
        if at < self.streams.len() {
            let stream = self.streams.remove(at);
            self.ends[end].close(stream.id, Reason::Idle, "over");
            self.release(stream.id);
        }
    }

    fn release(&mut self, id: ChannelId) {
        self.ends.iter_mut().for_each(|end| end.release(id));
    }

    fn sums(&self) -> u64 {
        let streams = self.streams.iter();
        streams.map(|stream| stream.read[0] + stream.read[1]).sum()
    }
}

/// The frames of the format's table, whole and cut.
fn corpus() -> Vec<Vec<u8>> {
    let hex = crate::hex::hex;
    let from_client = hex("01 01000000 0700 01 0300 0800 613a \
        04 01000000 0400 10170000 03 01000000 0200 6162 \
        01 02000000 0700 00 0000 0000 623a 06 02000000 0300 00 6e6f \
        05 01000000 0000");
    let from_relay = hex("04 01000000 0400 00000000 02 01000000 0200 51c3 \
        03 01000000 0300 78797a 04 02000000 0400 00000000 \
        06 01000000 0500 05 676f6e65 07 00000000 0000 05 02000000 0000");
    let input = |front: u8, sizes: &[u8], stream: &[u8]| {
        let count = u8::try_from(sizes.len()).expect("few");
        [&[front, count], sizes, stream].concat()
    };
    vec![
        input(0, &[], &from_client),
        input(0, &[0], &from_client),
        input(0, &[6, 0, 3], &from_client),
        input(1, &[], &from_relay),
        input(1, &[0, 9], &from_relay),
    ]
}

/// Opens, writes both ways, passes it on, reads, ends.
fn pair_corpus() -> Vec<Vec<u8>> {
    let step = |operation: u8, end: u8, len: u16, at: u8| {
        let [high, low] = len.to_be_bytes();
        [operation, end, high, low, at]
    };
    let pass = [
        step(5, 0, 5999, 0),
        step(7, 1, 5999, 0),
        step(5, 1, 5999, 0),
        step(7, 0, 5999, 0),
    ]
    .concat();
    let talk = [step(1, 0, 5900, 0), step(1, 1, 5900, 1), step(2, 1, 50, 0)].concat();
    let hear = [step(4, 0, 5900, 0), step(4, 1, 300, 1), step(4, 1, 5600, 0)].concat();
    let open = [step(0, 0, 0, 0), step(0, 0, 0, 0)].concat();
    let finish = [step(8, 0, 0, 0), step(8, 1, 0, 0)].concat();
    let close = [step(9, 0, 0, 0).to_vec(), vec![7]].concat();
    vec![
        [
            &open[..],
            &talk,
            &pass,
            &hear,
            &talk,
            &pass,
            &hear,
            &finish,
            &pass,
        ]
        .concat(),
        [
            &open[..],
            &pass,
            &talk.repeat(20),
            &pass,
            &hear,
            &close,
            &pass,
        ]
        .concat(),
        [
            &open.repeat(4)[..],
            &pass,
            &talk,
            &close,
            &pass,
            &open,
            &pass,
            &hear,
        ]
        .concat(),
    ]
}
