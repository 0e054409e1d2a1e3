//! Golden frames with some bytes changed: every fuzz body takes them all.

use messina_conformance::fuzz_bodies::{ALL, FuzzBody};
use messina_conformance::golden::RESPONSES;
use messina_core::wire::{Opcode, ProtocolVersion};

/// A small generator with a fixed sequence, so that a failure comes back.
struct Sequence(u64);

impl Sequence {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap() % bound.max(1)
    }
}

/// The corpus in the form that the fuzz bodies take.
fn corpus() -> Vec<(FuzzBody, Vec<u8>)> {
    let [header, response, values, cell] = ALL.map(|(_, body)| body);
    let place =
        |list: &[u8], item| u8::try_from(list.iter().position(|each| *each == item).unwrap());
    let versions = ProtocolVersion::ALL.map(ProtocolVersion::number);
    let opcodes = Opcode::ALL.map(Opcode::code);
    let mut corpus = vec![
        (header, vec![0x84, 0, 0, 1, 8, 0, 0, 0, 4]),
        (
            values,
            vec![
                0, 3, 0, 0, 0, 4, 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
            ],
        ),
        (values, vec![1, 1, 0, 1, b'p', 0, 0, 0, 1, 7]),
    ];
    for golden in RESPONSES {
        let dialect = golden.dialect;
        let extensions = u8::from(dialect.result_metadata_id)
            | u8::from(dialect.rate_limit_error.is_some()) << 1;
        let version = place(&versions, dialect.version.number()).unwrap();
        let opcode = place(&opcodes, golden.opcode.code()).unwrap();
        let front = [version, extensions, golden.flags.0, opcode];
        corpus.push((response, [&front[..], &golden.bytes()].concat()));
    }
    for bytes in CELLS {
        corpus.push((cell, bytes.to_vec()));
    }
    corpus
}

/// A type, then a cell of it.
const CELLS: &[&[u8]] = &[
    b"\x00\x20\x00\x09\x00\x00\x00\x02\x00\x00\x00\x04\x00\x00\x00\x01\xff\xff\xff\xff",
    b"\x00\x21\x00\x0d\x00\x02\x00\x00\x00\x01\x00\x00\x00\x01a\x00\x00\x00\x08\0\0\0\0\0\0\0\x07",
    b"\x00\x31\x00\x03\x00\x09\x00\x0d\x00\x0e\x00\x00\x00\x04\x00\x00\x00\x01\x00\x00\x00\x00",
    b"\x00\x30\x00\x01k\x00\x01u\x00\x02\x00\x01a\x00\x09\x00\x01b\x00\x22\x00\x10\x00\x00\x00\x04\0\0\0\x07",
    b"\x00\x00\x00\x1aVectorType(FloatType , 3 )\x3f\xc0\0\0\xc0\0\0\0\0\0\0\0",
    b"\x00\x00\x00\x17VectorType(ShortType,2)\x02\x00\x01\x02\xff\xfe",
    b"\x00\x15\xf0\xff\xff\xff\xfe\xf0\xff\xff\xff\xfe\xff\xff\xff\xff\xff\xff\xff\xff\xfe",
    b"\x00\x06\x00\x00\x00\x02\xd8\xf0",
    b"\x00\x0e\x00\x00\x00\x7f",
];

/// Changes, cuts, repeats or inserts bytes in a few places.
fn bend(sequence: &mut Sequence, bytes: &mut Vec<u8>) {
    const STRIKING: [u8; 6] = [0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff];
    for _ in 0..=sequence.below(3) {
        let at = sequence.below(bytes.len());
        let byte = match sequence.below(2) {
            0 => STRIKING[sequence.below(STRIKING.len())],
            _ => sequence.next().to_be_bytes()[0],
        };
        match sequence.below(6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, byte),
            2 => bytes.extend_from_within(at..),
            3 if !bytes.is_empty() => drop(bytes.remove(at)),
            _ => {
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
        }
    }
}

#[test]
fn the_corpus_itself() {
    for (body, bytes) in corpus() {
        body(&bytes);
    }
}

#[test]
fn bent_copies_of_the_corpus() {
    let corpus = corpus();
    let mut sequence = Sequence(0x9e37_79b9_7f4a_7c15);
    for round in 0..30_000 {
        let (body, bytes) = &corpus[round % corpus.len()];
        let mut bytes = bytes.clone();
        bend(&mut sequence, &mut bytes);
        body(&bytes);
    }
}
