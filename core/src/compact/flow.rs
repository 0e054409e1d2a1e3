//! A streamed result between the runner, which reads its body into the reader's window, and the
//! reader.

use bytes::BytesMut;

use super::desk::Outcome;
use crate::error::{Error, PeerMisbehaved};
use crate::wire::Flags;

/// A result whose body comes in pieces. Without feature `streams` there can be none, so that what is done
/// with one takes no code.
pub(super) struct Flow {
    /// Flags of the frame and length of the body, not told yet.
    pub(super) header: Option<(Flags, usize)>,
    pub(super) piece: Option<BytesMut>,
    pub(super) window: Window,
    /// What goes on when the reader waits again: the link is read, and the machine runs, which may
    /// have bytes of the body.
    pub(super) is_unread: bool,
    pub(super) is_stalled: bool,
    pub(super) end: Option<Result<(), Error>>,
    _possible: Possible,
}

#[cfg(any(test, feature = "streams"))]
type Possible = ();
#[cfg(any(test, feature = "streams"))]
const POSSIBLE: Option<Possible> = Some(());
#[cfg(not(any(test, feature = "streams")))]
type Possible = core::convert::Infallible;
#[cfg(not(any(test, feature = "streams")))]
const POSSIBLE: Option<Possible> = None;

/// Where the window is that the reader finds rows in.
#[derive(Default)]
pub(super) enum Window {
    #[default]
    InUse,
    /// The reader waits for more bytes in it.
    Waiting(BytesMut),
    /// These have come.
    Filled(BytesMut),
}

/// What comes next of a streamed result.
#[cfg(any(test, feature = "streams"))]
pub(super) enum Next {
    Header(Flags, usize),
    Piece(BytesMut),
    /// The window has more bytes.
    Filled,
    End,
}

impl Window {
    pub(super) fn bytes(self) -> Option<BytesMut> {
        match self {
            Self::InUse => None,
            Self::Waiting(bytes) | Self::Filled(bytes) => Some(bytes),
        }
    }
}

impl Flow {
    pub(super) fn begin() -> Option<Self> {
        Some(Self {
            header: None,
            piece: None,
            window: Window::InUse,
            is_unread: false,
            is_stalled: false,
            end: None,
            _possible: POSSIBLE?,
        })
    }

    /// Whether the reader waits for bytes.
    pub(super) const fn has_room(&self) -> bool {
        matches!(self.window, Window::Waiting(_)) && self.piece.is_none()
    }

    /// The next part, and the window with it; or the window is taken.
    #[cfg(any(test, feature = "streams"))]
    pub(super) fn next(&mut self, window: &mut BytesMut) -> Option<Result<Next, Error>> {
        let is_filled = matches!(self.window, Window::Filled(_));
        let next = if let Some((flags, len)) = self.header.take() {
            Ok(Next::Header(flags, len))
        } else if let Some(piece) = self.piece.take() {
            Ok(Next::Piece(piece))
        } else if is_filled {
            Ok(Next::Filled)
        } else if let Some(end) = &self.end {
            end.clone().map(|()| Next::End)
        } else {
            if matches!(self.window, Window::InUse) {
                self.window = Window::Waiting(core::mem::take(window));
            }
            return None;
        };
        if let Some(bytes) = core::mem::take(&mut self.window).bytes() {
            *window = bytes;
        }
        Some(next)
    }

    pub(super) fn finish(&mut self, outcome: Result<Outcome, Error>) {
        self.end = Some(match outcome {
            // It came whole after all.
            Ok(Outcome::Reply(reply)) => {
                let (flags, body) = reply.into_body();
                if !body.is_empty() {
                    self.header = Some((flags, body.len()));
                    self.piece = Some(body);
                }
                Ok(())
            }
            Ok(_) => Err(PeerMisbehaved::UnexpectedFrame.into()),
            Err(error) => Err(error),
        });
    }
}
