//! Requests that the leader of their tablet has to coordinate.

use super::*;

/// Reads and writes: all levels but ONE and LOCAL_ONE, strong tables only, versions only.
#[test]
fn the_leader_is_first_for_what_only_it_can_serve() {
    for consistency in Consistency::ALL {
        for (keyspace, is_strong) in [("strong", true), ("eventual", false)] {
            for version in [None, Some(1)] {
                for tablet_leader in [false, true] {
                    let mut writer = writer(&NODES);
                    learn(&mut writer, keyspace, version, &[(3, 6), (1, 3), (5, 1)]);
                    let view = writer.view();
                    let request = request(&view, keyspace, 50, consistency);
                    let policy = Policy {
                        tablet_leader,
                        ..policy("a", "r1", false)
                    };
                    let plan = plan(&view, &request, &policy, &Fake::default(), 5, 0);
                    let any_replica =
                        matches!(consistency, Consistency::One | Consistency::LocalOne);
                    let expected = is_strong && version.is_some() && tablet_leader && !any_replica;
                    let order = if expected { "3L/6 1R/3" } else { "1R/3 3D/6" };
                    let name = format!("{keyspace} {consistency:?} {version:?}");
                    assert_eq!(show(&plan), format!("{order} | 2 4"), "{name}");
                    assert_eq!(
                        plan.leader().map(|(idx, _)| number(idx)),
                        expected.then_some(3)
                    );
                }
            }
        }
    }
}

/// A leader in each place, in each state, under each policy.
#[test]
fn the_leader_never_overrides_the_policy() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum State {
        Good,
        Down,
        Disabled,
        Unconnected,
    }
    use State::{Disabled, Down, Good, Unconnected};
    let table = [
        (1, "a", "r1", false, Good, "1L/1 3D/3 | 2 4"),
        (3, "a", "r1", false, Good, "3L/3 1R/1 | 2 4"),
        // Remote: not without failover, and before a replica in the rack with it.
        (5, "a", "r1", false, Good, "1R/1 3D/3 | 2 4"),
        (5, "a", "r1", true, Good, "5L/5 1R/1 3D/3 | 2 4 6"),
        (5, "", "", false, Good, "5L/5 1D/1 3D/3 | 2 4 6"),
        (3, "b", "", false, Good, "5D/5 | 6"),
        (3, "b", "", true, Good, "3L/3 5D/5 1F/1 | 2 4 6"),
        (3, "nowhere", "", false, Good, "|"),
        // Not one that is down, filtered or not connected.
        (3, "a", "r1", false, Down, "1R/1 | 2 4"),
        (3, "a", "r1", false, Disabled, "1R/1 | 2 4"),
        (5, "a", "r1", true, Down, "1R/1 3D/3 | 2 4 6"),
        (3, "a", "r1", false, Unconnected, "1R/1 3D/3 | 2 4"),
    ];
    for (leader, dc, rack, failover, state, expected) in table {
        let mut writer = writer(&NODES);
        let mut replicas = vec![(1, 1), (3, 3), (5, 5)];
        let at = replicas.iter().position(|&(n, _)| n == leader).unwrap();
        replicas.rotate_left(at);
        learn(&mut writer, "strong", Some(1), &replicas);
        let host_id = Uuid::from_u128(leader.into());
        let idx = writer.topology().node_by_host_id(host_id).unwrap();
        writer.set_up(idx, state != Down);
        writer.set_enabled(idx, state != Disabled);
        let mut fake = Fake::default();
        if state == Unconnected {
            fake.unconnected.insert(leader);
        }
        let view = writer.view();
        let request = request(&view, "strong", 50, Consistency::LocalQuorum);
        let found = plan(&view, &request, &policy(dc, rack, failover), &fake, 3, 0);
        let name = format!("leader {leader}, {dc}/{rack} failover {failover} {state:?}");
        assert_eq!(show(&found), expected, "{name}");
        assert_eq!(
            found.leader().map(|(idx, _)| number(idx)),
            Some(leader),
            "{name}"
        );
    }
}

/// With chance and load: the leader, then exactly the base plan without it.
#[test]
fn behind_the_leader_stands_the_base_plan() {
    let mut writer = writer(&NODES);
    learn(
        &mut writer,
        "strong",
        Some(1),
        &[(3, 6), (1, 3), (4, 0), (2, 1), (5, 1)],
    );
    let view = writer.view();
    let base = request(&view, "strong", 50, Consistency::LocalOne);
    let led = request(&view, "strong", 50, Consistency::Quorum);
    let in_flight = (1..7).map(|n| (n, u32::from(n * 7 % 5))).collect();
    let fake = Fake {
        in_flight,
        unconnected: BTreeSet::from([2]),
    };
    for (dc, rack, failover) in [("a", "r1", true), ("a", "", false), ("", "", false)] {
        let policy = Policy {
            shuffle: true,
            ..policy(dc, rack, failover)
        };
        for entropy in 0..300 {
            let base = order(&plan(&view, &base, &policy, &fake, entropy, 0));
            let led = order(&plan(&view, &led, &policy, &fake, entropy, 0));
            let without: Vec<u8> = base.into_iter().filter(|&n| n != 3).collect();
            assert_eq!((led[0], &led[1..]), (3, &without[..]));
        }
    }
}

#[test]
fn an_unresolved_leader_is_none_and_the_next_replica_is_not_taken_for_it() {
    let mut writer = writer(&NODES);
    learn(&mut writer, "strong", Some(1), &[(9, 0), (3, 6), (1, 3)]);
    let view = writer.view();
    let request = request(&view, "strong", 50, Consistency::Quorum);
    let found = plan(
        &view,
        &request,
        &policy("a", "r1", false),
        &Fake::default(),
        3,
        0,
    );
    assert_eq!(
        (show(&found), found.leader()),
        ("1R/3 3D/6 | 2 4".into(), None)
    );
    // It becomes known: now it leads.
    let mut nodes: Vec<_> = NODES
        .iter()
        .map(|&(n, dc, r)| spec(n, dc, r, &[i64::from(n) * 100]))
        .collect();
    nodes.push(spec(9, "a", "r2", &[]));
    writer.set_nodes(&nodes);
    let view = writer.view();
    let found = plan(
        &view,
        &request,
        &policy("a", "r1", false),
        &Fake::default(),
        3,
        0,
    );
    assert_eq!(order(&found)[..3], [7, 1, 3]);
    assert_eq!(found.targets()[0].reason, Reason::Leader);
}

/// Four policies for data centres, and a leader that is local, remote, down or filtered: the first
/// target, and why. Node 1 is the replica at home, in the preferred rack; 3 is at home in the
/// other rack; 5 is abroad.
#[test]
fn the_first_target_is_right_for_every_policy_and_leader() {
    use Leadership::{Down, Filtered, First, ForbiddenDc};
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Leader {
        Local,
        Remote,
        LocalDown,
        RemoteDown,
        LocalFiltered,
        RemoteFiltered,
    }
    use Leader::{Local, LocalDown, LocalFiltered, Remote, RemoteDown, RemoteFiltered};
    let no_preference = policy("", "", false);
    let dc = policy("a", "", false);
    let dc_and_rack = policy("a", "r1", false);
    let failover = policy("a", "r1", true);
    for (name, policy, row) in [
        (
            "no preference",
            no_preference,
            // The next in the list stands for any replica: there is no shuffling here.
            [
                (Local, "3L/3", First),
                (Remote, "5L/5", First),
                (LocalDown, "5D/5", Down),
                (RemoteDown, "1D/1", Down),
                (LocalFiltered, "5D/5", Filtered),
                (RemoteFiltered, "1D/1", Filtered),
            ],
        ),
        (
            "data centre",
            dc,
            [
                (Local, "3L/3", First),
                (Remote, "1D/1", ForbiddenDc),
                (LocalDown, "1D/1", Down),
                (RemoteDown, "1D/1", ForbiddenDc),
                (LocalFiltered, "1D/1", Filtered),
                (RemoteFiltered, "1D/1", ForbiddenDc),
            ],
        ),
        (
            "data centre and rack",
            dc_and_rack,
            [
                (Local, "3L/3", First),
                (Remote, "1R/1", ForbiddenDc),
                (LocalDown, "1R/1", Down),
                (RemoteDown, "1R/1", ForbiddenDc),
                (LocalFiltered, "1R/1", Filtered),
                (RemoteFiltered, "1R/1", ForbiddenDc),
            ],
        ),
        (
            "failover",
            failover,
            [
                (Local, "3L/3", First),
                (Remote, "5L/5", First),
                (LocalDown, "1R/1", Down),
                (RemoteDown, "1R/1", Down),
                (LocalFiltered, "1R/1", Filtered),
                (RemoteFiltered, "1R/1", Filtered),
            ],
        ),
    ] {
        for (leader, expected, why) in row {
            let is_local = matches!(leader, Local | LocalDown | LocalFiltered);
            let replicas = match is_local {
                true => [(3, 3), (5, 5), (1, 1)],
                false => [(5, 5), (1, 1), (3, 3)],
            };
            let mut writer = writer(&NODES);
            learn(&mut writer, "strong", Some(1), &replicas);
            let host_id = Uuid::from_u128(if is_local { 3 } else { 5 });
            let idx = writer.topology().node_by_host_id(host_id).unwrap();
            writer.set_up(idx, !matches!(leader, LocalDown | RemoteDown));
            writer.set_enabled(idx, !matches!(leader, LocalFiltered | RemoteFiltered));
            let view = writer.view();
            for level in [Consistency::Quorum, Consistency::LocalQuorum] {
                let request = request(&view, "strong", 50, level);
                let found = plan(&view, &request, &policy, &Fake::default(), 3, 0);
                let first = show(&found);
                let first = first.split(' ').next().unwrap();
                let told = leadership(&view, &request, &policy, &Fake::default());
                assert_eq!(
                    (first, told),
                    (expected, why),
                    "{name}, {leader:?} at {level}"
                );
            }
        }
    }
}

/// The explanation and the plan agree in every combination of what either looks at.
#[test]
fn the_reason_told_is_the_reason_that_counted() {
    let mut told = BTreeSet::new();
    let flags = || [false, true];
    for keyspace in ["strong", "eventual", "vnode", "absent"] {
        for (version, first) in [(None, 3), (Some(1), 3), (Some(1), 5), (Some(1), 99)] {
            for (up, enabled, connected) in
                (0..8).map(|bits| (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0))
            {
                let mut writer = writer(&NODES);
                if matches!(keyspace, "strong" | "eventual") {
                    learn(&mut writer, keyspace, version, &[(first, 0), (1, 1)]);
                }
                let host_id = Uuid::from_u128(first.into());
                if let Some(idx) = writer.topology().node_by_host_id(host_id) {
                    writer.set_up(idx, up);
                    writer.set_enabled(idx, enabled);
                }
                let mut fake = Fake::default();
                if !connected {
                    fake.unconnected.insert(first);
                }
                let view = writer.view();
                for level in [Consistency::One, Consistency::Quorum] {
                    for token in [None, Some(50), Some(5000)] {
                        for (failover, tablet_leader) in flags()
                            .into_iter()
                            .flat_map(|one| flags().map(|two| (one, two)))
                        {
                            let policy = Policy {
                                tablet_leader,
                                ..policy("a", "r1", failover)
                            };
                            let request = RouteRequest {
                                token: token.map(Token::new),
                                ..request(&view, keyspace, 0, level)
                            };
                            let why = leadership(&view, &request, &policy, &fake);
                            let found = plan(&view, &request, &policy, &fake, 3, 0);
                            let leads = found.targets()[0].reason == Reason::Leader;
                            assert_eq!(leads, why == Leadership::First, "{request:?} {why:?}");
                            told.insert(format!("{why:?}"));
                        }
                    }
                }
            }
        }
    }
    // All but those that only a session can tell.
    assert_eq!(told.len(), 13, "{told:?}");
}
