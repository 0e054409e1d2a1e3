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
