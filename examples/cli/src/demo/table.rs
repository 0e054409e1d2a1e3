//! The three tables, and the statements on them.

use messina_core::drive::Prepared;
use messina_core::routing::KeyspaceConsistency;

use super::world::World;
use crate::connect::Connected;
use crate::failure::Failure;
use crate::table_kind::Kind;

/// A table that was created, and its statements.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) kind: Kind,
    pub(super) keyspace: String,
    pub(super) insert: Prepared,
    pub(super) select: Prepared,
}

/// The name of each table in its keyspace.
const TABLE: &str = "letters";

impl Table {
    pub(super) async fn create(
        kind: Kind,
        connected: &Connected,
        world: &World,
    ) -> Result<Self, Failure> {
        let session = &connected.session;
        let keyspace = format!("messina_demo_{}", kind.name());
        if !world.is_embedded() {
            connected
                .run(&format!("DROP KEYSPACE IF EXISTS {keyspace}"))
                .await?;
        }
        let factor = replication_factor(kind, session.status().nodes.len());
        let mut outcome = Ok(());
        for options in kind.keyspace_options() {
            let cql = format!(
                "CREATE KEYSPACE {keyspace} WITH replication = \
                 {{'class': 'NetworkTopologyStrategy', 'replication_factor': {factor}}}{options}"
            );
            outcome = connected.run(&cql).await;
            if outcome.is_ok() {
                break;
            }
        }
        outcome?;
        if let Err(failure) = check(kind, connected, &keyspace) {
            connected.run(&format!("DROP KEYSPACE {keyspace}")).await?;
            return Err(failure);
        }
        let columns = "id bigint PRIMARY KEY, note text, weight double";
        connected
            .run(&format!("CREATE TABLE {keyspace}.{TABLE} ({columns})"))
            .await?;
        let insert = format!("INSERT INTO {keyspace}.{TABLE} (id, note, weight) VALUES (?, ?, ?)");
        let select = format!("SELECT note, weight FROM {keyspace}.{TABLE} WHERE id = ?");
        let fail = |error| connected.failure(&error);
        Ok(Self {
            kind,
            insert: session.prepare(insert).await.map_err(fail)?.idempotent(),
            select: session.prepare(select).await.map_err(fail)?.idempotent(),
            keyspace,
        })
    }

    /// Removes it from a cluster that goes on without us.
    pub(super) async fn drop(&self, connected: &Connected) -> Result<(), Failure> {
        connected
            .run(&format!("DROP KEYSPACE IF EXISTS {}", self.keyspace))
            .await
    }

    pub(super) fn name(&self) -> (&str, &str) {
        (&self.keyspace, TABLE)
    }

    pub(super) fn full_name(&self) -> String {
        format!("{}.{TABLE}", self.keyspace)
    }
}

/// Some servers take options that they do not know.
fn check(kind: Kind, connected: &Connected, keyspace: &str) -> Result<(), Failure> {
    let status = connected.session.status();
    let made = status
        .cluster
        .keyspaces
        .iter()
        .find(|made| *made.name == *keyspace);
    let is_strong = kind == Kind::Strong;
    let is_as_asked = made.is_some_and(|made| {
        made.has_tablets == kind.has_tablets()
            && (made.consistency == KeyspaceConsistency::Strong) == is_strong
    });
    if is_as_asked {
        return Ok(());
    }
    let message = format!("the cluster does not make {} tables", kind.adjective());
    Err(Failure::new("invalid", message))
}

/// Replicas of each row. Where it can be, fewer than there are nodes: else every node would be
/// an owner, and there would be no node to move a tablet to.
fn replication_factor(kind: Kind, nodes: usize) -> usize {
    match kind {
        Kind::Strong => nodes.clamp(1, 3),
        Kind::Eventual | Kind::Vnode => nodes.saturating_sub(1).clamp(1, 3),
    }
}
