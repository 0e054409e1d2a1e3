//! Preparing statements: on all nodes when a statement is new, on one when that node has lost it.
//!
//! Nothing here counts as an attempt of the request that needs the statement, and a node without
//! the statement is no failure: it asks for it when it is executed there.

use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::Poll;
use core::time::Duration;

use super::cell::Cell;
use super::exchange::{Exchange, Exchanged};
use super::outgoing::{Body, Outgoing};
use crate::cluster::prepared::PreparedStatement;
use crate::conn::Answer;
use crate::conn::extensions::Agreed;
use crate::error::{ApiMisuse, Error, ErrorKind, PeerMisbehaved};
use crate::gather::Gather;
use crate::sync::Shared;
use crate::wire::response::{Extras, Prepared, ResultBody};
use crate::wire::{Opcode, ParseError, Reader};

impl Outgoing<'_> {
    /// The node has lost the statement: gives it back on the same connection.
    ///
    /// Fails if the text means other markers now than when the caller's values were encoded.
    pub(super) async fn prepare_again(
        &self,
        statement: &PreparedStatement,
        cell: &Shared<Cell>,
    ) -> Result<(), Error> {
        let answer = self.preparing(statement).ask(cell).await?;
        let (mut has_same_id, mut has_same_markers) = (false, true);
        with_prepared(&answer, cell.agreed(), |body| {
            has_same_id = body.id == statement.id();
            if has_same_id {
                has_same_markers = statement.handle_prepared(body)?;
            }
            Ok(())
        })?;
        if !has_same_id {
            return Err(Error::with_text(
                ErrorKind::PeerMisbehaved(PeerMisbehaved::MalformedBody),
                "the statement got another id when it was prepared again",
            ));
        }
        if !has_same_markers {
            return Err(Error::new(ErrorKind::ApiMisuse(ApiMisuse::StaleStatement)));
        }
        Ok(())
    }

    /// Prepares on one node, then on all others at once; their failures do not matter, since a
    /// node that lacks the statement asks for it. So nobody waits for a late one for long.
    pub(super) async fn prepare_anew(
        &self,
        text: &str,
        keyspace: Option<&str>,
    ) -> Result<Shared<PreparedStatement>, Error> {
        let ran = self.run().await?;
        let mut prepared = None;
        with_prepared(&ran.answer, ran.cell.agreed(), |body| {
            let parsed = PreparedStatement::parse(text, body, ran.cell.agreed())?;
            prepared = Some(parsed.in_keyspace(keyspace));
            Ok(())
        })?;
        let prepared = prepared.ok_or_else(|| Error::bug("a prepared statement got lost"))?;
        let now = self.hub.clock().now();
        let until = self.deadline.min(now.saturating_add(OTHERS_MAX));
        let mut others: Vec<_> = self
            .hub
            .pools()
            .with(|pools| pools.one_of_each_node(self.entropy))
            .into_iter()
            .filter(|(node, _)| *node != ran.target.node)
            .map(|(_, cell)| {
                let body = Body::new(self);
                Exchange::new(cell, self.head(), until, true, body)
            })
            .gather();
        poll_fn(|cx| {
            others.retain_mut(|exchange| Pin::new(exchange).poll(cx).is_pending());
            if others.is_empty() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        Ok(Shared::new(prepared))
    }

    /// One exchange without retries; an ERROR answer is an error.
    async fn ask(&self, cell: &Shared<Cell>) -> Result<Answer, Error> {
        let exchange = Exchange::new(
            Shared::clone(cell),
            self.head(),
            self.deadline,
            true,
            Body::new(self),
        );
        match exchange.await {
            Exchanged::Answer(answer) if answer.opcode == Opcode::Error => {
                Err(answer.server_error(cell.agreed()))
            }
            Exchanged::Answer(answer) => Ok(answer),
            Exchanged::Failed(error) => Err(error),
            Exchanged::Full => Err(Error::new(ErrorKind::Busy)),
        }
    }
}

/// The longest that a statement is waited for which one node has prepared already.
const OTHERS_MAX: Duration = Duration::from_secs(1);

/// Reads a PREPARED answer.
fn with_prepared(
    answer: &Answer,
    agreed: &Agreed,
    read: impl FnOnce(&Prepared<'_>) -> Result<(), ParseError>,
) -> Result<(), Error> {
    let mut reader = Reader::new(answer.body.as_slice());
    Extras::parse(answer.flags, &mut reader)?;
    match ResultBody::parse(&agreed.dialect(), &mut reader)? {
        ResultBody::Prepared(body) => Ok(read(&body)?),
        _ => Err(PeerMisbehaved::UnexpectedFrame.into()),
    }
}
