//! Frames as they stand in the byte stream: header, wish, reasons, and how a peer can break the rules.

use core::fmt;
use core::num::NonZeroU16;

use bytes::{BufMut, BytesMut};

/// The number of a channel. The client counts up from 1 and never uses one twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub(super) u32);

impl ChannelId {
    /// The tunnel as a whole.
    pub(super) const TUNNEL: Self = Self(0);

    /// The number on the wire, for logs.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// What the client would like of the relay's socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wish {
    /// Nothing.
    #[default]
    None,
    /// A source port that is `shard` modulo `of`; which one is the relay's own choice.
    Shard {
        /// The shard.
        shard: u16,
        /// The node's number of shards.
        of: NonZeroU16,
    },
}

impl Wish {
    /// Kind, shard, number of shards.
    pub(super) const LEN: usize = 5;

    pub(super) fn put(self, into: &mut BytesMut) {
        let (kind, shard, of) = match self {
            Self::None => (0, 0, 0),
            Self::Shard { shard, of } => (1, shard, of.get()),
        };
        into.put_u8(kind);
        into.put_u16_le(shard);
        into.put_u16_le(of);
    }

    /// What is not understood, or cannot be, is no wish.
    pub(super) fn parse(bytes: [u8; Self::LEN]) -> Self {
        let [kind, shard_low, shard_high, of_low, of_high] = bytes;
        let shard = u16::from_le_bytes([shard_low, shard_high]);
        match (kind, NonZeroU16::new(u16::from_le_bytes([of_low, of_high]))) {
            (1, Some(of)) if shard < of.get() => Self::Shard { shard, of },
            _ => Self::None,
        }
    }
}

/// Why a channel was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Reason {
    /// The other end has no use for it any more.
    Abandoned = 0,
    /// Nothing listens at the target.
    Refused = 1,
    /// No way to the target.
    Unreachable = 2,
    /// The target did not answer in time.
    TimedOut = 3,
    /// The target's name has no address.
    Resolve = 4,
    /// The target reset the connection.
    Reset = 5,
    /// The relay does not allow this target.
    Forbidden = 6,
    /// There are too many channels.
    TooMany = 7,
    /// The relay takes no new channels.
    Draining = 8,
    /// Nothing moved for too long.
    Idle = 9,
    /// What was sent is not CQL.
    NotCql = 10,
    /// A limit of the relay was reached.
    Limit = 11,
    /// The tunnel itself was lost. Never sent.
    Lost = 12,
    /// Something else.
    Other = 255,
}

impl Reason {
    pub(super) const fn parse(byte: u8) -> Self {
        match byte {
            0 => Self::Abandoned,
            1 => Self::Refused,
            2 => Self::Unreachable,
            3 => Self::TimedOut,
            4 => Self::Resolve,
            5 => Self::Reset,
            6 => Self::Forbidden,
            7 => Self::TooMany,
            8 => Self::Draining,
            9 => Self::Idle,
            10 => Self::NotCql,
            11 => Self::Limit,
            _ => Self::Other,
        }
    }

    /// The code by which a WebSocket is closed for this reason: 4000 and the byte.
    pub const fn close_code(self) -> u16 {
        CLOSE_CODE_BASE.saturating_add(self as u16)
    }

    /// The reason of a WebSocket's close code, if it is one of ours.
    pub fn from_close_code(code: u16) -> Option<Self> {
        let byte = u8::try_from(code.checked_sub(CLOSE_CODE_BASE)?).ok()?;
        Some(Self::parse(byte))
    }

    /// In words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Abandoned => "closed by the other end",
            Self::Refused => "connection refused by the node",
            Self::Unreachable => "node unreachable from the relay",
            Self::TimedOut => "no answer from the node in time",
            Self::Resolve => "name has no address at the relay",
            Self::Reset => "connection reset by the node",
            Self::Forbidden => "target not allowed by the relay",
            Self::TooMany => "too many channels",
            Self::Draining => "the relay is about to stop",
            Self::Idle => "nothing moved for too long",
            Self::NotCql => "not CQL",
            Self::Limit => "a limit of the relay was reached",
            Self::Lost => "the tunnel was lost",
            Self::Other => "closed by the relay",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How the peer broke the rules. The tunnel cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Violation {
    /// A frame of no known kind.
    UnknownKind(u8),
    /// A frame whose length does not fit its kind.
    BadLength,
    /// A frame that only the other side may send.
    WrongSide,
    /// A channel that was never opened.
    UnknownChannel,
    /// An `open` whose number is not higher than those before.
    ChannelOrder,
    /// A second `opened`.
    OpenedTwice,
    /// More data than there was credit for.
    CreditExceeded,
    /// More credit than a number can hold.
    CreditOverflow,
    /// Data or a second `finish` behind a `finish`.
    AfterFinish,
    /// Text that is not UTF-8.
    BadText,
}

impl Violation {
    /// In words; short enough for a WebSocket's close reason.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownKind(_) => "tunnel: frame of unknown kind",
            Self::BadLength => "tunnel: frame of bad length",
            Self::WrongSide => "tunnel: frame from the wrong side",
            Self::UnknownChannel => "tunnel: unknown channel",
            Self::ChannelOrder => "tunnel: channel number not rising",
            Self::OpenedTwice => "tunnel: channel opened twice",
            Self::CreditExceeded => "tunnel: data without credit",
            Self::CreditOverflow => "tunnel: too much credit",
            Self::AfterFinish => "tunnel: data behind its end",
            Self::BadText => "tunnel: text is not UTF-8",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl core::error::Error for Violation {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Open = 1,
    Opened = 2,
    Data = 3,
    Credit = 4,
    Finish = 5,
    Close = 6,
    Drain = 7,
}

/// What stands before every payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) channel: ChannelId,
    pub(super) len: u16,
}

impl Header {
    pub(super) const LEN: usize = 7;

    pub(super) fn put(self, into: &mut BytesMut) {
        into.put_u8(self.kind as u8);
        into.put_u32_le(self.channel.0);
        into.put_u16_le(self.len);
    }

    /// Reads a header, its length checked against the bounds of its kind.
    pub(super) fn parse(bytes: [u8; Self::LEN]) -> Result<Self, Violation> {
        let [kind, a, b, c, d, len_low, len_high] = bytes;
        let len = u16::from_le_bytes([len_low, len_high]);
        let (kind, least, most) = match kind {
            1 => (Kind::Open, Wish::LEN, Wish::LEN.saturating_add(TARGET_MAX)),
            2 => (Kind::Opened, OPENED_LEN, TEXT_MAX),
            3 => (Kind::Data, 0, DATA_MAX),
            4 => (Kind::Credit, 4, 4),
            5 => (Kind::Finish, 0, 0),
            6 => (Kind::Close, 1, TEXT_MAX.saturating_add(1)),
            7 => (Kind::Drain, 0, 0),
            unknown => return Err(Violation::UnknownKind(unknown)),
        };
        if usize::from(len) < least || usize::from(len) > most {
            return Err(Violation::BadLength);
        }
        let channel = ChannelId(u32::from_le_bytes([a, b, c, d]));
        if (channel == ChannelId::TUNNEL) != (kind == Kind::Drain) {
            return Err(Violation::UnknownChannel);
        }
        Ok(Self { kind, channel, len })
    }
}

/// The first of the codes that are free for applications.
const CLOSE_CODE_BASE: u16 = 4000;

/// Most bytes of a target.
pub const TARGET_MAX: usize = 512;

/// Most bytes of the text behind a reason; longer texts are cut.
pub const TEXT_MAX: usize = 255;

/// Most bytes in one data frame.
pub const DATA_MAX: usize = 16 << 10;

/// What each end may send on a new channel before it gets any credit: the client's first request
/// goes along with the wish to open.
pub const EARLY_CREDIT: u32 = 4 << 10;

/// An `opened` holds at least the port; what follows is for later versions.
pub(super) const OPENED_LEN: usize = 2;
