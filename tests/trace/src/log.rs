//! What a replay puts out, line by line.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use messina_core::target::Endpoint;
use messina_core::time::Instant;

/// The lines of one replay.
#[derive(Debug, Default)]
pub struct Log {
    text: String,
    /// For whoever records a trace: drained by [`Log::take_operations`].
    operations: Vec<Operation>,
}

/// What is wanted of the network.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a recorder must know them all")]
pub enum Operation {
    /// Bytes for a link.
    Write {
        /// Which.
        link: u32,
        /// They.
        bytes: Vec<u8>,
    },
    /// A link is to be opened.
    Connect {
        /// Its number.
        link: u32,
        /// Where to.
        place: Endpoint,
        /// The wished source port.
        port: Option<u16>,
        /// The wished shard, and of how many.
        shard: Option<(u16, u16)>,
    },
    /// A link is dropped, or closed.
    End {
        /// Which.
        link: u32,
    },
}

impl Log {
    /// An empty one.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            text: String::new(),
            operations: Vec::new(),
        }
    }

    /// Adds a line.
    pub fn line(&mut self, line: fmt::Arguments<'_>) {
        // A string takes what there is.
        let _fits = self.text.write_fmt(line);
        self.text.push('\n');
    }

    /// Bytes that go to a link.
    pub fn written(&mut self, link: u32, bytes: &[u8]) {
        self.line(format_args!("> {link} {}", Hex(bytes)));
        let bytes = bytes.to_vec();
        self.operations.push(Operation::Write { link, bytes });
    }

    /// Something is wanted of the network.
    pub(crate) fn operation(&mut self, operation: Operation) {
        self.operations.push(operation);
    }

    /// When something would happen without another step.
    pub(crate) fn next(&mut self, deadline: Instant) {
        match deadline {
            Instant::FAR_FUTURE => self.line(format_args!("next never")),
            at => self.line(format_args!("next {}", at.as_micros())),
        }
    }

    /// What was wanted of the network since the last call.
    pub fn take_operations(&mut self) -> Vec<Operation> {
        core::mem::take(&mut self.operations)
    }

    /// All lines.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// 64 bits of FNV-1a over the lines.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.text.bytes().fold(OFFSET, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(PRIME)
        })
    }
}

/// Bytes as hexadecimal digits; `-` for none.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a view")]
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("-");
        }
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_the_published_test_vectors() {
        for (text, digest) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            let mut log = Log::new();
            log.text.push_str(text);
            assert_eq!(log.digest(), digest, "{text}");
        }
    }
}
