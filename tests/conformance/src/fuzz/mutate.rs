//! Bends inputs: bytes changed, cut, repeated, inserted or taken from another input.

/// A small generator whose sequence its seed decides, so that a finding comes back.
#[derive(Clone, Debug)]
pub(super) struct Sequence(u64);

impl Sequence {
    /// Every seed will do.
    pub(super) const fn new(seed: u64) -> Self {
        // The shifts below keep 0 for ever, and only 0.
        Self(if seed == 0 {
            0x9e37_79b9_7f4a_7c15
        } else {
            seed
        })
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap_or(0) % bound.max(1)
    }

    fn byte(&mut self) -> u8 {
        let [_, byte, ..] = self.next().to_be_bytes();
        byte
    }
}

/// A bent copy of one of the corpus, which is not empty.
pub(super) fn bent(sequence: &mut Sequence, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = corpus[sequence.below(corpus.len())].clone();
    // Mostly a few changes, so that what is behind them is still reached.
    let most = [1, 2, 4, 32][sequence.below(4)];
    for _ in 0..=sequence.below(most) {
        bend(sequence, &mut bytes, corpus);
    }
    bytes.truncate(LEN_MAX);
    bytes
}

fn bend(sequence: &mut Sequence, bytes: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    let at = sequence.below(bytes.len());
    let byte = match sequence.below(2) {
        0 => STRIKING[sequence.below(STRIKING.len())],
        _ => sequence.byte(),
    };
    match sequence.below(10) {
        0 => bytes.truncate(at),
        1 => bytes.insert(at, byte),
        2 => bytes.extend_from_within(at..),
        3 if !bytes.is_empty() => drop(bytes.remove(at)),
        4 => {
            let other = &corpus[sequence.below(corpus.len())];
            let end = at.saturating_add(sequence.below(40)).min(bytes.len());
            let start = sequence.below(other.len());
            let len = sequence.below(40).min(other.len() - start);
            bytes.splice(at..end, other[start..start + len].iter().copied());
        }
        5 => {
            let noise: Vec<u8> = (0..sequence.below(24)).map(|_| sequence.byte()).collect();
            bytes.splice(at..at, noise);
        }
        _ => {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
    }
}

const STRIKING: [u8; 6] = [0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff];

/// Inputs are cut to this, so that a run of one stays short.
const LEN_MAX: usize = 4096;
