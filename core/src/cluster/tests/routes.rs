//! Client routes: ways to nodes that are read, followed and lost.

use core::time::Duration;
use std::collections::BTreeSet;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use super::answers::{self, Cell};
use super::world::{Behaviour, FakeNode, World, config, node};
use crate::cluster::{ConnectionId, NodeRoute, RouteProblem, WarmStart};
use crate::config::{ClientRoutes, Config};
use crate::target::{Endpoint, Steering};

const A: u128 = 1;
const B: u128 = 0xbbbbbbbb_0000_0000_0000_000000000002;

/// UPDATE_NODES, connection id c1, host id B.
const UPDATE_OF_B: &str = "8400ffff0c000000520014434c49454e545f524f555445535f4348414e4745000c55504441\
     54455f4e4f4445530001000263310001002462626262626262622d303030302d303030302d303030302d3030303030303\
     030303030 32";

fn row(id: &str, host: u128, address: &str, port: Option<i32>, tls_port: Option<i32>) -> Vec<Cell> {
    vec![
        answers::text(id),
        answers::uuid(host),
        answers::text(address),
        port.and_then(answers::int),
        tls_port.and_then(answers::int),
    ]
}

fn plain(host: u128, port: i32) -> Vec<Cell> {
    row("c1", host, "nlb.example", Some(port), None)
}

fn nodes() -> Vec<FakeNode> {
    let (a, mut b) = (node(1), node(2));
    b.host_id = B;
    vec![a, b]
}

fn following() -> Config {
    let mut config = config("10.0.0.1");
    config.client_routes = Some(ClientRoutes::new(["c1"]));
    config
}

/// A and B behind one name; nobody listens on B's port 9002.
fn case_o7() -> World {
    let mut world = World::new(nodes(), following());
    world.routes = Some(vec![plain(A, 9001), plain(B, 9002)]);
    world.proxies.insert(("nlb.example", 9001), 0);
    world.proxies.insert(("nlb.example", 9102), 1);
    world
}

/// The same with B reached.
fn two_reached() -> World {
    let mut world = case_o7();
    world.routes = Some(vec![plain(A, 9001), plain(B, 9102)]);
    world.run_secs(5);
    assert_eq!(world.ready, 1);
    assert_eq!((world.shards(A), world.shards(B)), (ALL.into(), ALL.into()));
    world
}

const ALL: [u16; 4] = [0, 1, 2, 3];

/// Where was dialed since the `from`th connect.
fn dialed(world: &World, from: usize) -> BTreeSet<String> {
    let connects = world.connects[from..].iter();
    connects
        .map(|(_, endpoint, _)| endpoint.to_string())
        .collect()
}

fn set(endpoints: &[&str]) -> BTreeSet<String> {
    endpoints.iter().map(ToString::to_string).collect()
}

fn ids_of(world: &World, node: usize) -> Vec<ConnectionId> {
    let of_node = |(id, conn): (&ConnectionId, &super::world::Conn)| {
        (conn.node == node && conn.opened).then_some(*id)
    };
    world.conns.iter().filter_map(of_node).collect()
}

fn route_of(world: &World, host_id: u128) -> NodeRoute {
    let node = world.idx(host_id);
    let status = world.engine.status();
    let found = status.nodes.iter().find(|known| known.node == node);
    found.expect("a known node").route.clone()
}

fn reads(world: &World) -> usize {
    world.count_statements("system.client_routes")
}

/// Lets time pass until the table is read once more.
fn run_until_read(world: &mut World, at_most: Duration) {
    let before = reads(world);
    let end = world.now.saturating_add(at_most);
    while reads(world) == before {
        assert!(world.now < end, "not read again");
        world.run_for(Duration::from_millis(1));
    }
}

/// Case O7, its first part.
#[test]
fn a_new_route_replaces_the_old_one_and_is_tried_at_once() {
    let mut world = case_o7();
    world.run_secs(40);
    assert_eq!(world.shards(A), ALL);
    assert_eq!((world.ready, world.open_to(1)), (1, 0));
    let kept = ids_of(&world, 0);
    let (last, ..) = *world.connects.last().unwrap();
    assert_eq!(
        dialed(&world, 0),
        set(&["10.0.0.1:9042", "nlb.example:9001", "nlb.example:9002"])
    );
    // In the midst of a long pause.
    let first_after = world.connects.len();
    world.run_for(Duration::from_millis(100));
    assert_eq!(world.connects.len(), first_after, "{last:?}");
    world.routes = Some(vec![plain(A, 9001), plain(B, 9102)]);
    world.event(world.control(), &answers::event(UPDATE_OF_B));
    run_until_read(&mut world, Duration::from_millis(600));
    let before = dialed(&world, first_after);
    world.run_for(Duration::from_millis(100));
    assert_eq!(dialed(&world, first_after), set(&["nlb.example:9102"]));
    assert!(before.is_subset(&set(&["nlb.example:9102"])));
    world.run_secs(2);
    assert_eq!(world.shards(B), ALL);
    assert_eq!(ids_of(&world, 0), kept, "A is not touched");
    assert!(!dialed(&world, first_after).contains("nlb.example:9001"));
}

/// Without a route there is no way: what is open stays, and nothing is dialed.
#[test]
fn a_deleted_route_costs_no_connection_and_allows_none() {
    let mut world = two_reached();
    let (first_after, kept) = (world.connects.len(), ids_of(&world, 1));
    world.routes = Some(vec![plain(A, 9001)]);
    world.event(world.control(), &answers::event(UPDATE_OF_B));
    world.run_secs(2);
    let missing = NodeRoute::Unreachable(RouteProblem::Missing);
    assert_eq!(route_of(&world, B), missing);
    assert_eq!(ids_of(&world, 1), kept);
    world.cut(1);
    world.run_secs(100);
    assert_eq!(dialed(&world, first_after), set(&[]));
    assert_eq!(world.shards(A), ALL);
    // A new route is taken at once, though B has failed.
    world.routes = Some(vec![plain(A, 9001), plain(B, 9102)]);
    world.event(world.control(), &answers::event(UPDATE_OF_B));
    run_until_read(&mut world, Duration::from_secs(2));
    world.run_for(Duration::from_millis(100));
    assert_eq!(dialed(&world, first_after), set(&["nlb.example:9102"]));
}

/// The error is that node's alone, in its status.
#[test]
fn a_route_without_a_port_for_the_way_in_use_concerns_its_node() {
    let only = |port, tls_port| row("c1", B, "nlb.example", port, tls_port);
    for (is_tls, routes_b, expected) in [
        (false, only(None, Some(9102)), RouteProblem::NoPort),
        (false, only(Some(0), Some(9102)), RouteProblem::NoPort),
        (false, only(Some(65_536), None), RouteProblem::NoPort),
        (false, only(Some(-1), None), RouteProblem::NoPort),
        (true, only(Some(9102), None), RouteProblem::NoPort),
        (
            false,
            row("c1", B, "not a name", Some(9102), None),
            RouteProblem::BadAddress,
        ),
        (
            false,
            row("c1", B, "0.0.0.0", Some(9102), None),
            RouteProblem::BadAddress,
        ),
        (
            false,
            row("c1", B, &"a".repeat(256), Some(9102), None),
            RouteProblem::BadAddress,
        ),
    ] {
        let mut world = match is_tls {
            true => World::secured(nodes(), following()),
            false => World::new(nodes(), following()),
        };
        world.proxies.insert(("nlb.example", 9001), 0);
        world.routes = Some(vec![
            row("c1", A, "nlb.example", Some(9001), Some(9001)),
            routes_b,
        ]);
        world.run_secs(30);
        assert_eq!(world.shards(A), ALL);
        assert_eq!(
            dialed(&world, 0),
            set(&["10.0.0.1:9042", "nlb.example:9001"])
        );
        assert_eq!(route_of(&world, B), NodeRoute::Unreachable(expected));
        let name = Endpoint::Name {
            host: "nlb.example".into(),
            port: 9001,
        };
        assert_eq!(route_of(&world, A), NodeRoute::Routed(name));
        let said = |text: &&String| text.contains("its route has no");
        assert_eq!(world.warnings.iter().filter(said).count(), 1);
    }
}

/// Under TLS a route is its address and its `tls_port`; what else of it changes changes nothing.
#[test]
fn under_tls_routes_lead_to_their_tls_ports() {
    let mut world = World::secured(nodes(), following());
    let route = |host, port, tls_port| row("c1", host, "nlb.example", Some(port), Some(tls_port));
    let other = |world: &mut World, rows: Vec<Vec<Cell>>| {
        world.routes = Some(rows);
        let control = world.control();
        world.event(control, &answers::event(UPDATE_OF_B));
        run_until_read(world, Duration::from_secs(2));
        world.run_secs(1);
    };
    let reached = |world: &World, port| {
        let host = "nlb.example".into();
        assert_eq!(
            route_of(world, B),
            NodeRoute::Routed(Endpoint::Name { host, port })
        );
        assert_eq!((world.shards(A), world.shards(B)), (ALL.into(), ALL.into()));
    };
    world.routes = Some(vec![route(A, 9001, 9142), route(B, 9002, 9143)]);
    world.proxies.insert(("nlb.example", 9142), 0);
    world.proxies.insert(("nlb.example", 9143), 1);
    world.run_secs(5);
    reached(&world, 9143);
    let begun = set(&["10.0.0.1:9042", "nlb.example:9142", "nlb.example:9143"]);
    assert_eq!(dialed(&world, 0), begun);

    let before = world.connects.len();
    other(&mut world, vec![route(A, 9101, 9142), route(B, 9102, 9143)]);
    reached(&world, 9143);
    assert_eq!(world.connects.len(), before);

    other(&mut world, vec![route(A, 9101, 9142), route(B, 9102, 9144)]);
    world.proxies.remove(&("nlb.example", 9143));
    world.proxies.insert(("nlb.example", 9144), 1);
    world.cut(1);
    world.run_secs(15);
    reached(&world, 9144);
    assert_eq!(dialed(&world, before), set(&["nlb.example:9144"]));
}

/// What an earlier session knew of nodes is not how they are reached from here: nothing but the contact
/// point is dialed before the routes were read.
#[test]
fn a_warm_start_waits_for_the_routes() {
    let blob = super::warm::saved(&two_reached(), &following());
    assert!(!blob.is_empty());
    let mut config = following();
    config.warm_start = Some(WarmStart::new(blob));
    let mut world = World::new(nodes(), config);
    assert!(!world.engine.is_warm());
    world.routes = Some(vec![plain(A, 9001), plain(B, 9202)]);
    world.proxies.insert(("nlb.example", 9001), 0);
    world.proxies.insert(("nlb.example", 9202), 1);
    while reads(&world) == 0 {
        world.run_for(Duration::from_millis(1));
    }
    assert_eq!(dialed(&world, 0), set(&["10.0.0.1:9042"]));
    world.run_secs(5);
    assert_eq!(world.ready, 1);
    assert_eq!((world.shards(A), world.shards(B)), (ALL.into(), ALL.into()));
    let all = set(&["10.0.0.1:9042", "nlb.example:9001", "nlb.example:9202"]);
    assert_eq!(dialed(&world, 0), all);
}

/// A way that swallows connects holds up nothing once there is a better one.
#[test]
fn attempts_by_an_old_route_are_given_up() {
    let mut world = case_o7();
    world.nodes[1].behaviour = Behaviour::Silent;
    world.proxies.insert(("nlb.example", 9002), 1);
    world.run_for(Duration::from_secs(2));
    assert_eq!(world.open_to(1), 0);
    let first_after = world.connects.len();
    world.nodes[1].behaviour = Behaviour::Good;
    world.routes = Some(vec![plain(A, 9001), plain(B, 9102)]);
    world.event(world.control(), &answers::event(UPDATE_OF_B));
    world.run_secs(1);
    assert_eq!(dialed(&world, first_after), set(&["nlb.example:9102"]));
    assert_eq!(world.shards(B), ALL);
}

/// An older node answers REGISTER with an error for the word, and for its whole request.
#[test]
fn nodes_that_do_not_know_the_event_are_read_now_and_then() {
    let mut world = case_o7();
    world.refuses_route_events = true;
    world.run_secs(5);
    assert_eq!((world.ready, world.shards(A)), (1, ALL.into()));
    world.routes = Some(vec![plain(A, 9001), plain(B, 9102)]);
    world.run_secs(60);
    assert_eq!(world.shards(B), ALL);
    let said = |text: &&String| text.contains("client routes are not told of");
    assert_eq!(world.warnings.iter().filter(said).count(), 1);
    // The other events are heard there all the same.
    let before = world.count_statements("system_schema.tables");
    let created = "8400ffff0c00000026000d534348454d415f4348414e474500074352454154454400084b455953504143\
         4500026b73";
    world.event(world.control(), &answers::event(created));
    world.run_secs(2);
    assert_eq!(world.count_statements("system_schema.tables"), before + 1);
}

/// An older node has no such table: not that all routes are gone.
#[test]
fn nodes_without_the_table_take_no_route_away() {
    let mut world = two_reached();
    let kept = (ids_of(&world, 0), ids_of(&world, 1));
    let first_after = world.connects.len();
    world.routes = None;
    world.event(world.control(), &answers::event(UPDATE_OF_B));
    world.run_secs(100);
    assert_eq!((ids_of(&world, 0), ids_of(&world, 1)), kept);
    world.cut(1);
    world.run_secs(2);
    assert_eq!(world.shards(B), ALL);
    assert_eq!(dialed(&world, first_after), set(&["nlb.example:9102"]));
    // Where there never was one, the contact point is all that is used.
    let mut world = World::new(nodes(), following());
    world.run_secs(30);
    assert_eq!((world.ready, world.shards(A).len()), (1, 1));
    assert_eq!(dialed(&world, 0), set(&["10.0.0.1:9042"]));
}

#[test]
fn only_events_about_own_ids_cause_a_reading_and_those_without_pairs_do() {
    for (ids, hosts, is_read) in [
        (&["c1"][..], &["x"][..], true),
        (&["other", "c1"], &["x", "y"], true),
        (&["other"], &["x"], false),
        (&["c1 "], &["x"], false),
        (&[], &[], true),
        (&["other"], &[], true),
        (&["other"], &["x", "y"], true),
        (&[], &["x"], true),
    ] {
        let mut world = two_reached();
        let before = reads(&world);
        let mut body = Vec::new();
        let string = |body: &mut Vec<u8>, text: &str| {
            body.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
            body.extend(text.as_bytes());
        };
        string(&mut body, "CLIENT_ROUTES_CHANGE");
        string(&mut body, "UPDATE_NODES");
        for list in [ids, hosts] {
            body.extend(u16::try_from(list.len()).unwrap().to_be_bytes());
            list.iter().for_each(|text| string(&mut body, text));
        }
        let topologies = world.count_statements("system.peers");
        for _ in 0..10 {
            world.event(world.control(), &body);
        }
        world.run_secs(2);
        assert_eq!(
            reads(&world) - before,
            usize::from(is_read),
            "{ids:?} {hosts:?}"
        );
        assert_eq!(world.count_statements("system.peers"), topologies);
    }
}

/// Whoever does not follow routes neither asks for the events nor reads the table.
#[test]
fn routes_are_not_read_unless_they_are_followed() {
    let mut world = World::new(nodes(), config("10.0.0.1"));
    world.routes = Some(vec![plain(A, 9001), plain(B, 9102)]);
    world.run_secs(5);
    world.event(world.control(), &answers::event(UPDATE_OF_B));
    world.run_secs(100);
    assert_eq!(reads(&world), 0);
    assert_eq!((world.shards(A), world.shards(B)), (ALL.into(), ALL.into()));
    assert_eq!(route_of(&world, A), NodeRoute::Direct);
    assert_eq!(world.warnings, Vec::<String>::new());
}

/// All stand behind one name: a port that leads to another node is found out by its host id.
#[test]
fn nodes_behind_one_name_are_told_apart() {
    let mut world = case_o7();
    world.routes = Some(vec![plain(A, 9001), plain(B, 9102)]);
    // The proxy has them the wrong way round.
    world.proxies.insert(("nlb.example", 9001), 1);
    world.proxies.insert(("nlb.example", 9102), 0);
    world.run_secs(5);
    assert_eq!((world.shards(A).len(), world.shards(B).len()), (1, 0));
    assert!(world.engine.status().counters.wrong_hosts > 0);
    assert!(reads(&world) > 1, "the routes are read again");
    world.routes = Some(vec![plain(A, 9102), plain(B, 9001)]);
    world.run_secs(15);
    assert_eq!((world.shards(A), world.shards(B)), (ALL.into(), ALL.into()));
}

/// A proxy chooses source ports itself, so the shard-aware port is used on demand only.
#[test]
fn the_shard_aware_port_is_used_at_the_route_if_wanted() {
    for is_wanted in [false, true] {
        let mut config = following();
        config.client_routes.as_mut().unwrap().shard_aware_port = is_wanted;
        let mut world = World::new(nodes(), config);
        world.routes = Some(vec![plain(A, 9001)]);
        world.proxies.insert(("nlb.example", 9001), 0);
        world.proxies.insert(("nlb.example", 19042), 0);
        world.run_secs(5);
        assert_eq!(world.shards(A), ALL);
        let steered = |(_, endpoint, steering): &&(_, Endpoint, Steering)| {
            *steering != Steering::None && endpoint.to_string() == "nlb.example:19042"
        };
        let steered = world.connects.iter().filter(steered).count();
        assert_eq!(steered, if is_wanted { 3 } else { 0 });
    }
}

/// The control role on another connection hears of changes there.
#[test]
fn a_new_control_connection_hears_of_routes_too() {
    let mut world = two_reached();
    let old = world.control();
    world.cut(0);
    world.run_secs(2);
    let control = world.control();
    assert_ne!(control, old);
    let before = reads(&world);
    world.event(control, &answers::event(UPDATE_OF_B));
    world.run_secs(2);
    assert_eq!(reads(&world), before + 1);
}
