//! What a node tells about its clients and their requests: traces, clients, warnings, routes; what
//! it refuses them; and fixed answers.

use messina_sim::control;
use messina_sim::node::{ClientTls, Listener, Options, TabletsMode};

use crate::support::{
    ERROR, EXECUTE, Frame, LOCAL_QUORUM, PREPARE, QUERY, RESULT, Rows, Sim, Take, V2, execute,
    frame, frames, hex, long_string, parameters, query, string, unhex,
};

/// Sends a request that asks for a trace; the id and the reply without it.
fn traced(
    sim: &mut Sim,
    id: messina_sim::node::ConnectionId,
    opcode: u8,
    body: &[u8],
) -> (Vec<u8>, Frame) {
    let bytes = sim.feed(id, &frame(4, 2, 1, opcode, body));
    let mut reply = frames(&bytes).remove(0);
    assert_eq!(reply.flags & 2, 2, "{reply:?}");
    let id = reply.body.drain(..16).collect();
    (id, reply)
}

fn of_session(sim: &mut Sim, columns: &str, table: &str, session: &[u8]) -> Rows {
    let reader = sim.connect(2, 0, &[]);
    let text = format!("SELECT {columns} FROM system_traces.{table} WHERE session_id = ?");
    let body = query(&text, &parameters(LOCAL_QUORUM, &[session]));
    sim.ask(reader, QUERY, &body).rows()
}

#[test]
fn a_trace_can_be_read_a_little_later() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let client = sim.connect(1, 1, &[]);
    let body = query(
        "SELECT v FROM ks.t WHERE pk = 1",
        &parameters(LOCAL_QUORUM, &[]),
    );
    let (session, reply) = traced(&mut sim, client, QUERY, &body);
    assert_eq!(reply.opcode, RESULT);
    assert_eq!(session[6] >> 4, 1, "a time-based uuid");

    let columns = "client, command, coordinator, request, request_size, response_size, username, \
                   duration, parameters, started_at";
    let early = of_session(&mut sim, columns, "sessions", &session);
    assert_eq!(early.rows.len(), 1);
    assert_eq!(early.rows[0][7], None, "not complete yet");
    sim.now += 10_000;
    let late = of_session(&mut sim, columns, "sessions", &session);
    let row: Vec<Vec<u8>> = late.rows[0].iter().flatten().cloned().collect();
    assert_eq!(row.len(), 10, "complete");
    assert_eq!(row[0], [10, 0, 0, 1]);
    assert_eq!(row[2], [127, 0, 0, 2]);
    assert_eq!(late.texts(1), ["QUERY"]);
    assert_eq!(late.texts(3), ["Execute CQL3 query"]);
    assert_eq!(late.ints(4), [i32::try_from(body.len()).unwrap()]);
    assert_eq!(late.ints(5), [i32::try_from(reply.body.len()).unwrap()]);
    assert_eq!(late.texts(6), ["anonymous"]);
    assert!(late.ints(7)[0] > 0);
    let parameters = "00000002 00000011 636f6e73697374656e63795f6c6576656c 0000000c
        4c4f43414c5f51554f52554d 00000005 7175657279 0000001f
        53454c45435420762046524f4d206b732e7420574845524520706b203d2031";
    assert_eq!(hex(&row[8]), hex(&unhex(parameters)));
    let millis = (sim.now - 10_000) / 1000;
    assert_eq!(row[9], millis.to_be_bytes());

    let columns = "activity, source, source_elapsed, thread";
    let events = of_session(&mut sim, columns, "events", &session);
    assert_eq!(events.texts(0)[0], "Parsing a statement");
    assert_eq!(events.texts(3)[0], "shard 1");
    let elapsed = events.ints(2);
    assert!(
        elapsed.windows(2).all(|pair| pair[0] < pair[1]),
        "{elapsed:?}"
    );
    assert!(*elapsed.last().unwrap() <= late.ints(7)[0]);
}

#[test]
fn every_kind_of_request_is_traced_and_failures_too() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let client = sim.connect(0, 0, &[]);
    let text = "SELECT v FROM ks.t WHERE pk = ?";
    let id = sim.prepare(client, text);
    let wrong = query("SELEKT", &parameters(LOCAL_QUORUM, &[]));
    let run = execute(&id, &parameters(LOCAL_QUORUM, &[&[0, 0, 0, 1]]), None);
    let mut seen = Vec::new();
    for (opcode, body, answer, request, said) in [
        (
            PREPARE,
            long_string(text),
            RESULT,
            "Preparing CQL3 query",
            text,
        ),
        (EXECUTE, run, RESULT, "Execute CQL3 prepared query", text),
        (QUERY, wrong, ERROR, "Execute CQL3 query", "SELEKT"),
    ] {
        let (session, reply) = traced(&mut sim, client, opcode, &body);
        assert_eq!(reply.opcode, answer);
        let row = of_session(&mut sim, "request, parameters", "sessions", &session);
        assert_eq!(row.texts(0), [request]);
        let parameters = row.rows[0][1].clone().unwrap();
        assert!(String::from_utf8_lossy(&parameters).contains(said));
        assert!(!seen.contains(&session), "an id of its own");
        seen.push(session);
    }
    // Nothing else than statements is traced.
    let options = frames(&sim.feed(client, &frame(4, 2, 1, 5, &[]))).remove(0);
    assert_eq!(options.flags, 0);
}

#[test]
fn only_the_newest_traces_are_kept() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let client = sim.connect(0, 0, &[]);
    let body = query("SELEKT", &parameters(LOCAL_QUORUM, &[]));
    let (first, _) = traced(&mut sim, client, QUERY, &body);
    for _ in 0..1000 {
        traced(&mut sim, client, QUERY, &body);
    }
    assert!(
        of_session(&mut sim, "request", "sessions", &first)
            .rows
            .is_empty()
    );
    let reader = sim.connect(0, 0, &[]);
    let all = sim.ok(reader, "SELECT request FROM system_traces.sessions");
    assert_eq!(all.rows().rows.len(), 1000);
}

#[test]
fn clients_are_shown_with_what_they_said_and_how_they_came() {
    let mut options = Options::uniform(2, 2);
    options.tls_port = Some(9142);
    let mut sim = Sim::new(options);
    let peer = "10.0.0.9:4000".parse().unwrap();
    let secure = sim
        .cluster
        .accept(0, Listener::RegularTls, peer, sim.now)
        .unwrap();
    let tls = ClientTls::new("TLS1.3", "TLS_AES_256_GCM_SHA384");
    sim.cluster.set_tls(secure, tls);
    let startup = [
        unhex("0003"),
        string("DRIVER_CONFIG"),
        string("{\"a\":1}"),
        string("DRIVER_NAME"),
        string("d"),
        string("DRIVER_VERSION"),
        string("9"),
    ];
    assert_eq!(sim.ask(secure, 1, &startup.concat()).opcode, 2);
    let plain = sim.open(0, 1);
    let elsewhere = sim.connect(1, 0, &[]);

    let columns = "connection_stage, driver_name, driver_version, hostname, ssl_protocol, \
                   ssl_cipher_suite, username, client_type, ssl_enabled, client_options, port, \
                   protocol_version, shard_id";
    let text = format!("SELECT {columns} FROM system.clients");
    let shown = sim.ok(secure, &text).rows();
    let by_column = |column| shown.texts(column);
    assert_eq!(by_column(0), ["ESTABLISHED", "READY"]);
    assert_eq!(by_column(1), ["", "d"]);
    assert_eq!(by_column(2), ["", "9"]);
    assert_eq!(by_column(3), ["10.0.0.1", "10.0.0.9"]);
    assert_eq!(by_column(4), ["", "TLS1.3"]);
    assert_eq!(by_column(5), ["", "TLS_AES_256_GCM_SHA384"]);
    assert_eq!(by_column(6), ["anonymous", "anonymous"]);
    assert_eq!(by_column(7), ["cql", "cql"]);
    assert_eq!(shown.rows[0][8], Some(vec![0]));
    assert_eq!(shown.rows[1][8], Some(vec![1]));
    let said = "00000003 0000000d 4452495645525f434f4e464947 00000007 7b2261223a317d
                0000000b 4452495645525f4e414d45 00000001 64
                0000000e 4452495645525f56455253494f4e 00000001 39";
    assert_eq!(hex(shown.rows[1][9].as_deref().unwrap()), hex(&unhex(said)));
    assert_eq!(shown.ints(10)[1], 4000);
    assert_eq!(shown.ints(12), [1, 0]);

    sim.cluster.disconnect(plain);
    assert_eq!(sim.ok(secure, &text).rows().rows.len(), 1);
    assert_eq!(sim.ok(elsewhere, &text).rows().rows.len(), 1);
}

#[test]
fn warnings_come_on_demand_with_results_of_version_4() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let client = sim.connect(0, 0, &[]);
    sim.cluster.warn_next(0, "w1", 2).unwrap();
    let statement = "INSERT INTO ks.t (pk, v) VALUES (1, 'a')";
    // Neither the node's own tables nor errors use them up.
    assert_eq!(sim.ok(client, "SELECT key FROM system.local").flags, 0);
    assert_eq!(sim.query(client, "SELEKT").flags, 0);
    for (flags, start) in [
        (8, "0001000277310000"),
        (8, "00010002773100"),
        (0, "00000001"),
    ] {
        let reply = sim.ok(client, statement);
        assert_eq!(reply.flags, flags);
        assert!(hex(&reply.body).starts_with(start), "{reply:?}");
    }
    // Version 3 has none.
    let old = sim.open(0, 0);
    sim.feed(old, &frame(3, 0, 1, 1, &[0, 0]));
    sim.cluster.warn_next(0, "w2", 1).unwrap();
    let body = query(statement, &parameters(LOCAL_QUORUM, &[]));
    let reply = frames(&sim.feed(old, &frame(3, 0, 1, QUERY, &body))).remove(0);
    assert_eq!((reply.opcode, reply.flags), (RESULT, 0));
    let batch = [&[0, 0, 1, 0][..], &long_string(statement), &[0, 0, 0, 6, 0]].concat();
    assert_eq!(sim.ask(client, 0x0D, &batch).flags, 8);
}

#[test]
fn partitions_have_their_rates() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let knows = sim.connect(0, 0, &["SCYLLA_RATE_LIMIT_ERROR"]);
    let knows_not = sim.connect(0, 0, &[]);
    sim.ok(
        knows,
        "CREATE TABLE ks.r (pk int PRIMARY KEY, v text) WITH per_partition_rate_limit = \
         {'max_reads_per_second': 2, 'max_writes_per_second': 1}",
    );
    let read = "SELECT v FROM ks.r WHERE pk = 1";
    let write = "INSERT INTO ks.r (pk, v) VALUES (1, 'a')";
    sim.ok(knows, read);
    sim.ok(knows_not, read);
    sim.ok(knows, write);
    let text =
        |what| format!("Per-partition rate limit reached for {what} in table ks.r, rejected by ");
    for (client, code, extra) in [(knows, 0xF000, 2), (knows_not, 0x2300, 0)] {
        for (statement, what, op) in [(read, "read", 0), (write, "write", 1)] {
            let reply = sim.query(client, statement);
            let (found, message) = reply.error();
            assert_eq!(found, code);
            assert!(message.starts_with(&text(what)), "{message}");
            assert_eq!(reply.body.len(), 6 + message.len() + extra);
            if extra > 0 {
                let by_coordinator = message.ends_with("coordinator");
                assert!(by_coordinator || message.ends_with("replicas"), "{message}");
                let tail = &reply.body[6 + message.len()..];
                assert_eq!(tail, [op, u8::from(by_coordinator)]);
            }
        }
    }
    // Other partitions, conditions and the next second are free.
    sim.ok(knows, "INSERT INTO ks.r (pk, v) VALUES (2, 'a')");
    sim.ok(
        knows,
        "INSERT INTO ks.r (pk, v) VALUES (1, 'a') IF NOT EXISTS",
    );
    sim.now += 1_000_000;
    sim.ok(knows, write);

    for wrong in ["{'max_reads': 1}", "{'max_reads_per_second': 'x'}"] {
        let text = format!(
            "CREATE TABLE ks.w (a int PRIMARY KEY) WITH per_partition_rate_limit = {wrong}"
        );
        assert_eq!(sim.query(knows, &text).error().0, 0x2300);
    }
    sim.ok(
        knows,
        "ALTER TABLE ks.r WITH per_partition_rate_limit = {'max_writes_per_second': 3}",
    );
    (0..2).for_each(|_| drop(sim.ok(knows, write)));
    assert_eq!(sim.query(knows, write).error().0, 0xF000);
    sim.ok(knows, read);
}

#[test]
fn routes_of_clients_are_set_announced_and_read() {
    let mut sim = Sim::new(Options::uniform(2, 1));
    let watcher = sim.connect(1, 0, &[]);
    let register = [unhex("0001"), string("CLIENT_ROUTES_CHANGE")].concat();
    assert_eq!(sim.ask(watcher, 0x0B, &register).opcode, 2);
    let command = |sim: &mut Sim, line: &str| {
        let answer = control::handle(&mut sim.cluster, line);
        assert!(answer.contains("\"ok\":true"), "{answer}");
    };
    command(
        &mut sim,
        r#"{"cmd":"client_routes","set":[
            {"connection_id":"conn-b","node":0,"address":"b.test","port":9042},
            {"connection_id":"conn-a","node":1,"address":"10.0.0.9","port":9142,"tls_port":9143}]}"#,
    );
    let heard = frames(&sim.cluster.take_output(watcher, sim.now));
    let [event] = &heard[..] else {
        panic!("one event: {heard:?}")
    };
    assert_eq!((event.stream, event.opcode, event.flags), (-1, 0x0C, 0));
    let mut take = Take(&event.body);
    assert_eq!(take.string(), "CLIENT_ROUTES_CHANGE");
    assert_eq!(take.string(), "UPDATE_NODES");
    assert_eq!(
        (take.short(), take.string(), take.string()),
        (2, "conn-a".into(), "conn-b".into())
    );
    assert_eq!(take.short(), 2);
    let host = |sim: &Sim, node: usize| hex(&sim.cluster.host_id(node).unwrap());
    assert_eq!(take.string().replace('-', ""), host(&sim, 1));
    assert_eq!(take.string().replace('-', ""), host(&sim, 0));
    assert!(take.0.is_empty());

    let columns = "connection_id, address, host_id, port, tls_port";
    let text =
        format!("SELECT {columns} FROM system.client_routes WHERE connection_id IN ('conn-a')");
    let shown = sim.ok(watcher, &text).rows();
    assert_eq!(
        (shown.texts(0), shown.texts(1)),
        (vec!["conn-a".into()], vec!["10.0.0.9".into()])
    );
    assert_eq!(shown.rows[0][2].as_deref().map(hex), Some(host(&sim, 1)));
    assert_eq!((shown.ints(3), shown.ints(4)), (vec![9142], vec![9143]));
    let all = sim
        .ok(
            watcher,
            &format!("SELECT {columns} FROM system.client_routes"),
        )
        .rows();
    assert_eq!(all.rows.len(), 2);

    let remove = r#"{"cmd":"client_routes","remove":[{"connection_id":"conn-a","node":1}]}"#;
    command(&mut sim, remove);
    assert!(
        !sim.cluster.take_output(watcher, sim.now).is_empty(),
        "heard of alike"
    );
    assert!(sim.ok(watcher, &text).rows().rows.is_empty());

    // A node of before does not know the event.
    let mut plain = Sim::new(Options::uniform(1, 1).with_plain());
    let client = plain.connect(0, 0, &[]);
    let (code, message) = plain.ask(client, 0x0B, &register).error();
    assert_eq!(code, 0x0A);
    assert_eq!(
        message,
        "Invalid value 'CLIENT_ROUTES_CHANGE' for Event.Type"
    );
}

#[test]
fn lean_nodes_answer_alike_and_route_and_count_as_ever() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let mut options = sim.cluster.options().clone();
    options.lean = true;
    let mut lean = Sim::new(options);
    for sim in [&mut sim, &mut lean] {
        let client = sim.connect(0, 0, &[]);
        let topology = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 2}";
        let create = format!("CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {topology}");
        sim.ok(client, &create);
        sim.ok(
            client,
            "CREATE TABLE IF NOT EXISTS ks.t (pk int PRIMARY KEY, v text)",
        );
        sim.cluster.reset_stats();
        let client = sim.connect(0, 0, &[V2]);
        let write = sim.prepare(client, "INSERT INTO ks.t (pk, v) VALUES (?, ?)");
        for key in 0_u32..50 {
            let values = parameters(LOCAL_QUORUM, &[&key.to_be_bytes(), b"a"]);
            let reply = sim.ask(client, EXECUTE, &execute(&write, &values, Some(0)));
            assert_eq!(reply.payload().1, [0, 0, 0, 1], "VOID");
        }
    }
    let (full, thin) = (sim.cluster.stats().total(), lean.cluster.stats().total());
    assert_eq!(full, thin);
    assert_eq!(thin.requests, 50);
    assert!(thin.at_owner_node > 0 && thin.at_owner_node < 50);

    let client = lean.connect(0, 0, &[V2]);
    let read = lean.prepare(client, "SELECT pk, v, pk FROM ks.t WHERE pk = ?");
    let mut payloads = 0;
    for key in 0_u32..20 {
        let values = parameters(LOCAL_QUORUM, &[&key.to_be_bytes()]);
        let reply = lean.ask(client, EXECUTE, &execute(&read, &values, Some(0)));
        payloads += usize::from(reply.flags & 4 != 0);
        assert_eq!(
            reply.rows().rows,
            [[
                Some(vec![0, 0, 0, 42]),
                Some(b"the same for everybody".to_vec()),
                Some(vec![0, 0, 0, 42]),
            ]]
        );
    }
    assert!(payloads > 0, "the version held is a wrong one for some");
    // Nothing was stored, and what is not simple goes the usual way.
    assert!(
        lean.ok(client, "SELECT pk FROM ks.t")
            .rows()
            .rows
            .is_empty()
    );
    let local = lean.ok(client, "SELECT key FROM system.local WHERE key = 'local'");
    assert_eq!(local.rows().texts(0), ["local"]);
    // Too few replicas are still too few.
    lean.cluster.kill(1).unwrap();
    lean.cluster.kill(2).unwrap();
    let client = lean.connect(0, 0, &[]);
    let values = parameters(LOCAL_QUORUM, &[&[0, 0, 0, 1]]);
    let read = lean.prepare(client, "SELECT pk FROM ks.t WHERE pk = ?");
    assert_eq!(
        lean.ask(client, EXECUTE, &execute(&read, &values, None))
            .error()
            .0,
        0x1000
    );
}

/// What a lean node makes up is a value of its type: a driver that reads it must not stumble.
#[test]
fn lean_rows_have_values_of_every_type() {
    let mut options = Options::uniform(1, 1);
    options.lean = true;
    let mut sim = Sim::new(options);
    let client = sim.connect(0, 0, &[]);
    let topology = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}";
    sim.ok(
        client,
        &format!("CREATE KEYSPACE ks WITH replication = {topology}"),
    );
    for (ty, len) in [
        ("ascii", 22),
        ("bigint", 8),
        ("blob", 32),
        ("boolean", 1),
        ("date", 4),
        ("decimal", 5),
        ("double", 8),
        ("duration", 3),
        ("float", 4),
        ("inet", 4),
        ("int", 4),
        ("smallint", 2),
        ("text", 22),
        ("time", 8),
        ("timestamp", 8),
        ("timeuuid", 16),
        ("tinyint", 1),
        ("uuid", 16),
        ("varint", 1),
        ("list<int>", 4),
        ("frozen<map<int, text>>", 4),
        ("tuple<int, text>", 34),
    ] {
        let table = ty.replace(|c: char| !c.is_ascii_alphabetic(), "");
        sim.ok(
            client,
            &format!("CREATE TABLE ks.{table} (pk int PRIMARY KEY, v {ty})"),
        );
        let read = sim.prepare(client, &format!("SELECT v FROM ks.{table} WHERE pk = ?"));
        // Without metadata, whose types this test's reader would have to know.
        let mut values = parameters(LOCAL_QUORUM, &[&[0, 0, 0, 1]]);
        values[2] |= 2;
        let rows = sim
            .ask(client, EXECUTE, &execute(&read, &values, None))
            .rows();
        assert_eq!(rows.rows[0][0].as_ref().map(Vec::len), Some(len), "{ty}");
    }
}
