//! Tables whose tokens say nothing, and nodes that own none.

use super::*;

/// Keyspaces and partitioners without token routing: any live local node, as if nothing were
/// known; beside them the ones that have it, in the same cluster.
#[test]
fn tokens_count_only_where_strategy_and_partitioner_are_known() {
    let strategies = |options: &[(&str, &str)]| ReplicationStrategy::from_options(options.to_vec());
    let simple = || strategies(&[("class", "SimpleStrategy"), ("replication_factor", "2")]);
    let known = Some(Partitioner::Murmur3);
    let stream = Partitioner::from_class_name("com.scylladb.dht.CDCPartitioner");
    assert!(stream.is_some() && stream != known);
    let foreign = Partitioner::from_class_name("org.apache.cassandra.dht.ByteOrderedPartitioner");
    assert_eq!(foreign, None);
    for (strategy, partitioner, source) in [
        (simple(), known, Source::Ring),
        (simple(), stream, Source::Ring),
        (
            strategies(&[("class", "LocalStrategy")]),
            known,
            Source::None,
        ),
        (
            strategies(&[("class", "EverywhereStrategy")]),
            known,
            Source::None,
        ),
        (
            strategies(&[("class", "org.example.Strange")]),
            known,
            Source::None,
        ),
        (
            strategies(&[("class", "SimpleStrategy"), ("replication_factor", "x")]),
            known,
            Source::None,
        ),
        (strategies(&[]), known, Source::None),
    ] {
        let name = format!("{strategy:?} {partitioner:?}");
        let mut writer = writer(&NODES);
        let spec = KeyspaceSpec {
            name: "ks".into(),
            strategy,
            has_tablets: false,
            consistency: KeyspaceConsistency::Eventual,
        };
        let table = TableSpec {
            name: "t".into(),
            id: Uuid::from_u128(9),
            partitioner,
        };
        writer.put_keyspace(spec, vec![table]);
        let view = writer.view();
        let request = request(&view, "ks", 150, Consistency::One);
        let found = plan(
            &view,
            &request,
            &policy("", "", false),
            &Fake::default(),
            1,
            0,
        );
        assert_eq!(found.source(), source, "{name}");
        let expected = match source {
            Source::Ring => "2D/0 3D/0 | 1 4 5 6",
            _ => "| 1 2 3 4 5 6",
        };
        assert_eq!(show(&found), expected, "{name}");
    }
}

/// A node without tokens is in no plan while another one is connected that the policy allows, and
/// in every plan when there is none.
#[test]
fn nodes_without_tokens_serve_when_nothing_else_lives() {
    let mut writer = ViewWriter::new(RoutingLimits::default());
    let specs = [
        spec(1, "a", "r1", &[100]),
        spec(2, "a", "r2", &[200]),
        spec(3, "a", "r1", &[]),
        spec(4, "b", "r1", &[400]),
        spec(5, "b", "r1", &[]),
    ];
    writer.set_nodes(&specs);
    let view = writer.view();
    let any = RouteRequest {
        table: None,
        ..request(&view, "absent", 50, Consistency::Quorum)
    };
    for (dc, failover, unconnected, expected) in [
        ("", false, &[][..], &[&[1, 2, 4][..]][..]),
        ("", false, &[1, 2], &[&[4], &[1, 2]]),
        ("", false, &[1, 2, 4], &[&[3, 5], &[1, 2, 4]]),
        ("a", false, &[], &[&[1, 2]]),
        ("a", false, &[1], &[&[2], &[1]]),
        ("a", false, &[1, 2], &[&[3], &[1, 2]]),
        ("a", true, &[1, 2], &[&[4], &[1, 2]]),
        ("a", true, &[1, 2, 4], &[&[3], &[5], &[1, 2], &[4]]),
        ("b", false, &[4, 5], &[&[4]]),
        ("b", false, &[4], &[&[5], &[4]]),
    ] {
        let fake = Fake {
            unconnected: unconnected.iter().copied().collect(),
            ..Fake::default()
        };
        for entropy in 0..20 {
            let found = plan(&view, &any, &policy(dc, "", failover), &fake, entropy, 0);
            let mut order = order(&found);
            let mut at = 0;
            for group in expected {
                order[at..at + group.len()].sort_unstable();
                at += group.len();
            }
            assert_eq!(order, expected.concat(), "{dc} {failover} {unconnected:?}");
        }
    }
}
