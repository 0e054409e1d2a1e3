//! Segments of protocol 5, by hand: what a node does with them.

use bytes::BytesMut;

/// How the bytes of a link travel once STARTUP was answered in protocol 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Segmented {
    /// As they are.
    Plain,
    /// Compressed where that makes them shorter.
    Lz4,
}

impl Segmented {
    const fn header_len(self) -> usize {
        match self {
            Self::Plain => 3,
            Self::Lz4 => 5,
        }
    }

    /// A segment with these bytes as they are.
    pub fn put(self, payload: &[u8], is_self_contained: bool) -> Vec<u8> {
        let flag = u64::from(is_self_contained);
        let len = u64::try_from(payload.len()).expect("short");
        assert!(len < 1 << 17);
        let bits = match self {
            Self::Plain => len | flag << 17,
            Self::Lz4 => len | flag << 34,
        };
        let header = &bits.to_le_bytes()[..self.header_len()];
        let crc = crc24(header).to_le_bytes();
        [header, &crc[..3], payload, &crc32(payload).to_le_bytes()].concat()
    }

    /// Moves the bytes in the whole segments at the front of `raw` to `frames`. Says how many segments
    /// there were.
    ///
    /// # Panics
    ///
    /// At a checksum that is wrong.
    pub(crate) fn take(self, raw: &mut BytesMut, frames: &mut BytesMut) -> usize {
        let mut count = 0;
        let front = self.header_len();
        while raw.len() >= front + 3 {
            let number = |bytes: &[u8]| {
                let mut whole = [0; 8];
                whole[..bytes.len()].copy_from_slice(bytes);
                u64::from_le_bytes(whole)
            };
            let (bits, crc) = (number(&raw[..front]), number(&raw[front..front + 3]));
            assert_eq!(
                crc,
                u64::from(crc24(&raw[..front])),
                "the header's checksum"
            );
            let len = usize::try_from(bits & 0x1_ffff).expect("short");
            if raw.len() < front + 3 + len + 4 {
                break;
            }
            let segment = raw.split_to(front + 3 + len + 4);
            let (payload, crc) = segment[front + 3..].split_at(len);
            assert_eq!(
                number(crc),
                u64::from(crc32(payload)),
                "the payload's checksum"
            );
            let inflated = usize::try_from(bits >> 17 & 0x1_ffff).expect("short");
            match self {
                Self::Lz4 if inflated > 0 => {
                    let bytes = lz4_flex::block::decompress(payload, inflated).expect("a block");
                    assert_eq!(bytes.len(), inflated);
                    frames.extend_from_slice(&bytes);
                }
                _ => frames.extend_from_slice(payload),
            }
            count += 1;
        }
        count
    }
}

fn crc24(bytes: &[u8]) -> u32 {
    let mut crc = 0x0087_5060;
    for byte in bytes {
        crc ^= u32::from(*byte) << 16;
        for _ in 0..8 {
            crc <<= 1;
            if crc > 0x00ff_ffff {
                crc ^= 0x0197_4f0b;
            }
        }
    }
    crc
}

/// The checksum of IEEE 802.3, reflected, bit by bit.
fn crc32(payload: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in [0xfa, 0x2d, 0x55, 0xca].iter().chain(payload) {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
        }
    }
    !crc
}
