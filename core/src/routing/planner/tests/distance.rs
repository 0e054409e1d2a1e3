//! Nearest first, and whom the policy leaves out.

use super::*;

#[test]
fn replicas_come_by_distance_then_other_nodes() {
    let mut writer = writer(&NODES);
    learn(&mut writer, "eventual", None, &[(5, 1), (3, 2), (1, 3)]);
    let view = writer.view();
    let request = request(&view, "eventual", 50, Consistency::LocalQuorum);
    let table = [
        // Without a preference every node is local; the order is the listed one.
        ("", "", false, "5D/1 3D/2 1D/3 | 2 4 6"),
        ("", "r1", false, "5D/1 3D/2 1D/3 | 2 4 6"),
        ("a", "", false, "3D/2 1D/3 | 2 4"),
        ("a", "", true, "3D/2 1D/3 5F/1 | 2 4 6"),
        ("a", "r1", false, "1R/3 3D/2 | 2 4"),
        ("a", "r2", true, "3R/2 1D/3 5F/1 | 2 4 6"),
        ("a", "r9", false, "3D/2 1D/3 | 2 4"),
        ("b", "", false, "5D/1 | 6"),
        ("b", "r1", true, "5R/1 3F/2 1F/3 | 2 4 6"),
        ("nowhere", "", false, "|"),
        ("nowhere", "r1", true, "5F/1 3F/2 1F/3 | 2 4 6"),
    ];
    for (dc, rack, failover, expected) in table {
        let policy = policy(dc, rack, failover);
        for entropy in 0..20 {
            let plan = plan(&view, &request, &policy, &Fake::default(), entropy, 0);
            assert_eq!(show(&plan), expected, "{dc}/{rack} failover {failover}");
            assert_eq!((plan.source(), plan.leader()), (Source::Tablet, None));
        }
    }
}

#[test]
fn other_nodes_come_by_distance_too() {
    let mut writer = writer(&NODES);
    learn(&mut writer, "eventual", None, &[(4, 0)]);
    let view = writer.view();
    let request = request(&view, "eventual", 50, Consistency::One);
    let policy = Policy {
        shuffle: true,
        ..policy("a", "r1", true)
    };
    let mut seen = BTreeSet::new();
    for entropy in 0..200 {
        let order = order(&plan(
            &view,
            &request,
            &policy,
            &Fake::default(),
            entropy,
            0,
        ));
        let place = |n: u8| order.iter().position(|&found| found == n).unwrap();
        assert_eq!((place(4), order[3], order.len()), (0, 3, 6));
        assert!(place(1) < 3 && place(2) < 3 && place(5) > 3 && place(6) > 3);
        seen.insert(order);
    }
    assert_eq!(seen.len(), 4);
}

#[test]
fn unknown_tablets_and_tokens_go_to_live_local_nodes() {
    let mut writer = writer(&NODES);
    writer.set_up(
        writer
            .topology()
            .node_by_host_id(Uuid::from_u128(2))
            .unwrap(),
        false,
    );
    writer.set_enabled(
        writer
            .topology()
            .node_by_host_id(Uuid::from_u128(3))
            .unwrap(),
        false,
    );
    let view = writer.view();
    let mut unconnected = Fake::default();
    unconnected.unconnected.insert(1);
    let known = request(&view, "eventual", 50, Consistency::One);
    let rows = [
        known,
        RouteRequest {
            token: None,
            ..known
        },
        RouteRequest {
            table: None,
            ..known
        },
        request(&view, "absent", 50, Consistency::One),
    ];
    for request in rows {
        for entropy in 0..30 {
            let policy = Policy {
                shuffle: true,
                ..policy("a", "", false)
            };
            let found = plan(&view, &request, &policy, &Fake::default(), entropy, 0);
            assert_eq!(
                (show(&found), found.source()),
                ("| 1 4".into(), Source::None)
            );
            let found = plan(&view, &request, &policy, &unconnected, entropy, 0);
            assert_eq!(order(&found), [4, 1], "without a connection comes last");
        }
    }
}

#[test]
fn vnode_tables_use_the_ring_and_each_nodes_own_shards() {
    let mut writer = writer(&NODES);
    let idx = |n: u8| {
        writer
            .topology()
            .node_by_host_id(Uuid::from_u128(n.into()))
            .unwrap()
    };
    let (two, three) = (idx(2), idx(3));
    writer.set_shard_map(three, ShardMap::new(12, 0).ok());
    let view = writer.view();
    // Shards of token 150 by the formula: none of 8 with 12 bits ignored, the sixth of 12.
    let at = |view: &View| request(view, "vnode", 150, Consistency::Quorum);
    let fake = Fake::default();
    let found = plan(&view, &at(&view), &policy("a", "", true), &fake, 1, 0);
    assert_eq!(
        (show(&found), found.source()),
        ("2D/0 3D/6 5F/0 | 1 4 6".into(), Source::Ring)
    );
    writer.set_shard_map(two, None);
    let view = writer.view();
    let found = plan(&view, &at(&view), &policy("a", "", false), &fake, 1, 0);
    assert_eq!(show(&found), "2D 3D/6 | 1 4");
}

#[test]
fn shards_a_node_does_not_have_are_none() {
    for (shard, expected) in [
        (3, "1D/3"),
        (7, "1D/7"),
        (8, "1D"),
        (9, "1D"),
        (65535, "1D"),
    ] {
        let mut writer = writer(&[(1, "a", "r1")]);
        learn(&mut writer, "eventual", None, &[(1, shard)]);
        let view = writer.view();
        let request = request(&view, "eventual", 50, Consistency::One);
        let plan = plan(
            &view,
            &request,
            &policy("a", "", false),
            &Fake::default(),
            0,
            0,
        );
        assert_eq!(show(&plan), format!("{expected} |"));
    }
}

#[test]
fn a_list_that_names_a_node_twice_gives_it_once() {
    let mut writer = writer(&NODES);
    learn(
        &mut writer,
        "strong",
        Some(1),
        &[(3, 6), (3, 2), (1, 3), (3, 1)],
    );
    let view = writer.view();
    let rows = [
        (Consistency::Quorum, "3L/6 1D/3 | 2 4"),
        (Consistency::One, "3D/6 1D/3 | 2 4"),
    ];
    for (consistency, expected) in rows {
        let request = request(&view, "strong", 50, consistency);
        let found = plan(
            &view,
            &request,
            &policy("a", "", false),
            &Fake::default(),
            3,
            0,
        );
        assert_eq!(show(&found), expected);
    }
}

/// Plans behind one another list every allowed node once, whatever the policy.
#[test]
fn planning_on_never_ends_while_hosts_remain() {
    let nodes: Vec<(u8, &str, &str)> = (1..=40_u8)
        .map(|n| {
            (
                n,
                ["a", "b"][n as usize / 25],
                ["r1", "r2", "r3"][n as usize % 3],
            )
        })
        .collect();
    let mut writer = writer(&nodes);
    let replicas: Vec<_> = (3..=19).rev().step_by(2).map(|n| (n, 0)).collect();
    learn(&mut writer, "strong", Some(1), &replicas);
    let view = writer.view();
    let unconnected = (1..=40).filter(|n| n % 4 == 1).collect();
    let in_flight = (1..=40).map(|n| (n, u32::from(n % 7))).collect();
    let busy = Fake {
        in_flight,
        unconnected,
    };
    for (dc, rack, failover, allowed) in [
        ("", "", false, 40),
        ("a", "r1", true, 40),
        ("a", "r2", false, 24),
        ("b", "", false, 16),
    ] {
        let policy = Policy {
            shuffle: true,
            ..policy(dc, rack, failover)
        };
        for keyspace in ["strong", "eventual", "vnode"] {
            for is_lwt in [false, true] {
                for entropy in 0..20 {
                    let plain = request(&view, keyspace, 50, Consistency::Quorum);
                    let request = RouteRequest { is_lwt, ..plain };
                    let (mut seen, mut connected) = (Vec::new(), true);
                    loop {
                        let next = plan(&view, &request, &policy, &busy, entropy, seen.len());
                        seen.extend(order(&next));
                        if !next.may_go_on() {
                            break;
                        }
                    }
                    let end = plan(&view, &request, &policy, &busy, entropy, seen.len());
                    assert!(end.targets().is_empty());
                    for n in &seen {
                        assert!(connected || busy.unconnected.contains(n), "{seen:?}");
                        connected = !busy.unconnected.contains(n);
                    }
                    let distinct: BTreeSet<u8> = seen.iter().copied().collect();
                    assert_eq!((seen.len(), distinct.len()), (allowed, allowed), "{seen:?}");
                }
            }
        }
    }
}
