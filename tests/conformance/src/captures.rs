//! Frames as they went over a socket, between drivers and servers that no one here wrote.
//!
//! The files lie in `captures/`, picked from what the recording proxy of `tests/interop` wrote. A
//! block of a file is one frame: a comment line with its name, then lines of hexadecimal digits that
//! begin with `>` (to the server) or `<` (from it). A request and its answer share a name.

use messina_core::wire::{Dialect, FrameHeader, ProtocolVersion};

use crate::hex::hex;

/// Bytes of a frame header.
const HEADER_LEN: usize = 9;

/// Files of frames by name.
pub const FILES: [(&str, &str); 8] = [
    (
        "cassandra-handshake",
        include_str!("../captures/cassandra-handshake.txt"),
    ),
    (
        "cassandra-types",
        include_str!("../captures/cassandra-types.txt"),
    ),
    (
        "cassandra-rows",
        include_str!("../captures/cassandra-rows.txt"),
    ),
    (
        "cassandra-errors",
        include_str!("../captures/cassandra-errors.txt"),
    ),
    (
        "scylla-driver",
        include_str!("../captures/scylla-driver.txt"),
    ),
    (
        "cassandra-driver",
        include_str!("../captures/cassandra-driver.txt"),
    ),
    ("scylla-crate", include_str!("../captures/scylla-crate.txt")),
    (
        "scylla-driver-extensions",
        include_str!("../captures/scylla-driver-extensions.txt"),
    ),
];

/// One frame.
#[derive(Clone, Debug)]
pub struct Frame {
    /// What it is called in its file.
    pub name: &'static str,
    /// Whether it went to the server.
    pub is_request: bool,
    /// Header and body.
    pub bytes: Vec<u8>,
}

impl Frame {
    /// The bytes of the header.
    ///
    /// # Panics
    ///
    /// If there are not so many.
    #[must_use]
    pub fn header(&self) -> [u8; HEADER_LEN] {
        *self.bytes.first_chunk().expect("a whole header")
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.bytes[HEADER_LEN..]
    }

    /// The number of its stream.
    #[must_use]
    pub fn stream(&self) -> i16 {
        let [_, _, high, low, ..] = self.header();
        i16::from_be_bytes([high, low])
    }

    /// The header of a response, read by the driver.
    ///
    /// # Panics
    ///
    /// If the driver does not take it.
    #[must_use]
    pub fn response_header(&self) -> FrameHeader {
        FrameHeader::parse_response(self.header()).expect("the header of a response")
    }
}

/// What the connections of a file agreed to.
#[must_use]
pub fn dialect(file: &str, version: ProtocolVersion) -> Dialect {
    let extensions = file == "scylla-driver-extensions";
    Dialect {
        result_metadata_id: extensions,
        rate_limit_error: extensions.then_some(0xf000),
        ..Dialect::plain(version)
    }
}

/// All frames of a file.
///
/// # Panics
///
/// If there is no such file or it is not as described.
#[must_use]
pub fn file(name: &str) -> Vec<Frame> {
    let found = FILES.iter().find(|(known, _)| *known == name);
    let (_, text) = found.unwrap_or_else(|| panic!("no file {name}"));
    parse(text)
}

/// The request of a name.
///
/// # Panics
///
/// If the file has none.
#[must_use]
pub fn request(file: &str, name: &str) -> Frame {
    find(file, name, true)
}

/// The response of a name.
///
/// # Panics
///
/// If the file has none.
#[must_use]
pub fn response(file: &str, name: &str) -> Frame {
    find(file, name, false)
}

fn find(file: &str, name: &str, is_request: bool) -> Frame {
    self::file(file)
        .into_iter()
        .find(|frame| frame.name == name && frame.is_request == is_request)
        .unwrap_or_else(|| panic!("no {name} in {file}"))
}

/// Blocks stand between empty lines; one of comments alone is no frame.
fn parse(text: &'static str) -> Vec<Frame> {
    text.split("\n\n")
        .filter_map(|block| {
            let (name, digits) = block.trim().split_once('\n')?;
            let name = name.strip_prefix("# ").expect("a name");
            let mark = digits.chars().next().filter(|mark| *mark != '#')?;
            let lines = digits.lines().map(|line| line.strip_prefix(mark));
            let digits: Option<String> = lines.collect();
            let bytes = hex(&digits.expect("lines of one direction"));
            let declared = bytes[5..HEADER_LEN].try_into().map(u32::from_be_bytes);
            assert_eq!(
                usize::try_from(declared.expect("a length")),
                Ok(bytes.len() - HEADER_LEN),
                "the length of {name}"
            );
            Some(Frame {
                name,
                is_request: mark == '>',
                bytes,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn blocks_become_frames() {
        let frames = parse(
            "# about\n# the file\n\n# a\n> 04 00 0000 05 00000000\n\n# a\n< 84 00 ffff 0c 00000003\n< 0102\n< 03\n",
        );
        let [request, response] = &frames[..] else {
            panic!("{frames:?}")
        };
        assert!(request.is_request && !response.is_request);
        assert_eq!((request.name, response.name), ("a", "a"));
        assert_eq!((request.body(), response.body()), (&[][..], &[1, 2, 3][..]));
        assert_eq!((request.stream(), response.stream()), (0, -1));
    }

    #[test]
    #[should_panic(expected = "the length of a")]
    fn a_length_that_lies_is_noticed() {
        let _ = parse("# a\n> 04 00 0000 05 00000001\n");
    }

    #[test]
    fn a_name_means_one_frame_of_each_direction() {
        for (name, _) in FILES {
            let frames = file(name);
            assert!(!frames.is_empty(), "{name}");
            let names: BTreeSet<_> = frames
                .iter()
                .map(|frame| (frame.name, frame.is_request))
                .collect();
            assert_eq!(names.len(), frames.len(), "{name}");
        }
    }
}
