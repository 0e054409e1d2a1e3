//! Statements that must not be sent by QUERY.
//!
//! A node that speaks the second tablets extension applies a read or write of a strongly
//! consistent table that came by QUERY, and then answers with an error. So such a statement is
//! refused before it is sent, unless it is forced.

use messina_core::types::CqlValue;

use crate::connect::Connected;
use crate::failure::Failure;

/// Fails if one of the statements reads or writes rows while the cluster has strongly consistent
/// keyspaces and speaks the extension.
pub(super) async fn check<'a>(
    connected: &Connected,
    mut texts: impl Iterator<Item = &'a str>,
) -> Result<(), Failure> {
    let Some(text) = texts.find(|text| is_data_statement(text)) else {
        return Ok(());
    };
    let status = connected.session.status();
    let mut connections = status.nodes.iter().flat_map(|node| &node.connections);
    let speaks_v2 = connections.any(|connection| {
        connection
            .extensions
            .contains(&messina_core::conn::extensions::key::TABLETS_V2)
    });
    if !speaks_v2 || !has_strong_keyspace(connected).await {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{:?} might be applied and fail all the same, because the cluster has strongly consistent \
         keyspaces: leave --unprepared out, or add --force",
        text.chars().take(60).collect::<String>(),
    )))
}

fn is_data_statement(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    ["select", "insert", "update", "delete"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
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
