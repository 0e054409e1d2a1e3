//! Nodes that are not contacted, and nodes without tokens.

use alloc::boxed::Box;
use core::time::Duration;
use std::vec;
use std::vec::Vec;

use super::answers;
use super::world::{Behaviour, FakeNode, World, config, node};
use crate::cluster::{Input, SettleId};
use crate::config::Config;
use crate::routing::{Host, HostFilter};
use crate::sync::Shared;

fn only(accepts: impl Fn(&Host<'_>) -> bool + Send + Sync + 'static) -> Config {
    let mut config = config("10.0.0.1");
    let filter: Box<dyn HostFilter> = Box::new(accepts);
    config.host_filter = Some(Shared::from(filter));
    config
}

fn in_dc(n: u8, dc: &'static str) -> FakeNode {
    FakeNode { dc, ..node(n) }
}

fn without_tokens(n: u8) -> FakeNode {
    FakeNode {
        tokens: None,
        ..node(n)
    }
}

fn is_enabled(world: &World, host_id: u128) -> bool {
    let (view, idx) = (world.view.clone().unwrap(), world.idx(host_id));
    view.topology().node(idx).unwrap().is_enabled()
}

/// Nodes that requests may go to.
fn serving(world: &World) -> Vec<u128> {
    let serves = |host_id: &u128| !world.shards(*host_id).is_empty();
    (1..=world.nodes.len() as u128).filter(serves).collect()
}

#[test]
fn filters_see_host_id_address_and_place() {
    let accepts: [fn(&Host<'_>) -> bool; 4] = [
        |host| host.host_id.as_u128() != 2,
        |host| host.address != "10.0.0.2:9042".parse().unwrap(),
        |host| host.dc == "dc1",
        |host| host.dc != "dc2" || host.rack != "r1",
    ];
    for accepts in accepts {
        let nodes = vec![node(1), in_dc(2, "dc2"), node(3)];
        let mut world = World::new(nodes, only(accepts));
        world.run_secs(70);
        assert_eq!(world.ready, 1);
        assert_eq!(serving(&world), [1, 3]);
        assert_eq!(world.nodes[1].connects, 0);
        assert!(!is_enabled(&world, 2) && is_enabled(&world, 3));
        assert!(world.warnings.is_empty(), "{:?}", world.warnings);
    }
}

/// The contact point reads the system tables and takes no request; when it fails, another node
/// has the control role, and it is not connected to again.
#[test]
fn a_refused_contact_point_has_the_control_role_only() {
    for shards in [Some(4), None] {
        let mut nodes = vec![node(1), node(2)];
        nodes[0].shards = shards;
        refused_contact_point(nodes);
    }
}

fn refused_contact_point(nodes: Vec<FakeNode>) {
    let mut world = World::new(nodes, only(|host| host.host_id.as_u128() != 1));
    world.run_secs(70);
    assert_eq!((world.ready, serving(&world)), (1, vec![2]));
    assert_eq!((world.open_to(0), world.nodes[0].connects), (1, 1));
    assert_eq!(world.conns[&world.control()].node, 0);
    world.cut(0);
    world.run_secs(70);
    assert_eq!(world.conns[&world.control()].node, 1);
    assert_eq!((world.open_to(0), world.nodes[0].connects), (0, 1));
    // The last way to the cluster: found through the contact point again.
    world.nodes[1].behaviour = Behaviour::Refuses;
    world.cut(1);
    world.run_secs(60);
    assert_eq!(world.conns[&world.control()].node, 0);
    assert_eq!(serving(&world), []);
    world.nodes[1].behaviour = Behaviour::Good;
    world.run_secs(15);
    assert_eq!(serving(&world), [2]);
}

#[test]
fn a_control_connection_that_does_not_answer_leaves_a_refused_node() {
    let mut world = World::new(
        vec![node(1), node(2)],
        only(|host| host.host_id.as_u128() != 1),
    );
    world.run_secs(5);
    world.nodes[0].behaviour = Behaviour::Mute;
    world.run_secs(70);
    assert_eq!(world.conns[&world.control()].node, 1);
    assert_eq!(world.open_to(0), 0);
}

#[test]
fn a_filter_may_change_its_mind() {
    let bars = Shared::new(crate::sync::Gauge::new(2));
    let seen = Shared::clone(&bars);
    let nodes = vec![node(1), node(2), node(3)];
    let filter = move |host: &Host<'_>| host.host_id.as_u128() != u128::from(seen.load());
    let mut world = World::new(nodes, only(filter));
    for (barred, expected) in [(2, [1, 3]), (3, [1, 2]), (1, [2, 3])] {
        bars.store(barred);
        world.run_secs(70);
        assert_eq!(serving(&world), expected);
        let control = world.conns[&world.control()].node;
        let left = usize::from(control == barred as usize - 1);
        assert_eq!(world.open_to(barred as usize - 1), left);
    }
}

#[test]
fn other_data_centres_are_connected_to_with_failover_only() {
    for (dc, failover, expected) in [
        (Some("dc1"), false, vec![1, 2]),
        (Some("dc2"), false, vec![3]),
        (Some("dc1"), true, vec![1, 2, 3]),
        (None, false, vec![1, 2, 3]),
    ] {
        let nodes = vec![node(1), node(2), in_dc(3, "dc2")];
        let mut config = config("10.0.0.1");
        config.policy.preferred_dc = dc.map(Into::into);
        config.policy.dc_failover = failover;
        let mut world = World::new(nodes, config);
        world.run_secs(70);
        assert_eq!((world.ready, serving(&world)), (1, expected), "{dc:?}");
    }
}

/// The session is there and says why it is of no use; a node that fits may come.
#[test]
fn a_cluster_without_any_node_to_use_is_said_and_not_waited_for() {
    let mut config = config("10.0.0.1");
    config.policy.preferred_dc = Some("dc2".into());
    let mut world = World::new(vec![node(1), node(2)], config);
    world.run_secs(200);
    assert_eq!((world.ready, serving(&world)), (1, vec![]));
    assert_eq!(world.warnings.len(), 1, "{:?}", world.warnings);
    assert_eq!(world.connects.len(), 1);
    world.nodes.push(in_dc(3, "dc2"));
    world.run_secs(70);
    assert_eq!(serving(&world), [3]);
}

/// Whether a node that is not connected to lives is not known, so nobody waits for its schema.
#[test]
fn nodes_that_are_not_contacted_do_not_hold_up_the_schema() {
    let nodes = vec![node(1), node(2)];
    let mut world = World::new(nodes, only(|host| host.host_id.as_u128() != 2));
    world.nodes[1].schema_version = 8;
    world.run_secs(1);
    world.input(Input::Settle { id: SettleId(1) });
    world.run_secs(2);
    let settled: Vec<bool> = world.settled.iter().map(|(_, agreed, _)| *agreed).collect();
    assert_eq!(settled, [true]);
}

#[test]
fn nodes_without_tokens_are_called_when_nothing_else_lives() {
    let nodes = vec![node(1), without_tokens(2), node(3)];
    let mut world = World::new(nodes, config("10.0.0.1"));
    world.run_secs(70);
    assert_eq!(serving(&world), [1, 3]);
    assert_eq!(world.nodes[1].connects, 0);
    assert!(is_enabled(&world, 2));
    // One that owns data is down: no reason yet.
    world.nodes[0].behaviour = Behaviour::Refuses;
    world.cut(0);
    world.run_secs(20);
    assert_eq!(serving(&world), [3]);
    world.nodes[2].behaviour = Behaviour::Refuses;
    world.cut(2);
    world.run_secs(2);
    assert_eq!(serving(&world), [2]);
    assert_eq!(world.conns[&world.control()].node, 1);
    // Said to be up is not enough, a connection is.
    let up = answers::bytes("000d5354415455535f4348414e474500025550040a00000300002352");
    world.event(world.control(), &up);
    assert!(world.is_up(3));
    assert_eq!(serving(&world), [2]);
    world.run_secs(1);
    assert_eq!(serving(&world), [2]);
    world.nodes[2].behaviour = Behaviour::Good;
    world.run_secs(12);
    assert_eq!(serving(&world), [3]);
    // The control role may stay where it is.
    assert!(world.open_to(1) <= 1);
}

#[test]
fn a_contact_point_without_tokens_has_the_control_role_only() {
    let nodes = vec![without_tokens(1), node(2)];
    let mut world = World::new(nodes, config("10.0.0.1"));
    world.run_for(Duration::from_millis(100));
    assert_eq!((world.ready, serving(&world)), (1, vec![2]));
    world.run_secs(70);
    assert_eq!((world.open_to(0), world.nodes[0].connects), (1, 1));
    world.nodes[1].behaviour = Behaviour::Refuses;
    world.cut(1);
    world.run_secs(5);
    assert_eq!(world.shards(1), [0, 1, 2, 3]);
}

#[test]
fn a_start_with_nothing_but_nodes_without_tokens_succeeds() {
    let mut nodes = vec![without_tokens(1), node(2)];
    nodes[1].behaviour = Behaviour::Refuses;
    let mut world = World::new(nodes, config("10.0.0.1"));
    world.run_secs(2);
    assert_eq!((world.ready, serving(&world)), (1, vec![1]));
    // No node has any: then it says nothing.
    let nodes = vec![without_tokens(1), without_tokens(2)];
    let mut world = World::new(nodes, config("10.0.0.1"));
    world.run_secs(2);
    assert_eq!((world.ready, serving(&world)), (1, vec![1, 2]));
}
