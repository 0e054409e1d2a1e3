//! Where the next page begins.
//!
//! The number of rows means nothing: a page may be empty and more may follow, the last page may be
//! empty too. Only the paging state that came, or did not come, decides.

use bytes::Bytes;

/// An opaque mark of where a page ended. Valid on any node, for the same statement only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagingState(Bytes);

impl PagingState {
    /// A state that was kept from an earlier result.
    pub const fn from_bytes(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// The bytes to keep.
    pub const fn as_bytes(&self) -> &Bytes {
        &self.0
    }
}

/// How far a paged read has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Paging {
    /// No page was read yet.
    #[default]
    Start,
    /// The next page begins here.
    More(PagingState),
    /// There are no more pages.
    End,
}

impl Paging {
    /// The state to send, or `None` when there is nothing left to ask for.
    pub const fn next(&self) -> Option<Option<&PagingState>> {
        match self {
            Self::Start => Some(None),
            Self::More(state) => Some(Some(state)),
            Self::End => None,
        }
    }

    /// A page came with this state.
    pub fn advance(&mut self, state: Option<PagingState>) {
        *self = match state {
            Some(state) => Self::More(state),
            None => Self::End,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_state_decides() {
        let mut paging = Paging::default();
        assert_eq!(paging.next(), Some(None));
        let state = PagingState::from_bytes(Bytes::from_static(&[0xde, 0xad]));
        paging.advance(Some(state.clone()));
        assert_eq!(paging.next(), Some(Some(&state)));
        paging.advance(None);
        assert_eq!(paging.next(), None);
    }
}
