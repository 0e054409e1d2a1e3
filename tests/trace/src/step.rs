//! The lines of a trace.
//!
//! A line is one step; lines that begin with `#` and empty ones are none. Times are microseconds on the
//! transport's clock; bytes are hexadecimal digits.
//!
//! | line | step |
//! |---|---|
//! | `login USER PASSWORD` | the session has a user |
//! | `tablets off\|v1\|v2` | the newest tablets extension that is wanted |
//! | `early` | requests may be sent beside the handshake |
//! | `events` | the connection registers for events |
//! | `frame-max N` | longest body that is read |
//! | `in-flight N`, `waiting N` | requests under way at once, and in the queue |
//! | `node HOST_ID ADDRESS DC RACK SHARDS IGNORE_MSB TOKEN ..` | a node of the cluster |
//! | `machine server\|mcu full\|single` | the whole driver for small images is replayed, not one connection |
//! | `keyspace NAME tablets\|vnodes strong\|weak DC=FACTOR ..` | a keyspace |
//! | `table KEYSPACE NAME` | a table of it |
//! | `prefer DC RACK` | the preferred places; `-` is none |
//! | `down HOST_ID`, `up HOST_ID` | what is heard of a node |
//! | `at MICROS` | so late it is; what is due happens |
//! | `open LINK` | a link is open |
//! | `< LINK BYTES` | bytes came, in one piece |
//! | `end LINK WHY` | a link has ended |
//! | `prepare N : TEXT` | the application prepares; `N` names the request and the statement |
//! | `query N OPTION .. : TEXT` | it runs a text |
//! | `execute N STATEMENT OPTION .. : CELL ..` | it executes; a cell is bytes, `null` or `unset` |
//! | `raw N OPCODE BYTES` | it sends this body |
//! | `cancel N` | it gives a request up |
//! | `close N` | it closes |
//! | `route STATEMENT OPTION .. : CELL ..` | what would be planned is asked for |
//!
//! Options: `timeout=MICROS`, `consistency=NUMBER`, `serial=NUMBER`, `page=ROWS`, `state=BYTES`, `idempotent`,
//! `traced`, `streamed`.
//!
//! For the machine alone; its links are numbered by itself, and what is told of the cluster it reads:
//!
//! | line | step |
//! |---|---|
//! | `contact HOST:PORT,..`, `use KEYSPACE`, `seed N` | how the session is set |
//! | `pool host\|shard N` | how many links |
//! | `steering none\|port\|shard` | what the transport can do about source ports |
//! | `wall MICROS` | the time of the world when the clock began |
//! | `start N` | it starts |
//! | `batch N KIND OPTION .. : STATEMENT CELL .. ; ..` | statements as a batch |
//! | `release STATEMENT` | a statement is not held any more |
//! | `room open\|shut` | whether streamed rows may come |
//! | `takes N\|all` | so many bytes the network takes from now on, in all |
//! | `pieces N` | and no more than so many at once |
//! | `status` | what it knows is asked for |

use alloc::vec::Vec;

use bytes::BytesMut;
use messina_core::wire::{Consistency, EncodedValues, ValuesBuilder};

/// One step of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "told in the table above")]
pub enum Step<'a> {
    Setting(&'a str, Vec<&'a str>),
    At(u64),
    Open(u32),
    Bytes(u32, Vec<u8>),
    End(u32, &'a str),
    Prepare(u32, &'a str),
    Query(u32, Options, &'a str),
    Execute(u32, u32, Options, Vec<Cell>),
    Raw(u32, u8, Vec<u8>),
    Batch(u32, u8, Options, Vec<(u32, Vec<Cell>)>),
    Cancel(u32),
    Release(u32),
    Room(bool),
    Takes(usize),
    Pieces(usize),
    Status,
    Start(u32),
    Close(u32),
    Route(u32, Options, Vec<Cell>),
}

/// How a request is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "told in the table above")]
pub struct Options {
    pub timeout: u64,
    pub consistency: Consistency,
    pub serial: Option<Consistency>,
    pub page: Option<i32>,
    pub state: Option<Vec<u8>>,
    pub is_idempotent: bool,
    pub is_traced: bool,
    pub is_streamed: bool,
}

impl Options {
    /// Those of a request that names none.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            timeout: 10_000_000,
            consistency: Consistency::LocalQuorum,
            serial: None,
            page: None,
            state: None,
            is_idempotent: false,
            is_traced: false,
            is_streamed: false,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

/// A value of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "they are what they are called")]
pub enum Cell {
    Bytes(Vec<u8>),
    Null,
    Unset,
}

/// Settings, which stand before the first step.
const SETTINGS: [&str; 20] = [
    "login",
    "tablets",
    "early",
    "events",
    "frame-max",
    "in-flight",
    "waiting",
    "node",
    "keyspace",
    "table",
    "prefer",
    "down",
    "up",
    "machine",
    "contact",
    "use",
    "seed",
    "pool",
    "steering",
    "wall",
];

/// The step of a line, if it is one.
///
/// # Errors
///
/// What is wrong with it.
pub fn parse(line: &str) -> Result<Option<Step<'_>>, &'static str> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (front, back) = line.split_once(" : ").unwrap_or((line, ""));
    let mut words = front.split_whitespace();
    let name = words.next().ok_or("no word")?;
    Ok(Some(match name {
        "at" => Step::At(number(words.next())?),
        "open" => Step::Open(number(words.next())?),
        "<" => Step::Bytes(number(words.next())?, hex(words.next().ok_or("no bytes")?)?),
        "end" => Step::End(number(words.next())?, words.next().ok_or("no reason")?),
        "prepare" => Step::Prepare(number(words.next())?, back),
        "query" => Step::Query(number(words.next())?, options(words)?, back),
        "execute" => Step::Execute(
            number(words.next())?,
            number(words.next())?,
            options(words)?,
            cells(back)?,
        ),
        "raw" => Step::Raw(
            number(words.next())?,
            number(words.next())?,
            hex(words.next().ok_or("no body")?)?,
        ),
        "cancel" => Step::Cancel(number(words.next())?),
        "batch" => Step::Batch(
            number(words.next())?,
            number(words.next())?,
            options(words)?,
            back.split(';').map(part).collect::<Result<_, _>>()?,
        ),
        "release" => Step::Release(number(words.next())?),
        "room" => Step::Room(words.next() == Some("open")),
        "takes" => match words.next() {
            Some("all") => Step::Takes(usize::MAX),
            count => Step::Takes(number(count)?),
        },
        "pieces" => Step::Pieces(number(words.next())?),
        "status" => Step::Status,
        "start" => Step::Start(number(words.next())?),
        "close" => Step::Close(number(words.next())?),
        "route" => Step::Route(number(words.next())?, options(words)?, cells(back)?),
        name => match SETTINGS.iter().find(|setting| **setting == name) {
            Some(setting) => Step::Setting(setting, words.collect()),
            None => return Err("no such step"),
        },
    }))
}

fn options<'a>(words: impl Iterator<Item = &'a str>) -> Result<Options, &'static str> {
    let mut options = Options::new();
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("timeout", value) => options.timeout = number(Some(value))?,
            ("consistency", value) => options.consistency = consistency(value)?,
            ("serial", value) => options.serial = Some(consistency(value)?),
            ("page", value) => options.page = Some(number(Some(value))?),
            ("state", value) => options.state = Some(hex(value)?),
            ("idempotent", "") => options.is_idempotent = true,
            ("traced", "") => options.is_traced = true,
            ("streamed", "") => options.is_streamed = true,
            _ => return Err("no such option"),
        }
    }
    Ok(options)
}

fn consistency(value: &str) -> Result<Consistency, &'static str> {
    Consistency::from_code(number(Some(value))?).ok_or("no such level")
}

fn cells(text: &str) -> Result<Vec<Cell>, &'static str> {
    let cell = |word| {
        Ok(match word {
            "null" => Cell::Null,
            "unset" => Cell::Unset,
            bytes => Cell::Bytes(hex(bytes)?),
        })
    };
    text.split_whitespace().map(cell).collect()
}

/// A part of a batch.
fn part(text: &str) -> Result<(u32, Vec<Cell>), &'static str> {
    let (statement, rest) = text
        .trim()
        .split_once(' ')
        .unwrap_or_else(|| (text.trim(), ""));
    Ok((number(Some(statement))?, cells(rest)?))
}

/// The values of a request.
pub(crate) fn values(cells: &[Cell]) -> Result<EncodedValues<BytesMut>, &'static str> {
    let mut builder = ValuesBuilder::new(BytesMut::new());
    for cell in cells {
        let put = match cell {
            Cell::Bytes(bytes) => builder.value(bytes),
            Cell::Null => builder.null(),
            Cell::Unset => builder.unset(),
        };
        put.map_err(|_| "a value does not fit")?;
    }
    Ok(builder.finish())
}

/// A number in words of a line.
pub(crate) fn number<N: core::str::FromStr>(word: Option<&str>) -> Result<N, &'static str> {
    word.and_then(|word| word.parse().ok()).ok_or("no number")
}

/// Bytes from hexadecimal digits; `-` is none.
pub(crate) fn hex(text: &str) -> Result<Vec<u8>, &'static str> {
    if text == "-" {
        return Ok(Vec::new());
    }
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(high)? << 4 | digit(low)?).ok(),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
    bytes.ok_or("no hexadecimal digits")
}
