//! Frames as bytes: cut, shown and made by hand, without any code of the driver.

/// The flag of a frame whose body is compressed.
pub const COMPRESSED: u8 = 0x01;

/// Opcodes of requests.
pub const OPTIONS: u8 = 0x05;
/// A statement by its text.
pub const QUERY: u8 = 0x07;
/// A statement to be prepared.
pub const PREPARE: u8 = 0x09;
/// A prepared statement.
pub const EXECUTE: u8 = 0x0a;
/// Several statements as one request.
pub const BATCH: u8 = 0x0d;
/// The answer to AUTHENTICATE and AUTH_CHALLENGE.
pub const AUTH_RESPONSE: u8 = 0x0f;
pub(crate) const STARTUP: u8 = 0x01;
/// Asks for events.
pub const REGISTER: u8 = 0x0b;

/// A VOID result on stream 0.
pub const VOID: &str = "84000000080000000400000001";
/// Rows with one column: v = 1, on stream 5.
pub const ROW_1: &str = "84000005080000002300000002000000010000000100016b000174000176\
                         0009000000010000000400000001";
/// Rows with one column: v = 2, on stream 6.
pub const ROW_2: &str = "84000006080000002300000002000000010000000100016b000174000176\
                         0009000000010000000400000002";

/// A request frame, cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The first byte.
    pub version: u8,
    /// The second.
    pub flags: u8,
    /// The stream id.
    pub stream: i16,
    /// What the body is.
    pub opcode: u8,
    /// The body.
    pub body: Vec<u8>,
}

impl Frame {
    /// Cuts the first frame off `bytes`, if it is whole.
    pub fn cut(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..9)?;
        let len = u32::from_be_bytes(header[5..].try_into().expect("four bytes"));
        let body = bytes.get(9..9 + usize::try_from(len).expect("fits"))?;
        Some(Self {
            version: header[0],
            flags: header[1],
            stream: i16::from_be_bytes([header[2], header[3]]),
            opcode: header[4],
            body: body.to_vec(),
        })
    }

    /// The frame as it stood on the wire.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = response(self.stream, self.opcode, &self.body);
        (out[0], out[1]) = (self.version, self.flags);
        out
    }

    /// Its length on the wire.
    pub fn wire_len(&self) -> usize {
        9 + self.body.len()
    }

    /// The statement of a QUERY or PREPARE.
    pub fn statement(&self) -> &str {
        assert!(matches!(self.opcode, QUERY | PREPARE), "{self:?}");
        let len = u32::from_be_bytes(self.body[..4].try_into().expect("four bytes"));
        let len = usize::try_from(len).expect("fits");
        core::str::from_utf8(&self.body[4..4 + len]).expect("UTF-8")
    }

    /// The parts of an EXECUTE, on a connection with or without result metadata ids.
    pub fn execute(&self, has_metadata_id: bool) -> Execute {
        assert_eq!(self.opcode, EXECUTE, "{self:?}");
        let mut take = Take(&self.body);
        let id = take.short_bytes();
        let metadata_id = has_metadata_id.then(|| take.short_bytes());
        let consistency = take.short();
        let flags = take.byte();
        let values = match flags & 0x01 {
            0 => Vec::new(),
            _ => (0..take.short()).map(|_| take.value()).collect(),
        };
        let page_size = (flags & 0x04 != 0).then(|| take.int());
        let paging_state = (flags & 0x08 != 0).then(|| match take.value() {
            Value::Bytes(state) => state,
            other => panic!("{other:?} as paging state"),
        });
        let serial_consistency = (flags & 0x10 != 0).then(|| take.short());
        Execute {
            id,
            metadata_id,
            consistency,
            skips_metadata: flags & 0x02 != 0,
            values,
            page_size,
            paging_state,
            serial_consistency,
            has_timestamp: flags & 0x20 != 0,
        }
    }
}

impl Frame {
    /// The parts of a BATCH.
    pub fn batch(&self) -> Batch {
        assert_eq!(self.opcode, BATCH, "{self:?}");
        let mut take = Take(&self.body);
        let kind = take.byte();
        let statements = (0..take.short())
            .map(|_| {
                let name = match take.byte() {
                    0 => {
                        let len = usize::try_from(take.int()).expect("a length");
                        take.bytes(len).to_vec()
                    }
                    _ => take.short_bytes(),
                };
                let values = (0..take.short()).map(|_| take.value()).collect();
                (name, values)
            })
            .collect();
        Batch { kind, statements }
    }
}

/// The parts of a BATCH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// What it promises.
    pub kind: u8,
    /// Text or id of each statement, and its values.
    pub statements: Vec<(Vec<u8>, Vec<Value>)>,
}

/// The parts of an EXECUTE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execute {
    /// The statement's id.
    pub id: Vec<u8>,
    /// The id of the result's metadata.
    pub metadata_id: Option<Vec<u8>>,
    /// The consistency level.
    pub consistency: u16,
    /// Rows may come without metadata.
    pub skips_metadata: bool,
    /// Bound values.
    pub values: Vec<Value>,
    /// Rows wanted.
    pub page_size: Option<i32>,
    /// Where the last page ended.
    pub paging_state: Option<Vec<u8>>,
    /// The level of the conditional part.
    pub serial_consistency: Option<u16>,
    /// A time of the client's comes with it.
    pub has_timestamp: bool,
}

/// A bound value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "closed by the protocol")]
pub enum Value {
    /// Length -1.
    Null,
    /// Length -2.
    Unset,
    /// Some bytes.
    Bytes(Vec<u8>),
}

/// A cursor that panics on nonsense.
struct Take<'a>(&'a [u8]);

impl<'a> Take<'a> {
    fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (head, tail) = self.0.split_at(len);
        self.0 = tail;
        head
    }

    fn byte(&mut self) -> u8 {
        self.bytes(1)[0]
    }

    fn short(&mut self) -> u16 {
        u16::from_be_bytes(self.bytes(2).try_into().expect("two bytes"))
    }

    fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.bytes(4).try_into().expect("four bytes"))
    }

    fn short_bytes(&mut self) -> Vec<u8> {
        let len = usize::from(self.short());
        self.bytes(len).to_vec()
    }

    fn value(&mut self) -> Value {
        match self.int() {
            -1 => Value::Null,
            -2 => Value::Unset,
            len => Value::Bytes(self.bytes(usize::try_from(len).expect("a length")).to_vec()),
        }
    }
}

/// Bytes from hexadecimal digits; white space does not count.
pub fn hex(text: &str) -> Vec<u8> {
    let digit = |c: char| u8::try_from(c.to_digit(16).expect("hexadecimal")).expect("a digit");
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(digit)
        .collect();
    assert!(digits.len().is_multiple_of(2), "{text}");
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

/// A response frame without flags.
pub fn response(stream: i16, opcode: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0x84, 0];
    out.extend(stream.to_be_bytes());
    out.push(opcode);
    out.extend(u32::try_from(body.len()).expect("short").to_be_bytes());
    out.extend(body);
    out
}

/// `[string]`.
pub fn string(text: &str) -> Vec<u8> {
    let len = u16::try_from(text.len()).expect("short");
    [&len.to_be_bytes(), text.as_bytes()].concat()
}

/// `[bytes]`; `None` is null.
pub fn bytes(value: Option<&[u8]>) -> Vec<u8> {
    match value {
        None => (-1_i32).to_be_bytes().to_vec(),
        Some(value) => {
            let len = u32::try_from(value.len()).expect("short");
            [&len.to_be_bytes(), value].concat()
        }
    }
}

/// The body of a ROWS result of `k.t`. Columns are names with their type's option.
pub fn rows(columns: &[(&str, &[u8])], rows: &[Vec<Option<Vec<u8>>>]) -> Vec<u8> {
    let count = |len: usize| u32::try_from(len).expect("few").to_be_bytes();
    let mut out = hex("00000002 00000001");
    out.extend(count(columns.len()));
    out.extend([string("k"), string("t")].concat());
    for (name, option) in columns {
        out.extend(string(name));
        out.extend(*option);
    }
    out.extend(count(rows.len()));
    for row in rows {
        assert_eq!(row.len(), columns.len());
        row.iter()
            .for_each(|cell| out.extend(bytes(cell.as_deref())));
    }
    out
}
