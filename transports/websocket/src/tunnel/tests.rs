//! A tunnel against written bytes, against every cut of them, and two tunnels against each other.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "tests may fail"
)]

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroU16;

use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn output(tunnel: &mut Tunnel) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(part) = tunnel.poll_output(5) {
        all.extend_from_slice(&part);
    }
    all
}

/// Both ends take what the other has to send until both are quiet.
fn exchange(one: &mut Tunnel, other: &mut Tunnel) {
    for _ in 0..1000 {
        let (there, back) = (one.poll_output(usize::MAX), other.poll_output(usize::MAX));
        if there.is_none() && back.is_none() {
            return;
        }
        other.handle_input(&there.unwrap_or_default()).unwrap();
        one.handle_input(&back.unwrap_or_default()).unwrap();
    }
    panic!("two tunnels talk for ever");
}

fn small() -> Limits {
    Limits {
        channels_max: 4,
        window: 10_000,
        output_max: 20_000,
    }
}

fn pair() -> (Tunnel, Tunnel) {
    (Tunnel::client(small()), Tunnel::relay(small()))
}

/// An open channel.
fn opened(client: &mut Tunnel, relay: &mut Tunnel) -> ChannelId {
    let id = client.open("node:9042", Wish::None).unwrap();
    exchange(client, relay);
    assert_eq!(relay.poll_opening().unwrap().channel, id);
    relay.accept(id, 7);
    exchange(client, relay);
    assert_eq!(client.progress(id), Progress::Open(NonZeroU16::new(7)));
    while client.poll_changed().is_some() {}
    while relay.poll_changed().is_some() {}
    id
}

fn read_all(tunnel: &mut Tunnel, id: ChannelId) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let mut into = BytesMut::with_capacity(100);
        match tunnel.read(id, &mut into) {
            Ok(Some(len)) if len > 0 => all.extend_from_slice(&into),
            _ => return all,
        }
    }
}

/// Open with a wish for shard 3 of 8, credit to 10,000, "ab", finish.
const FROM_CLIENT: &str = "01 01000000 0700  01 0300 0800  613a\
    04 01000000 0400  10170000\
    03 01000000 0200  6162\
    05 01000000 0000";

/// Heard; opened from port 0xc351, "xyz", closed as reset with "gone", drain.
const FROM_RELAY: &str = "04 01000000 0400  00000000\
    02 01000000 0200  51c3\
    03 01000000 0300  78797a\
    06 01000000 0500  05 676f6e65\
    07 00000000 0000";

#[test]
fn a_client_writes_the_frames_of_the_table() {
    let mut client = Tunnel::client(small());
    let of = NonZeroU16::new(8).unwrap();
    let id = client.open("a:", Wish::Shard { shard: 3, of }).unwrap();
    let parts: [&[u8]; 4] = [b"", b"a", b"", b"b"];
    assert_eq!(client.write_vectored(id, &parts), Ok(Some(2)));
    client.finish(id);
    client.finish(id);
    assert_eq!(client.write(id, b"c"), Err(Reason::Abandoned));
    assert_eq!(output(&mut client), hex(FROM_CLIENT));
}

#[test]
fn a_relay_writes_the_frames_of_the_table() {
    let mut relay = Tunnel::relay(Limits {
        window: 0,
        ..small()
    });
    relay.handle_input(&hex(FROM_CLIENT)).unwrap();
    let id = relay.poll_opening().unwrap().channel;
    relay.accept(id, 0xc351);
    assert_eq!(relay.write(id, b"xyz"), Ok(Some(3)));
    relay.close(id, Reason::Reset, "gone");
    relay.drain();
    relay.drain();
    assert_eq!(output(&mut relay), hex(FROM_RELAY));
}

#[test]
fn the_stream_may_be_cut_anywhere() {
    let (from_client, from_relay) = (hex(FROM_CLIENT), hex(FROM_RELAY));
    let cuts = (0..=from_client.len()).flat_map(|a| (a..=from_client.len()).map(move |b| (a, b)));
    for (first, second) in cuts {
        let mut relay = Tunnel::relay(small());
        let parts = [
            &from_client[..first],
            &from_client[first..second],
            &from_client[second..],
        ];
        for part in parts {
            relay.handle_input(part).unwrap();
        }
        let opening = relay.poll_opening().unwrap();
        assert_eq!(opening.target, "a:");
        let of = NonZeroU16::new(8).unwrap();
        assert_eq!(opening.wish, Wish::Shard { shard: 3, of });
        let id = opening.channel;
        assert_eq!(relay.poll_changed(), Some(id));
        assert_eq!(relay.poll_changed(), None);
        assert_eq!(read_all(&mut relay, id), b"ab");
        assert_eq!(relay.read(id, &mut BytesMut::new()), Ok(Some(0)));

        let (first, second) = (first.min(from_relay.len()), second.min(from_relay.len()));
        let mut client = Tunnel::client(small());
        let id = client.open("a:", Wish::None).unwrap();
        let parts = [
            &from_relay[..first],
            &from_relay[first..second],
            &from_relay[second..],
        ];
        for part in parts {
            client.handle_input(part).unwrap();
        }
        assert_eq!(read_all(&mut client, id), b"xyz");
        let read = client.read(id, &mut BytesMut::new());
        assert_eq!(read, Err(Reason::Reset));
        assert_eq!(client.close_text(id), "gone");
        assert!(client.is_draining());
        assert_eq!(client.open("b:", Wish::None), None);
    }
    // Byte by byte.
    let mut relay = Tunnel::relay(small());
    for byte in &from_client {
        relay.handle_input(&[*byte]).unwrap();
    }
    let id = relay.poll_opening().unwrap().channel;
    assert_eq!(read_all(&mut relay, id), b"ab");
}

#[test]
fn violations_end_the_tunnel() {
    let open = "01 01000000 0700  00 0000 0000  613a";
    let table = [
        ("00 01000000 0000", Violation::UnknownKind(0)),
        ("08 01000000 0000", Violation::UnknownKind(8)),
        ("02 01000000 0200 0000", Violation::WrongSide),
        ("07 00000000 0000", Violation::WrongSide),
        ("03 01000000 0100 61", Violation::UnknownChannel),
        ("06 01000000 0100 00", Violation::UnknownChannel),
        ("03 00000000 0100 61", Violation::UnknownChannel),
        ("07 01000000 0000", Violation::UnknownChannel),
        ("01 01000000 0400", Violation::BadLength),
        ("01 01000000 0602", Violation::BadLength),
        ("01 01000000 0700 000000000061ff", Violation::BadText),
        (&[open, open].concat(), Violation::ChannelOrder),
        (&[open, "03 01000000 0140"].concat(), Violation::BadLength),
        (
            &[open, "03 01000000 0110"].concat(),
            Violation::CreditExceeded,
        ),
        (&[open, "04 01000000 0300"].concat(), Violation::BadLength),
        (
            &[open, "04 01000000 0400 ffffffff"].concat(),
            Violation::CreditOverflow,
        ),
        (&[open, "05 01000000 0100"].concat(), Violation::BadLength),
        (
            &[open, "05 01000000 0000 05 01000000 0000"].concat(),
            Violation::AfterFinish,
        ),
        (
            &[open, "05 01000000 0000 03 01000000 0100 61"].concat(),
            Violation::AfterFinish,
        ),
        (&[open, "06 01000000 0000"].concat(), Violation::BadLength),
        (&[open, "06 01000000 0101"].concat(), Violation::BadLength),
        (
            &[open, "06 01000000 0200 00ff"].concat(),
            Violation::BadText,
        ),
    ];
    for (bytes, violation) in table {
        let mut relay = Tunnel::relay(small());
        assert_eq!(relay.handle_input(&hex(bytes)), Err(violation), "{bytes}");
        assert_eq!(relay.handle_input(&[]), Err(violation));
        assert_eq!(relay.poll_opening(), None);
        assert!(violation.to_string().len() < 60);
    }
    let mut client = Tunnel::client(small());
    let id = client.open("a:", Wish::None).unwrap();
    let twice = hex("02 01000000 0200 0000 02 01000000 0200 0000");
    assert_eq!(client.handle_input(&twice), Err(Violation::OpenedTwice));
    assert_eq!(client.progress(id), Progress::Closed(Reason::Lost));
    assert_eq!(client.poll_changed(), Some(id));
    assert_eq!(client.write(id, b"a"), Err(Reason::Lost));
    let mut client = Tunnel::client(small());
    let open = client.handle_input(&hex("01 01000000 0700 0000000000613a"));
    assert_eq!(open, Err(Violation::WrongSide));
}

#[test]
fn late_frames_of_a_channel_that_is_gone_are_skipped() {
    let (mut client, mut relay) = pair();
    let id = opened(&mut client, &mut relay);
    assert_eq!(relay.write(id, b"late"), Ok(Some(4)));
    relay.finish(id);
    client.release(id);
    exchange(&mut client, &mut relay);
    assert_eq!(relay.progress(id), Progress::Closed(Reason::Abandoned));
    relay.release(id);
    exchange(&mut client, &mut relay);
    assert_eq!((client.channel_count(), relay.channel_count()), (0, 0));
    let next = opened(&mut client, &mut relay);
    assert!(next > id);
}

#[test]
fn each_direction_ends_by_itself() {
    let (mut client, mut relay) = pair();
    let id = opened(&mut client, &mut relay);
    client.finish(id);
    exchange(&mut client, &mut relay);
    assert_eq!(relay.read(id, &mut BytesMut::new()), Ok(Some(0)));
    assert_eq!(relay.write(id, b"answer"), Ok(Some(6)));
    relay.finish(id);
    relay.release(id);
    exchange(&mut client, &mut relay);
    assert_eq!(read_all(&mut client, id), b"answer");
    assert_eq!(client.read(id, &mut BytesMut::new()), Ok(Some(0)));
    client.release(id);
    assert_eq!(client.poll_output(9), None);
}

#[test]
fn the_first_request_goes_before_the_answer_to_open() {
    let (mut client, mut relay) = pair();
    let id = client.open("node:9042", Wish::None).unwrap();
    let much = vec![1; 9000];
    assert_eq!(client.write(id, &much), Ok(Some(EARLY_CREDIT as usize)));
    assert_eq!(client.write(id, &much), Ok(None));
    exchange(&mut client, &mut relay);
    assert_eq!(read_all(&mut relay, id).len(), EARLY_CREDIT as usize);
    assert_eq!(client.poll_changed(), None);
    relay.accept(id, 0);
    exchange(&mut client, &mut relay);
    assert_eq!(client.poll_changed(), Some(id));
    assert_eq!(client.progress(id), Progress::Open(None));
    assert_eq!(client.write(id, &much), Ok(Some(10_000 - 4096)));
}

#[test]
fn a_slow_reader_bounds_its_writer() {
    let (mut client, mut relay) = pair();
    let (slow, quick) = (
        opened(&mut client, &mut relay),
        opened(&mut client, &mut relay),
    );
    let (mut sent, mut got) = (0, 0);
    for _ in 0..100 {
        for (id, sum) in [(slow, &mut sent), (quick, &mut 0)] {
            while let Some(len) = relay.write(id, &[7; 3000]).unwrap() {
                *sum += len;
            }
        }
        exchange(&mut client, &mut relay);
        got += read_all(&mut client, quick).len();
    }
    assert_eq!(sent, 10_000);
    assert!(got >= 500_000, "{got}");
    assert_eq!(read_all(&mut client, slow).len(), 10_000);
    exchange(&mut client, &mut relay);
    while relay.poll_changed().is_some_and(|id| id != slow) {}
    assert_eq!(relay.write(slow, &[7; 3000]), Ok(Some(3000)));
}

#[test]
fn writers_that_wait_for_room_go_on_in_turn() {
    let (mut client, mut relay) = pair();
    relay.limits.window = 1 << 20;
    let ids = [
        opened(&mut client, &mut relay),
        opened(&mut client, &mut relay),
    ];
    let mut first = Vec::new();
    for _ in 0..2 {
        while client.write(ids[0], &[1; 9000]).unwrap().is_some() {}
        assert_eq!(client.write(ids[1], &[1; 9000]), Ok(None));
        assert_eq!(client.poll_changed(), None);
        exchange(&mut client, &mut relay);
        first.extend(client.poll_changed());
        assert!(client.poll_changed().is_some());
        assert_eq!(client.poll_changed(), None);
    }
    first.sort_unstable();
    assert_eq!(first, ids, "another one first each time");
}

/// Pipes that hold little, ends that read only while `wants_input`: both directions full at once.
#[test]
fn two_busy_ends_do_not_wait_for_each_other() {
    const TOTAL: usize = 1_000_000;
    let (mut client, mut relay) = pair();
    let ids = [
        opened(&mut client, &mut relay),
        opened(&mut client, &mut relay),
        opened(&mut client, &mut relay),
    ];
    let mut pipes: [VecDeque<u8>; 2] = Default::default();
    let mut written = [[0; 3]; 2];
    let mut received = [[0; 3]; 2];
    for round in 0..200_000 {
        for (end, tunnel) in [&mut client, &mut relay].into_iter().enumerate() {
            for (channel, id) in ids.into_iter().enumerate() {
                let len = (round * 37 + channel * 11) % 5000 + 1;
                let len = len.min(TOTAL - written[end][channel]);
                let bytes: Vec<u8> = (0..len)
                    .map(|at| ((written[end][channel] + at) % 251) as u8)
                    .collect();
                written[end][channel] += tunnel.write(id, &bytes).unwrap().unwrap_or(0);
                // One end is slow to read.
                if end == 0 || round % 3 == 0 {
                    for byte in read_all(tunnel, id) {
                        assert_eq!(usize::from(byte), received[end][channel] % 251);
                        received[end][channel] += 1;
                    }
                }
            }
            let room = 4096_usize.saturating_sub(pipes[end].len());
            if let Some(part) = tunnel.poll_output(room).filter(|_| room > 0) {
                pipes[end].extend(part);
            }
            assert!(tunnel.output_len() < 20_000 + DATA_MAX + 1000);
            if tunnel.wants_input() {
                let len = pipes[1 - end].len().min(1 + round % 3000);
                let part: Vec<u8> = pipes[1 - end].drain(..len).collect();
                tunnel.handle_input(&part).unwrap();
            }
        }
        if received == [[TOTAL; 3]; 2] {
            return;
        }
    }
    panic!("stuck: written {written:?}, received {received:?}");
}

#[test]
fn a_peer_that_never_reads_is_not_listened_to_for_ever() {
    let mut relay = Tunnel::relay(small());
    let mut number = 0_u32;
    while relay.wants_input() {
        number += 1;
        let mut open = vec![1];
        open.extend_from_slice(&number.to_le_bytes());
        open.extend_from_slice(&hex("0700 0000000000 613a"));
        relay.handle_input(&open).unwrap();
        assert!(number < 100_000);
    }
    assert!(relay.output_len() < 60_000);
    assert_eq!(relay.channel_count(), 4);
    output(&mut relay);
    assert!(relay.wants_input());
}

#[test]
fn what_is_too_much_is_refused_with_its_reason() {
    let (mut client, mut relay) = pair();
    client.limits.channels_max = 6;
    let ids: Vec<_> = core::iter::from_fn(|| client.open("node:1", Wish::None)).collect();
    assert_eq!(ids.len(), 6);
    exchange(&mut client, &mut relay);
    assert_eq!(client.progress(ids[3]), Progress::Opening);
    let too_many = Progress::Closed(Reason::TooMany);
    assert_eq!(client.progress(ids[4]), too_many);
    client.release(ids[5]);
    relay.drain();
    let late = client.open("node:1", Wish::None).unwrap();
    relay.close(ids[0], Reason::Forbidden, &"é".repeat(200));
    exchange(&mut client, &mut relay);
    assert_eq!(client.progress(late), Progress::Closed(Reason::Draining));
    let forbidden = Progress::Closed(Reason::Forbidden);
    assert_eq!(client.progress(ids[0]), forbidden);
    assert_eq!(client.close_text(ids[0]), "é".repeat(127));
    assert_eq!(client.open(&"n".repeat(600), Wish::None), None);
}

#[test]
fn a_wish_that_cannot_be_is_none() {
    for bytes in [
        [0, 1, 0, 8, 0],
        [1, 8, 0, 8, 0],
        [1, 0, 0, 0, 0],
        [9, 1, 0, 8, 0],
    ] {
        assert_eq!(Wish::parse(bytes), Wish::None);
    }
}

#[test]
fn every_reason_reads_back() {
    for byte in 0..=255 {
        let reason = Reason::parse(byte);
        assert!(reason == Reason::Other || reason as u8 == byte);
        assert_ne!(reason, Reason::Lost, "it is never sent");
        assert_eq!(Reason::from_close_code(reason.close_code()), Some(reason));
        assert!(reason.to_string().len() < 40);
    }
    assert_eq!(Reason::NotCql.close_code(), 4010);
    assert_eq!([1006, 3999, 4256].map(Reason::from_close_code), [None; 3]);
}
