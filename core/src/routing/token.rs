//! Tokens: from the bytes of a partition key to a place on the ring.
//!
//! One component is hashed bare. Two or more are hashed as `u16 length, bytes, 00` each, the
//! final zero included, so a component of a composite key has at most 65,535 bytes. Null and
//! unset components have no token; the caller must not offer them.

use super::murmur3::Murmur3;
use core::fmt;

/// A place on the ring. Never `i64::MIN`, which stands for "before everything" and is no key's
/// token: a hash of `i64::MIN` becomes `i64::MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(i64);

impl Token {
    /// The token of a hash, normalised.
    pub const fn new(hash: i64) -> Self {
        if hash == i64::MIN {
            Self(i64::MAX)
        } else {
            Self(hash)
        }
    }

    /// The number the server knows it by.
    pub const fn value(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How a table turns its partition keys into tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Partitioner {
    /// MurmurHash3: every ordinary table.
    #[default]
    Murmur3,
    /// The first eight bytes of the stream id: CDC log tables.
    Cdc,
}

impl Partitioner {
    /// The partitioner of a class name, with or without its package. `None` if we do not know
    /// it: such tables are used without token routing.
    pub fn from_class_name(class: &str) -> Option<Self> {
        match class.rsplit('.').next() {
            Some("Murmur3Partitioner") => Some(Self::Murmur3),
            Some("CDCPartitioner") => Some(Self::Cdc),
            _ => None,
        }
    }

    /// The token of a key, given its serialized components in the order of the key.
    ///
    /// # Errors
    /// If there is no component, or one of several is longer than 65,535 bytes.
    pub fn token<'a>(
        self,
        components: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Token, KeyError> {
        let mut components = components.into_iter();
        let first = components.next().ok_or(KeyError::NoComponents)?;
        let Some(second) = components.next() else {
            if self == Self::Murmur3 {
                return Ok(Token::new(Murmur3::of(first)));
            }
            let mut hasher = KeyHasher::new(self, KeyShape::Single);
            hasher.component(first)?;
            return Ok(hasher.finish());
        };
        let mut hasher = KeyHasher::new(self, KeyShape::Composite);
        hasher.component(first)?;
        hasher.component(second)?;
        for component in components {
            hasher.component(component)?;
        }
        Ok(hasher.finish())
    }
}

/// Whether a partition key has one column or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "closed by the protocol")]
pub enum KeyShape {
    /// One column: the bare value.
    Single,
    /// Several columns: each with its length and a zero byte.
    Composite,
}

/// Hashes a key while its components are written, without copying them.
#[derive(Clone, Debug)]
pub struct KeyHasher {
    shape: KeyShape,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Murmur3(Murmur3),
    /// The token, once the first component has been seen.
    Cdc(Option<Token>),
}

impl KeyHasher {
    /// A hasher for keys of this shape.
    pub fn new(partitioner: Partitioner, shape: KeyShape) -> Self {
        let state = match partitioner {
            Partitioner::Murmur3 => State::Murmur3(Murmur3::default()),
            Partitioner::Cdc => State::Cdc(None),
        };
        Self { shape, state }
    }

    /// Adds the next component, in the order of the key.
    ///
    /// # Errors
    /// If it is longer than 65,535 bytes and the key has several.
    pub fn component(&mut self, bytes: &[u8]) -> Result<(), KeyError> {
        match (&mut self.state, self.shape) {
            (State::Murmur3(hash), KeyShape::Single) => hash.write(bytes),
            (State::Murmur3(hash), KeyShape::Composite) => {
                let len = u16::try_from(bytes.len())
                    .map_err(|_| KeyError::ComponentTooLong { len: bytes.len() })?;
                hash.write(&len.to_be_bytes());
                hash.write(bytes);
                hash.write(&[0]);
            }
            (State::Cdc(token), _) => {
                token.get_or_insert_with(|| stream_id_token(bytes));
            }
        }
        Ok(())
    }

    /// The token of the components so far.
    pub fn finish(&self) -> Token {
        match &self.state {
            State::Murmur3(hash) => Token::new(hash.finish()),
            State::Cdc(token) => token.unwrap_or(Token::new(i64::MIN)),
        }
    }
}

/// A CDC stream id is 16 bytes, the first eight are its token. The server gives anything else
/// the least hash.
fn stream_id_token(stream_id: &[u8]) -> Token {
    let token = match stream_id.first_chunk::<8>() {
        Some(first) if stream_id.len() == 16 => i64::from_be_bytes(*first),
        _ => i64::MIN,
    };
    Token::new(token)
}

/// Why a key has no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    /// No component was given.
    NoComponents,
    /// A component of a composite key is longer than its 16-bit length can say.
    ComponentTooLong {
        /// Its length.
        len: usize,
    },
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoComponents => f.write_str("partition key without components"),
            Self::ComponentTooLong { len } => {
                write!(
                    f,
                    "component of a composite partition key has {len} bytes, at most 65535"
                )
            }
        }
    }
}

impl core::error::Error for KeyError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    fn token(components: &[&[u8]]) -> i64 {
        let components = components.iter().copied();
        Partitioner::Murmur3.token(components).unwrap().value()
    }

    #[test]
    fn composite_keys_have_lengths_and_zeros() {
        let (one, two, three) = (
            1_i32.to_be_bytes(),
            2_i32.to_be_bytes(),
            3_i32.to_be_bytes(),
        );
        let minus_three = (-3_i64).to_be_bytes();
        let table: &[(&[&[u8]], i64)] = &[
            (&[&one], -4069959284402364209),
            (&[&one, b"a"], 6516349416904725244),
            (&[b"a", &one], 8247712171917364652),
            (&[&one, &two, &three], 8040417039359760683),
            (&[b"", b"x"], -3884662248573342722),
            (&[b""], 0),
            (&[&one, b"two", &minus_three], -1967853151028610859),
            (&[&minus_three, &one, b"two"], -1362158079883839136),
        ];
        for &(components, expected) in table {
            assert_eq!(token(components), expected, "{components:x?}");
        }
    }

    #[test]
    fn least_hash_becomes_greatest_token() {
        let key = 0xee96_1629_b0b5_ad1d_319e_18e8_3892_dbed_u128.to_be_bytes();
        assert_eq!(token(&[&key]), i64::MAX);
        assert_eq!(Token::new(i64::MIN + 1).value(), i64::MIN + 1);
        assert_eq!(std::format!("{}", Token::new(-5)), "-5");
    }

    #[test]
    fn long_components_are_refused_in_composite_keys_only() {
        let longest = vec![7_u8; 65_535];
        let longer = vec![7_u8; 65_536];
        let murmur3 = Partitioner::Murmur3;
        assert!(murmur3.token([&longest[..], b"x"]).is_ok());
        let refused = Err(KeyError::ComponentTooLong { len: 65_536 });
        assert_eq!(murmur3.token([b"x", &longer[..]]), refused);
        assert_eq!(murmur3.token([&longer[..], b"x"]), refused);
        assert!(murmur3.token([&longer[..]]).is_ok());
        assert_eq!(murmur3.token([]), Err(KeyError::NoComponents));
    }

    #[test]
    fn stream_ids_carry_their_token() {
        let table: &[(&[u8], i64)] = &[
            (
                &0x0000_0000_0000_0001_1234_5678_9abc_def0_u128.to_be_bytes(),
                1,
            ),
            (
                &0xffff_ffff_ffff_fffe_1234_5678_9abc_def0_u128.to_be_bytes(),
                -2,
            ),
            (
                &0x8000_0000_0000_0000_0000_0000_0000_0000_u128.to_be_bytes(),
                i64::MAX,
            ),
            (&[0; 8], i64::MAX),
            (&[], i64::MAX),
        ];
        for &(stream_id, expected) in table {
            assert_eq!(
                Partitioner::Cdc.token([stream_id]).unwrap().value(),
                expected
            );
        }
    }

    #[test]
    fn class_names_with_and_without_package() {
        let table = [
            (
                "org.apache.cassandra.dht.Murmur3Partitioner",
                Some(Partitioner::Murmur3),
            ),
            ("Murmur3Partitioner", Some(Partitioner::Murmur3)),
            ("com.scylladb.dht.CDCPartitioner", Some(Partitioner::Cdc)),
            ("org.apache.cassandra.dht.RandomPartitioner", None),
            ("", None),
        ];
        for (class, expected) in table {
            assert_eq!(Partitioner::from_class_name(class), expected, "{class}");
        }
    }

    #[test]
    fn errors_say_what_has_no_token() {
        let long = KeyError::ComponentTooLong { len: 65_536 };
        let told = "component of a composite partition key has 65536 bytes, at most 65535";
        assert_eq!(std::format!("{long}"), told);
        let none = std::format!("{}", KeyError::NoComponents);
        assert_eq!(none, "partition key without components");
    }
}
