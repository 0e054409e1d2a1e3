//! What is learned from PREPARED, by the connection that it came on.

use messina_conformance::golden::by_name;
use messina_core::cluster::prepared::PreparedStatement;
use messina_core::conn::extensions::Agreed;
use messina_core::types::ResultMetadata;
use messina_core::wire::Reader;
use messina_core::wire::response::ResultBody;

use crate::handshake::config;
use crate::offers::negotiate;

/// A connection to a node that offers the two extensions of prepared statements, or neither.
fn agreed(supported: &str) -> Agreed {
    negotiate(config(), &by_name(supported).bytes()).1
}

const WITH: &str = "supported, 12 shards, on shard 3";
const WITHOUT: &str = "supported, shard 4 of 4";

fn prepared(name: &str, agreed: &Agreed) -> PreparedStatement {
    let bytes = by_name(name).bytes();
    let ResultBody::Prepared(body) =
        ResultBody::parse(&agreed.dialect(), &mut Reader::new(&bytes)).unwrap()
    else {
        panic!("{name}")
    };
    PreparedStatement::parse("", &body, agreed).unwrap()
}

/// The bit is the highest of a signed number, and it counts only where its mask was told.
#[test]
fn the_lwt_mark_is_the_bit_that_the_node_told() {
    let (with, without) = (agreed(WITH), agreed(WITHOUT));
    for flags in [0, 1, 4, 0x7fff_ffff] {
        assert!(!with.is_lwt(flags), "{flags:x}");
    }
    for flags in [0x8000_0000, 0x8000_0001, u32::MAX] {
        assert!(with.is_lwt(flags), "{flags:x}");
        assert!(!without.is_lwt(flags), "{flags:x}");
    }
    assert!(prepared("prepared, conditional insert with metadata id", &with).is_lwt());
    assert!(!prepared("prepared, composite key out of order", &with).is_lwt());
    let unmarked = prepared("prepared, conditional insert without extensions", &without);
    assert!(!unmarked.is_lwt());
}

/// Metadata may be left out only where a change would be told: by this very connection, about a
/// statement whose id and columns we hold.
#[test]
fn metadata_is_left_out_only_where_a_change_is_told() {
    let (with, without) = (agreed(WITH), agreed(WITHOUT));
    for (name, learned_on, may_skip) in [
        ("prepared, no markers", &with, true),
        ("prepared, conditional insert with metadata id", &with, true),
        // No columns: nothing would be saved.
        ("prepared, composite key out of order", &with, false),
        // No id: a change could not be told.
        (
            "prepared, conditional insert without extensions",
            &without,
            false,
        ),
    ] {
        let statement = prepared(name, learned_on);
        let shape = statement.result();
        assert_eq!(shape.may_skip_metadata(&with), may_skip, "{name}");
        assert!(!shape.may_skip_metadata(&without), "{name}");
    }
}

/// Markers in the key's order; none without markers.
#[test]
fn key_markers_are_kept_in_the_order_of_the_key() {
    let with = agreed(WITH);
    let composite = prepared("prepared, composite key out of order", &with);
    assert_eq!(composite.key_indexes(), [2, 1]);
    let without_markers = prepared("prepared, no markers", &with);
    assert!(without_markers.key_indexes().is_empty() && without_markers.markers().is_empty());
}

/// The columns that came instead of none, with the id that goes with them; also where there was no id.
#[test]
fn changed_metadata_is_kept_with_its_id() {
    let (with, without) = (agreed(WITH), agreed(WITHOUT));
    let bytes = by_name("rows, flags 9").bytes();
    let ResultBody::Rows(rows) =
        ResultBody::parse(&with.dialect(), &mut Reader::new(&bytes)).unwrap()
    else {
        panic!("rows")
    };
    let columns = ResultMetadata::parse(rows.metadata.columns.unwrap()).unwrap();
    let id = 0x50f3_6f50_f114_3fcd_e847_b999_28cb_8f62_u128.to_be_bytes();
    for (name, learned_on) in [
        ("prepared, no markers", &with),
        ("prepared, conditional insert without extensions", &without),
    ] {
        let statement = prepared(name, learned_on);
        let (asked, new_id) = (statement.result(), rows.metadata.new_metadata_id);
        statement.handle_rows(&asked, &without, new_id, &columns);
        assert_eq!(*statement.result(), *asked, "{name}: a node without ids");
        statement.handle_rows(&asked, &with, new_id, &columns);
        let shape = statement.result();
        assert_eq!(shape.metadata_id.as_deref(), Some(&id[..]), "{name}");
        assert_eq!(shape.columns, columns);
        assert!(shape.may_skip_metadata(&with) && !shape.may_skip_metadata(&without));
    }
}
