//! Statements that must not be sent by QUERY.
//!
//! A node that speaks the second tablets extension wants a byte that only EXECUTE can carry: for
//! every read or write of a strongly consistent table, and for those of other tables with tablets
//! whose key is bound. Sent by QUERY such a statement is applied and answered with an error. So it
//! is refused before it is sent, unless it is forced. Batches are not concerned.

use messina_core::cluster::kind::StatementKind;
use messina_core::types::CqlValue;

use crate::connect::Connected;
use crate::failure::Failure;

/// Fails if one of the statements may be applied and fail all the same.
pub(super) async fn check<'a>(
    connected: &Connected,
    mut texts: impl Iterator<Item = &'a str>,
    has_values: bool,
) -> Result<(), Failure> {
    let Some(text) = texts.find(|text| StatementKind::of(text).is_data()) else {
        return Ok(());
    };
    let status = connected.session.status();
    let mut connections = status.nodes.iter().flat_map(|node| &node.connections);
    let speaks_v2 = connections.any(|connection| {
        connection
            .extensions
            .contains(&messina_core::conn::extensions::key::TABLETS_V2)
    });
    let why = match speaks_v2 {
        true if has_values && !status.tablets.is_empty() => {
            "its values are bound and there are \
            tables with tablets"
        }
        true if has_strong_keyspace(connected).await => {
            "the cluster has strongly consistent keyspaces"
        }
        _ => return Ok(()),
    };
    Err(Failure::usage(format!(
        "{:?} might be applied and fail all the same, because {why}: leave --unprepared out, or \
         add --force",
        text.chars().take(60).collect::<String>(),
    )))
}

async fn has_strong_keyspace(connected: &Connected) -> bool {
    let asked = "SELECT keyspace_name, consistency FROM system_schema.scylla_keyspaces";
    let Ok(result) = connected.session.query_unprepared(asked).await else {
        return false;
    };
    let Ok(rows) = result.rows::<Vec<CqlValue>>() else {
        return false;
    };
    rows.flatten().any(|row| match row.get(1) {
        Some(CqlValue::Text(level)) => level != "eventual",
        _ => false,
    })
}
