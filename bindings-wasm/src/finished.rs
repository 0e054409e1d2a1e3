//! What requests have brought and the shell has not fetched yet, and what it was told before.

use alloc::vec::Vec;
use core::net::SocketAddr;

use messina_core::drive::{Endpoint, Prepared, QueryResult, Session};
use messina_core::error::{Error, ErrorKind};
use messina_core::routing::{NodeIdx, ShardIdx};
use uuid::Uuid;

use crate::cluster::Tally;
use crate::message::Effect;
use crate::outbox::Outbox;
use crate::result::ToldColumns;
use crate::slab::Slab;

/// Outputs of requests.
#[derive(Debug)]
pub(crate) struct Finished {
    outbox: Outbox,
    statements: Slab<Held>,
    /// Where the shell believes each node to be.
    nodes: Vec<Option<(Uuid, SocketAddr)>>,
    pub(crate) tally: Tally,
}

/// A prepared statement that the shell holds.
#[derive(Debug)]
struct Held {
    prepared: Prepared,
    columns: ToldColumns,
}

impl Finished {
    pub(crate) fn new() -> Self {
        Self {
            outbox: Outbox::for_outputs(),
            statements: Slab::new(),
            nodes: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// Gives what has gathered, and takes the outbox for what comes next.
    pub(crate) fn take(&mut self, spare: &mut Outbox) {
        core::mem::swap(&mut self.outbox, spare);
        self.outbox.clear();
        self.outbox.put_number(0.0);
    }

    pub(crate) fn statement(&self, number: u32) -> Result<Prepared, Error> {
        match self.statements.get(number) {
            Some(held) => Ok(held.prepared.clone()),
            None => Err(Error::bug("a statement that was released")),
        }
    }

    /// Forgets a statement; what it held is to be dropped outside any borrow.
    pub(crate) fn release(&mut self, number: u32) -> Option<impl Sized + use<>> {
        self.statements.remove(number)
    }

    pub(crate) fn put_done(&mut self, request: u32) {
        self.outbox.put(Effect::Done, request);
    }

    pub(crate) fn put_prepared(&mut self, request: u32, prepared: &Prepared) -> Result<(), Error> {
        let held = Held {
            prepared: prepared.clone(),
            columns: None,
        };
        let kept = self.statements.insert(held);
        let number = kept.map_err(|_| Error::new(ErrorKind::Busy))?;
        let (is_lwt, is_token_aware) = (prepared.is_lwt(), prepared.is_token_aware());
        self.outbox.put(Effect::Prepared, request);
        self.outbox.put_word(number);
        self.outbox
            .put_word(u32::from(is_lwt) | (u32::from(is_token_aware) << 1));
        self.outbox.put_columns(prepared.markers());
        Ok(())
    }

    pub(crate) fn put_result(
        &mut self,
        request: u32,
        statement: Option<u32>,
        result: &QueryResult,
        session: Option<&Session>,
    ) -> Result<(), Error> {
        let info = result.info();
        self.went_to(info.node, info.shard.map(ShardIdx::value), session);
        let held = statement.and_then(|number| {
            let held = self.statements.get_mut(number)?;
            Some((number, &mut held.columns))
        });
        self.outbox.put_result(request, held, result)
    }

    pub(crate) fn put_failure(&mut self, request: u32, error: &Error, session: Option<&Session>) {
        if let Some(node) = error.node().and_then(NodeIdx::from_value) {
            self.went_to(node, error.shard(), session);
        }
        self.outbox.put_failure(request, error);
    }

    /// A request ended at a node: counts it, and tells where the node is if the shell believes
    /// something else.
    fn went_to(&mut self, node: NodeIdx, shard: Option<u16>, session: Option<&Session>) {
        let number = node.value();
        if let Some(session) = session
            && let Some(identity) = session.identity(node)
        {
            let at = usize::from(number);
            if at >= self.nodes.len() {
                self.nodes.resize(at.saturating_add(1), None);
            }
            if let Some(told) = self.nodes.get_mut(at)
                && *told != Some(identity)
            {
                *told = Some(identity);
                self.tally.forget(number);
                self.outbox.put(Effect::Node, u32::from(number));
                let endpoint = session.endpoint(node);
                self.outbox
                    .put_display(&endpoint.unwrap_or(Endpoint::Addr(identity.1)));
            }
        }
        self.tally.count(number, shard);
    }
}
