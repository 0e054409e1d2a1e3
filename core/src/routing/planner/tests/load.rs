//! The draw among equals, and the less loaded of two.

use super::*;
use crate::rng::mix;
use crate::routing::policy::is_busier;

/// A request with three replicas in the preferred data centre: nodes 1, 3 and 4.
fn three_equals() -> (View, RouteRequest, Policy) {
    let mut writer = writer(&NODES);
    learn(&mut writer, "eventual", Some(1), &[(1, 0), (3, 0), (4, 0)]);
    let view = writer.view();
    let request = request(&view, "eventual", 50, Consistency::Quorum);
    let policy = Policy {
        shuffle: true,
        ..policy("a", "", false)
    };
    (view, request, policy)
}

#[test]
fn equal_replicas_share_evenly_and_the_less_loaded_of_two_wins() {
    let (view, request, policy) = three_equals();
    let count = |fake: &Fake| {
        let mut firsts = BTreeMap::<u8, u32>::new();
        let mut orders = BTreeSet::new();
        for entropy in 0..3000 {
            let order = order(&plan(&view, &request, &policy, fake, entropy, 0));
            *firsts.entry(order[0]).or_default() += 1;
            orders.insert(order[..3].to_vec());
        }
        (firsts, orders.len())
    };
    let (firsts, orders) = count(&Fake::default());
    assert_eq!((firsts.len(), orders), (3, 6));
    assert!(
        firsts.values().all(|&count| (900..1100).contains(&count)),
        "{firsts:?}"
    );
    let in_flight = BTreeMap::from([(1, 12), (3, 0), (4, 40)]);
    let (firsts, _) = count(&Fake {
        in_flight,
        ..Fake::default()
    });
    // 3 if it is among the two (two thirds), else 1, never 4.
    assert_eq!(firsts.keys().copied().collect::<Vec<_>>(), [1, 3]);
    assert!((1900..2100).contains(&firsts[&3]), "{firsts:?}");
}

#[test]
fn the_two_to_choose_from_are_connected() {
    let (view, request, policy) = three_equals();
    for idle in [3, 4] {
        let in_flight = (1..=4).map(|n| (n, 9 * u32::from(n != idle))).collect();
        let fake = Fake {
            in_flight,
            unconnected: BTreeSet::from([1, 2]),
        };
        for entropy in 0..100 {
            let order = order(&plan(&view, &request, &policy, &fake, entropy, 0));
            assert_eq!(order, [idle, 7 - idle, 1, 2]);
        }
    }
}

#[test]
fn requests_without_replicas_share_evenly_too() {
    let names: Vec<_> = (1..=5).map(|n| (n, "a", "r1")).collect();
    let mut writer = writer(&names);
    let view = writer.view();
    let request = request(&view, "eventual", 50, Consistency::Quorum);
    let policy = Policy::default();
    let count = |fake: &Fake| {
        let mut firsts = BTreeMap::<u8, u32>::new();
        for entropy in 0..5000 {
            let order = order(&plan(&view, &request, &policy, fake, entropy, 0));
            *firsts.entry(order[0]).or_default() += 1;
        }
        firsts
    };
    let even = count(&Fake::default());
    assert_eq!(even.len(), 5);
    assert!(
        even.values().all(|&count| (880..1120).contains(&count)),
        "{even:?}"
    );
    let in_flight = BTreeMap::from([(1, 9), (2, 9), (4, 9), (5, 9)]);
    let uneven = count(&Fake {
        in_flight,
        ..Fake::default()
    });
    assert!(uneven[&3] > 1500, "{uneven:?}");
    // A dead node's share goes to all others.
    writer.set_up(
        writer
            .topology()
            .node_by_host_id(Uuid::from_u128(3))
            .unwrap(),
        false,
    );
    let view = writer.view();
    let mut firsts = BTreeMap::<u8, u32>::new();
    for entropy in 0..4000 {
        let order = order(&plan(
            &view,
            &request,
            &policy,
            &Fake::default(),
            entropy,
            0,
        ));
        *firsts.entry(order[0]).or_default() += 1;
    }
    assert!(
        firsts.values().all(|&count| (850..1150).contains(&count)),
        "{firsts:?}"
    );
}

/// Twice the root of the sum is the least difference that counts: the squares of the rule beside
/// the numbers, worked out by hand.
#[test]
fn small_differences_do_not_overrule_the_draw() {
    for (left, right, busier) in [
        (0, 0, false),
        (1, 0, false),
        (4, 0, false),     // 16 against 16
        (5, 0, true),      // 25 against 20
        (7, 1, true),      // 36 against 32
        (6, 1, false),     // 25 against 28
        (21, 8, true),     // 169 against 116
        (18, 8, false),    // 100 against 104
        (130, 100, false), // 900 against 920
        (131, 100, true),  // 961 against 924
        (0, 5, false),
        (100, 131, false),
        (u32::MAX, 0, true),
        (u32::MAX, u32::MAX, false),
    ] {
        assert_eq!(is_busier(left, right), busier, "{left} against {right}");
    }
}

/// A hundred requests in flight over three replicas that answer one request per tick, but for one
/// that is ten times slower: the slow one gets few, and of the equal ones neither is preferred.
#[test]
fn a_slow_replica_gets_less_and_equal_ones_the_same() {
    let (view, request, policy) = three_equals();
    let mut fake = Fake::default();
    let mut sent = BTreeMap::<u8, u32>::new();
    for tick in 0..30_000_u64 {
        let first = order(&plan(&view, &request, &policy, &fake, mix(tick), 0))[0];
        *sent.entry(first).or_default() += 1;
        *fake.in_flight.entry(first).or_default() += 1;
        // Both good nodes together answer what comes in; the slow one a tenth of its third.
        let answers = |n: u8| {
            if n == 4 {
                tick % 30 == 0
            } else {
                tick % 2 == u64::from(n == 3)
            }
        };
        for (&n, count) in &mut fake.in_flight {
            *count = count.saturating_sub(u32::from(answers(n)));
        }
    }
    let (one, three, slow) = (sent[&1], sent[&3], sent[&4]);
    assert!(slow < 1_200, "{sent:?}");
    assert!(one.abs_diff(three) < 600, "{sent:?}");
}
