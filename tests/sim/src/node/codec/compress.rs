//! Body compression: raw LZ4 blocks behind a big-endian length, raw Snappy blocks.
//!
//! Output of decompression is bounded by [`BODY_LEN_MAX`] before anything is allocated.

use super::super::error::CqlError;

/// The largest uncompressed body taken from a client.
const BODY_LEN_MAX: usize = 64 << 20;

/// A negotiated algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Lz4,
    Snappy,
}

impl Compression {
    /// By the name in STARTUP, without regard to case.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "lz4" => Some(Self::Lz4),
            "snappy" => Some(Self::Snappy),
            _ => None,
        }
    }

    pub(crate) fn compress(self, body: &[u8]) -> Vec<u8> {
        match self {
            Self::Lz4 => {
                let len = u32::try_from(body.len()).unwrap_or(u32::MAX);
                let mut out = len.to_be_bytes().to_vec();
                out.extend_from_slice(&lz4_flex::block::compress(body));
                out
            }
            Self::Snappy => snap::raw::Encoder::new()
                .compress_vec(body)
                .unwrap_or_default(),
        }
    }

    pub(crate) fn decompress(self, body: &[u8]) -> Result<Vec<u8>, CqlError> {
        let result = match self {
            Self::Lz4 => lz4(body),
            Self::Snappy => snappy(body),
        };
        result.ok_or_else(|| {
            CqlError::Server(format!(
                "CQL frame {} uncompression failure",
                match self {
                    Self::Lz4 => "LZ4",
                    Self::Snappy => "Snappy",
                }
            ))
        })
    }
}

fn lz4(body: &[u8]) -> Option<Vec<u8>> {
    let (len, block) = body.split_first_chunk::<4>()?;
    let len = usize::try_from(u32::from_be_bytes(*len)).ok()?;
    if len > BODY_LEN_MAX {
        return None;
    }
    let out = lz4_flex::block::decompress(block, len).ok()?;
    (out.len() == len).then_some(out)
}

fn snappy(body: &[u8]) -> Option<Vec<u8>> {
    if snap::raw::decompress_len(body).ok()? > BODY_LEN_MAX {
        return None;
    }
    snap::raw::Decoder::new().decompress_vec(body).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_bodies_have_their_known_form() {
        assert_eq!(Compression::Lz4.compress(&[]), [0, 0, 0, 0, 0]);
        assert_eq!(Compression::Snappy.compress(&[]), [0]);
        assert_eq!(
            Compression::Lz4.decompress(&[0, 0, 0, 0, 0]),
            Ok(Vec::new())
        );
        assert_eq!(Compression::Snappy.decompress(&[0]), Ok(Vec::new()));
    }

    #[test]
    fn garbage_and_lying_lengths_are_refused() {
        for bad in [
            &[][..],
            &[0, 0],
            &[0x7f, 0xff, 0xff, 0xff, 0],
            &[0, 0, 0, 9, 0x10, 1],
        ] {
            assert!(matches!(
                Compression::Lz4.decompress(bad),
                Err(CqlError::Server(_))
            ));
        }
        assert!(
            Compression::Snappy
                .decompress(&[0xff, 0xff, 0xff, 0xff, 0x0f])
                .is_err()
        );
    }
}
