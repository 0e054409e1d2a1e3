//! Keys of partitions and rows: the values that tests name, and their encodings.

use core::ops::Bound as Edge;

use bytes::Bytes;

use super::super::codec::Bound;
use super::super::error::CqlError;
use super::super::plan::Test;
use super::super::schema::{Column, Role};
use super::super::store::{PartitionKey, RowKey, RowRange};
use super::super::token::{partition_key, token_of};
use super::Result;
use super::check::in_values;

/// Keys that the INs of one statement may name.
const PRODUCTS_MAX: usize = 10_000;

/// All combinations of the values that tests name, column by column.
pub(super) fn products(
    tests: &[Test],
    columns: &[Column],
    values: &[Bound],
) -> Result<Vec<Vec<Bytes>>> {
    let mut products: Vec<Vec<Bytes>> = vec![Vec::new()];
    for (test, column) in tests.iter().zip(columns) {
        let candidates = in_values(test, values, column)?;
        if products.len().saturating_mul(candidates.len()) > PRODUCTS_MAX {
            return Err(CqlError::invalid("IN names too many keys"));
        }
        products = products
            .into_iter()
            .flat_map(|head| {
                candidates.iter().map(move |candidate| {
                    let mut key = head.clone();
                    key.push(candidate.clone());
                    key
                })
            })
            .collect();
    }
    Ok(products)
}

/// Partition keys with their component values, in ring order, each once.
pub(super) fn partition_keys(
    tests: &[Test],
    columns: &[Column],
    values: &[Bound],
) -> Result<Vec<(PartitionKey, Vec<Bytes>)>> {
    let mut keys = Vec::new();
    for components in products(tests, columns, values)? {
        check_key(&components)?;
        keys.push((encode_key(&components)?, components));
    }
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}

/// The encoded clustering key, or the beginning of one.
pub(super) fn row_key(values: &[Bytes], columns: &[Column]) -> RowKey {
    let mut key = RowKey::new();
    for (value, column) in values.iter().zip(columns) {
        put_clustering(&mut key, column, value);
    }
    key
}

/// All keys that begin with `prefix`.
pub(super) fn prefix_range(prefix: &RowKey) -> RowRange {
    let mut end = prefix.clone();
    while end.last() == Some(&0xff) {
        end.pop();
    }
    match end.last_mut() {
        Some(last) => {
            *last += 1;
            (Edge::Included(prefix.clone()), Edge::Excluded(end))
        }
        None => (Edge::Included(prefix.clone()), Edge::Unbounded),
    }
}

/// Appends a clustering component to an encoded key.
pub(super) fn put_clustering(key: &mut RowKey, column: &Column, value: &[u8]) {
    let descending = matches!(column.role, Role::Clustering { descending: true });
    column.ty.put_sort_key(value, descending, key);
}

/// Token and bytes of a partition key.
pub(super) fn encode_key(components: &[Bytes]) -> Result<PartitionKey> {
    let key = partition_key(components.iter().map(|component| &component[..]))
        .ok_or_else(|| CqlError::invalid(KEY_TOO_LONG))?;
    Ok((token_of(&key), key.into()))
}

const KEY_TOO_LONG: &str = "Key length is longer than maximum of 65535";

/// Refuses keys a node cannot store.
fn check_key(components: &[Bytes]) -> Result<()> {
    if let [only] = components
        && only.is_empty()
    {
        return Err(CqlError::invalid("Key may not be empty"));
    }
    let is_long = |component: &Bytes| component.len() > usize::from(u16::MAX);
    if components.iter().any(is_long) {
        return Err(CqlError::invalid(KEY_TOO_LONG));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_ranges_end_before_the_next_prefix() {
        assert_eq!(
            prefix_range(&vec![1, 0xff]),
            (Edge::Included(vec![1, 0xff]), Edge::Excluded(vec![2]))
        );
        assert_eq!(
            prefix_range(&Vec::new()),
            (Edge::Included(vec![]), Edge::Unbounded)
        );
        assert_eq!(
            prefix_range(&vec![0xff]),
            (Edge::Included(vec![0xff]), Edge::Unbounded)
        );
    }
}
