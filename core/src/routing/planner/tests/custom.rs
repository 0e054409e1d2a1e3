//! What a custom policy is shown, and what it may do to a plan.

use super::*;

fn idx(value: u16) -> NodeIdx {
    NodeIdx::from_value(value).unwrap()
}

fn plan_of(nodes: &[u16]) -> Plan {
    let mut plan = Plan::EMPTY;
    for &node in nodes.iter().rev() {
        plan.prefer(idx(node), None);
    }
    plan
}

#[test]
fn targets_are_preferred_kept_reordered_and_ended() {
    let mut plan = plan_of(&[0, 1, 2]);
    assert_eq!(order(&plan), [1, 2, 3]);
    plan.retain(|target| target.node != idx(1));
    assert_eq!(order(&plan), [1, 3]);
    plan.targets_mut().reverse();
    assert_eq!(order(&plan), [3, 1]);
    plan.prefer(idx(4), ShardIdx::new(7).into());
    let first = plan.targets()[0];
    assert_eq!((first.node, first.reason), (idx(4), Reason::Custom));
    assert!(first.shard.is_some());
    let many: Vec<u16> = (0..100).collect();
    let mut full = plan_of(&many);
    let len = full.targets().len();
    assert_eq!(order(&full)[..3], [1, 2, 3]);
    full.prefer(idx(9), None);
    assert_eq!((full.targets().len(), order(&full)[0]), (len, 10));
    assert_eq!(order(&Plan::of_one(first)), [5]);
}

#[test]
fn an_ended_plan_lists_nothing_more() {
    let mut writer = writer(&NODES);
    let view = writer.view();
    let request = request(&view, "eventual", 50, Consistency::One);
    let mut found = plan(
        &view,
        &request,
        &policy("", "", true),
        &Fake::default(),
        0,
        0,
    );
    assert_eq!(found.listed(), NODES.len());
    found.end();
    assert_eq!(found.listed(), 0);
    assert_eq!(found.targets().len(), NODES.len());
}

#[test]
fn a_policy_sees_the_request_and_the_cluster() {
    let mut writer = writer(&NODES);
    let view = writer.view();
    let request = request(&view, "eventual", 50, Consistency::Two);
    let fake = Fake {
        in_flight: BTreeMap::from([(3, 17)]),
        ..Fake::default()
    };
    let context = PlanContext {
        view: &view,
        request: &request,
        load: &fake,
        entropy: 11,
        skip: 5,
    };
    assert_eq!(context.view().topology().nodes().count(), NODES.len());
    assert_eq!(context.request().consistency, Consistency::Two);
    assert_eq!(context.load().in_flight(idx(2), None), 17);
    assert_eq!((context.entropy(), context.skip()), (11, 5));
    let shown = format!("{context:?}");
    assert!(shown.contains("entropy: 11, skip: 5"), "{shown}");
}
