//! Statements given to further nodes before these are asked to execute them: one at a time on a link
//! of each member, behind everything else. Whatever comes of it is nobody's concern: a node that has
//! not taken a statement says so when it is to execute it, and is given it then. That is all there is
//! without the feature `prepare-ahead`.
//!
//! What an earlier session has saved is not given: the nodes have it, or say so.

use bytes::BytesMut;

use super::machine::Machine;
use super::request::put_prepare;
use crate::conn::RequestHead;
use crate::wire::Opcode;

impl Machine {
    /// Gives each member the next statement that it may not know.
    pub(super) fn give_statements(&mut self) {
        for at in 0..self.links.len() {
            while self.give_next(at) {}
        }
    }

    /// Whether to go on with the link's next statement, since this one was none to be given.
    fn give_next(&mut self, at: usize) -> bool {
        let Some(link) = self.links.get(at) else {
            return false;
        };
        let (member, number) = (link.member, link.given);
        if member.is_none()
            || number >= self.statements.end()
            || link.giving.is_some()
            || !link.serves()
        {
            return false;
        }
        let statement = self.statements.get(number);
        let origin = statement.and_then(|statement| statement.prepared_on);
        let mut is_known = origin.is_none();
        for (place, other) in self.links.iter().enumerate() {
            if other.member == member {
                // The first link of a member is given what there is.
                if place < at && other.serves() {
                    return false;
                }
                is_known |= origin == Some(other.number);
            }
        }
        let Some(link) = self.links.get_mut(at) else {
            return false;
        };
        let Some(statement) = statement.filter(|_| !is_known) else {
            link.given = number.saturating_add(1);
            return true;
        };
        let give_up_at = self.now.saturating_add(self.config.timeouts.control);
        let head = RequestHead::new(Opcode::Prepare);
        let (version, mut body) = (self.config.protocol.first(), BytesMut::new());
        let written = put_prepare(&statement.text, version, &mut body);
        // A link that is full is left to its requests.
        if written.is_ok()
            && let Ok(key) = link.submit(GIVEN, give_up_at, head, &[&body])
        {
            (link.giving, link.given) = (Some(key), number.saturating_add(1));
        }
        false
    }
}

/// Whether statements are given at all.
pub(super) const HAS_GIVING: bool = cfg!(any(test, feature = "prepare-ahead"));

/// The caller of what is given; no request has that number.
pub(super) const GIVEN: u32 = u32::MAX - 2;
