//! Conditional statements: the listed order.

use super::*;

#[test]
fn conditional_statements_keep_the_listed_order() {
    let mut writer = writer(&NODES);
    learn(&mut writer, "eventual", Some(77), &[(4, 0), (1, 1), (3, 2)]);
    let idx = |n: u8| {
        writer
            .topology()
            .node_by_host_id(Uuid::from_u128(n.into()))
            .unwrap()
    };
    let four = idx(4);
    // The first is heavily loaded, which must not matter.
    let fake = Fake {
        in_flight: BTreeMap::from([(4, 99)]),
        ..Fake::default()
    };
    for state in ["up", "down", "filtered", "up again"] {
        writer.set_up(four, state != "down");
        writer.set_enabled(four, state != "filtered");
        let view = writer.view();
        let plain = request(&view, "eventual", 50, Consistency::Quorum);
        let serial = request(&view, "eventual", 50, Consistency::LocalSerial);
        for request in [
            RouteRequest {
                is_lwt: true,
                ..plain
            },
            serial,
        ] {
            for entropy in 0..100 {
                let policy = Policy {
                    shuffle: true,
                    ..policy("a", "", false)
                };
                let found = show(&plan(&view, &request, &policy, &fake, entropy, 0));
                let expected = match state {
                    "up" | "up again" => "4D/0 1D/1 3D/2 | 2",
                    _ => "1D/1 3D/2 | 2",
                };
                assert_eq!(found, expected, "{state}");
            }
        }
    }
}

#[test]
fn conditional_statements_may_rotate_by_tablet() {
    let mut writer = writer(&NODES);
    let handle = writer
        .view()
        .table_by_name("eventual", "t")
        .unwrap()
        .handle();
    let replicas = [(1, 1), (3, 2), (4, 0)].map(|(n, shard)| LearnedReplica {
        host_id: Uuid::from_u128(n),
        shard,
    });
    let mut firsts = BTreeMap::<u8, u32>::new();
    let policy = Policy {
        rotate_lwt: true,
        ..policy("a", "", false)
    };
    for tablet in 0..300 {
        let version = Some(TabletVersion::new(5));
        let range = (tablet * 10, tablet * 10 + 10);
        let learned = LearnedTablet::new(range.0, range.1, version, Box::new(replicas));
        writer.learn(handle, &learned.unwrap());
        let view = writer.view();
        let first = |token: i64, is_lwt: bool| {
            let plain = request(&view, "eventual", token, Consistency::Quorum);
            let request = RouteRequest { is_lwt, ..plain };
            let found = order(&plan(&view, &request, &policy, &Fake::default(), 0, 0));
            found[0]
        };
        let all: BTreeSet<u8> = (1..=10).map(|at| first(range.0 + at, true)).collect();
        assert_eq!(
            all.len(),
            1,
            "every key of a tablet has the same first replica"
        );
        assert_eq!(first(range.1, false), 1);
        *firsts.entry(*all.first().unwrap()).or_default() += 1;
    }
    assert_eq!(firsts.len(), 3);
    assert!(
        firsts.values().all(|&count| (70..130).contains(&count)),
        "{firsts:?}"
    );
}

/// Nodes beyond the replicas too: neither chance nor load orders them, with a token or without;
/// for other statements chance does.
#[test]
fn conditional_statements_go_the_same_way_each_time() {
    let mut writer = writer(&NODES);
    learn(&mut writer, "eventual", Some(77), &[(4, 0)]);
    let view = writer.view();
    let policy = Policy {
        shuffle: true,
        ..policy("a", "", true)
    };
    let with_token = request(&view, "eventual", 50, Consistency::Quorum);
    let without_token = RouteRequest {
        token: None,
        ..with_token
    };
    for request in [with_token, without_token] {
        let ways = |is_lwt| {
            let request = RouteRequest { is_lwt, ..request };
            let way = |at: u64| {
                let fake = Fake {
                    in_flight: BTreeMap::from([(1 + (at % 6) as u8, 50)]),
                    ..Fake::default()
                };
                order(&plan(
                    &view,
                    &request,
                    &policy,
                    &fake,
                    at.wrapping_mul(0x9e37_79b9),
                    0,
                ))
            };
            (0..100).map(way).collect::<BTreeSet<_>>().len()
        };
        assert_eq!(ways(true), 1);
        assert!(ways(false) > 1);
    }
}

#[test]
fn nodes_without_tokens_are_for_when_nothing_else_lives() {
    let mut writer = writer(&NODES[..1]);
    writer.set_nodes(&[spec(1, "a", "r1", &[100]), spec(2, "a", "r1", &[])]);
    learn(&mut writer, "eventual", Some(77), &[(1, 0)]);
    let view = writer.view();
    let request = request(&view, "eventual", 50, Consistency::One);
    for (lives, expected) in [(true, &[1][..]), (false, &[2, 1])] {
        let unconnected = (!lives).then_some(1).into_iter().collect();
        let fake = Fake {
            unconnected,
            ..Fake::default()
        };
        let found = plan(&view, &request, &policy("a", "", false), &fake, 0, 0);
        assert_eq!(order(&found), expected, "{lives}");
    }
}

/// Ring order and tablet order, ten sessions that draw and see loads of their own: always the
/// first, and where that is out always the second, never another node in between.
#[test]
fn every_session_meets_at_the_same_replica_also_when_the_first_is_out() {
    for keyspace in ["vnode", "eventual"] {
        for dc in ["", "a"] {
            let mut writer = writer(&NODES);
            // C, A, B: the list is not sorted, and its first is abroad for those at home in a.
            learn(&mut writer, "eventual", Some(7), &[(5, 4), (1, 5), (3, 6)]);
            let listed = match (keyspace, dc) {
                // Token 150 belongs to node 2, then the ring goes on; two in a, one in b.
                ("vnode", "") => vec![2, 3, 5],
                ("vnode", _) => vec![2, 3],
                (_, "") => vec![5, 1, 3],
                _ => vec![1, 3],
            };
            for state in ["up", "down", "filtered", "not connected", "up again"] {
                let first = Uuid::from_u128(listed[0].into());
                let idx = writer.topology().node_by_host_id(first).unwrap();
                writer.set_up(idx, state != "down");
                writer.set_enabled(idx, state != "filtered");
                let view = writer.view();
                let mut seen = BTreeSet::new();
                for session in 0..10_u32 {
                    let mut fake = Fake {
                        in_flight: (1..=6)
                            .map(|n| (n, session * u32::from(n) * 7 % 50))
                            .collect(),
                        ..Fake::default()
                    };
                    if state == "not connected" {
                        fake.unconnected.insert(listed[0]);
                    }
                    let request = RouteRequest {
                        is_lwt: true,
                        ..request(&view, keyspace, 150, Consistency::Quorum)
                    };
                    for execution in 0..10 {
                        let policy = Policy {
                            shuffle: true,
                            ..policy(dc, "", false)
                        };
                        let entropy = u64::from(session) * 1000 + execution;
                        let found = plan(&view, &request, &policy, &fake, entropy, 0);
                        let target = found.targets()[0];
                        seen.insert((number(target.node), target.shard.map(ShardIdx::value)));
                    }
                }
                let is_out = !state.starts_with("up");
                let expected = listed[usize::from(is_out)];
                let found: Vec<u8> = seen.iter().map(|&(n, _)| n).collect();
                assert_eq!(
                    found,
                    [expected],
                    "{keyspace} {dc:?} {state}: one node, one shard"
                );
            }
        }
    }
}
