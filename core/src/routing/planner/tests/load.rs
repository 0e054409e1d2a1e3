//! The draw among equals, and the less loaded of two.

use super::*;

#[test]
fn equal_replicas_share_evenly_and_the_less_loaded_of_two_wins() {
    let mut writer = writer(&NODES);
    learn(&mut writer, "eventual", Some(1), &[(1, 0), (3, 0), (4, 0)]);
    let view = writer.view();
    let request = request(&view, "eventual", 50, Consistency::Quorum);
    let policy = Policy {
        shuffle: true,
        ..policy("a", "", false)
    };
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
    let in_flight = BTreeMap::from([(1, 5), (3, 0), (4, 9)]);
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
    let mut writer = writer(&NODES);
    learn(&mut writer, "eventual", Some(1), &[(1, 0), (3, 0), (4, 0)]);
    let view = writer.view();
    let request = request(&view, "eventual", 50, Consistency::Quorum);
    let policy = Policy {
        shuffle: true,
        ..policy("a", "", false)
    };
    for idle in [3, 4] {
        let in_flight = (1..=4).map(|n| (n, u32::from(n != idle))).collect();
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
