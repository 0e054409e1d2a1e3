//! What nodes do that a client would not guess.

use messina_sim::node::{Options, Replica, TabletsMode};

use crate::support::{
    EXECUTE, LOCAL_QUORUM, QUERY, RESULT, Sim, V2, execute, frame, frames, parameters, query,
    string, unhex,
};

/// Presence counts, the value does not.
#[test]
fn extensions_are_switched_on_by_any_value() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let text = "SELECT v FROM ks.t WHERE pk = ?";
    for value in ["", "true", "false", "0", "2147483648"] {
        let id = sim.open(0, 0);
        let body = [unhex("0001"), string(V2), string(value)].concat();
        assert_eq!(sim.ask(id, 1, &body).opcode, 2, "READY");
        let prepared = sim.prepare(id, text);
        let key: &[u8] = &[0, 0, 0, 1];
        let body = parameters(LOCAL_QUORUM, &[key]);
        let without = sim.ask(id, EXECUTE, &execute(&prepared, &body, None));
        assert_eq!(without.error().0, 0x0A, "a block is wanted: {value}");
        let with = sim.ask(id, EXECUTE, &execute(&prepared, &body, Some(0)));
        assert_eq!(with.opcode, RESULT);
    }
}

/// No event tells that a tablet moved, was split or is led by another.
#[test]
fn tablets_move_in_silence() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let watcher = sim.connect(0, 0, &[]);
    let all = [
        "TOPOLOGY_CHANGE",
        "STATUS_CHANGE",
        "SCHEMA_CHANGE",
        "CLIENT_ROUTES_CHANGE",
    ];
    let names: Vec<u8> = all.iter().flat_map(|name| string(name)).collect();
    let register = [unhex("0004"), names].concat();
    assert_eq!(sim.ask(watcher, 0x0B, &register).opcode, 2);
    sim.cluster.take_output(watcher, sim.now);
    let from = sim.cluster.tablets("ks", "t")[0].replicas[0];
    let to = Replica {
        node: from.node,
        shard: 1 - from.shard,
    };
    sim.cluster.move_tablet(("ks", "t"), 0, from, to).unwrap();
    sim.cluster.split(("ks", "t"), 0).unwrap();
    let leader = sim.cluster.tablets("sc", "t")[0].leader.unwrap();
    let other = Some(1 - leader);
    sim.cluster.set_leader(("sc", "t"), 0, other).unwrap();
    assert!(sim.cluster.take_output(watcher, sim.now).is_empty());
}

#[test]
fn nodes_name_the_release_that_they_are_compatible_with() {
    let mut sim = Sim::new(Options::uniform(2, 1));
    let id = sim.connect(0, 0, &[]);
    for table in ["local", "peers"] {
        let text = format!("SELECT release_version FROM system.{table}");
        assert_eq!(sim.ok(id, &text).rows().texts(0), ["3.0.8"], "{table}");
    }
}

/// Stream ids are given back as they came, never judged: also 0, negative ones and one in use.
#[test]
fn one_stream_id_twice_gets_two_answers() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    for stream in [0, 7, -1, i16::MIN, i16::MAX] {
        let ask = |text| frame(4, 0, stream, QUERY, &query(text, &parameters(1, &[])));
        let both = [
            ask("SELECT key FROM system.local"),
            ask("SELECT v FROM ks.t WHERE pk = 1"),
        ];
        let replies = frames(&sim.feed(id, &both.concat()));
        let seen: Vec<_> = replies.iter().map(|it| (it.stream, it.opcode)).collect();
        assert_eq!(seen, [(stream, RESULT); 2]);
    }
}
