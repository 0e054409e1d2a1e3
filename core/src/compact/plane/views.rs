//! What is known, for people and tools, and to be saved for a later session: plain iteration over
//! members, tables and tablets. An earlier session's goes back in by [`Plane::put_member`],
//! [`Plane::table`], [`Plane::put_kind`] and [`Plane::put_tablet`].

use super::tablets::{IS_USED, Record, Replica, STRANGERS, tablet};
use super::{KeyspaceKind, Plane, TableKey};
use uuid::Uuid;

use crate::routing::TabletVersion;

/// A table for people and tools.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TableView<'a> {
    /// Its number.
    pub key: TableKey,
    /// The name of its keyspace.
    pub keyspace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What its keyspace is for routing.
    pub kind: KeyspaceKind,
}

/// A tablet for people and tools, and for a later session.
#[derive(Clone, Copy, Debug)]
pub struct TabletView<'a> {
    plane: &'a Plane,
    records: &'a [Record],
}

impl<'a> TabletView<'a> {
    fn first(&self) -> Option<&'a Record> {
        self.records.first()
    }

    /// The token before its first, and its last.
    pub fn range(&self) -> (i64, i64) {
        self.first()
            .map_or((0, 0), |record| (record.first, record.last))
    }

    /// Its version, if it came by the second extension. The first replica of a strongly consistent
    /// table is then the leader.
    pub fn version(&self) -> Option<TabletVersion> {
        self.first().and_then(Record::version)
    }

    /// Whether it was looked up of late.
    pub fn is_used(&self) -> bool {
        self.first().is_some_and(|record| record.has(IS_USED))
    }

    /// Hosts and shards in the server's order. A host is nil where it is not known any more.
    pub fn replicas(&self) -> impl Iterator<Item = (Uuid, u16)> + 'a {
        let plane = self.plane;
        let replicas = self.records.iter().flat_map(Record::replicas);
        replicas.map(|replica| (plane.host_of(*replica), replica.shard))
    }
}

impl Plane {
    /// All tables that statements use.
    pub fn tables(&self) -> impl Iterator<Item = TableView<'_>> {
        (0..).zip(&self.tables).filter_map(|(number, table)| {
            let keyspace = self.keyspaces.get(usize::from(table.keyspace))?;
            Some(TableView {
                key: TableKey(number),
                keyspace: &keyspace.name,
                name: &table.name,
                kind: keyspace.kind,
            })
        })
    }

    /// Takes what an earlier session knew of the keyspace of a table.
    pub fn put_kind(&mut self, table: TableKey, kind: KeyspaceKind) {
        let table = self.tables.get(usize::from(table.0));
        let place = table.map_or(usize::MAX, |table| usize::from(table.keyspace));
        if let Some(keyspace) = self.keyspaces.get_mut(place) {
            keyspace.kind = kind;
        }
    }

    /// The learned tablets of a table in the order of their tokens.
    pub fn tablets(&self, table: TableKey) -> impl Iterator<Item = TabletView<'_>> {
        let mut from = self
            .tablets
            .records
            .get(self.tablets.seek(table.0, i64::MIN, true)..)
            .unwrap_or_default();
        core::iter::from_fn(move || {
            from.first().filter(|record| record.table == table.0)?;
            let records = tablet(from);
            from = from.get(records.len()..).unwrap_or_default();
            Some(TabletView {
                plane: self,
                records,
            })
        })
    }

    fn host_of(&self, replica: Replica) -> Uuid {
        let host = match replica.node.checked_sub(STRANGERS) {
            Some(number) => self.strangers.get(usize::from(number)).copied(),
            None => self.cluster.get(replica.node).map(super::Member::host_id),
        };
        host.unwrap_or_default()
    }
}
