//! Statements, values and batches, as the command takes them and tells of them.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

#[path = "support/cluster.rs"]
mod cluster;
mod support;

use cluster::Cluster;
use messina_sim::node::{CqlError, Options, TabletsMode};
use serde_json::{Value, json};
use support::{Ended, json_lines, messina};

/// A cluster with a keyspace `ks` of one replica, and these tables.
fn cluster(nodes: usize, tables: &str) -> Cluster {
    let cluster = Cluster::start(Options::uniform(nodes, 2));
    cluster.run("query", &[&format!("{KEYSPACE}{tables}")]);
    cluster
}

const KEYSPACE: &str = "CREATE KEYSPACE ks WITH replication = \
    {'class': 'NetworkTopologyStrategy', 'replication_factor': 1};";

const TABLE: &str = "CREATE TABLE ks.t (k int PRIMARY KEY, v text)";
const INSERT: &str = "INSERT INTO ks.t (k, v) VALUES (?, ?)";

/// A query that does not end well.
fn query_in_vain(cluster: &Cluster, arguments: &[&str]) -> Ended {
    let head = ["query", "--contact", &cluster.contact, "--format", "json"];
    let ended = messina(&[&head[..], arguments].concat());
    assert_ne!(ended.code, Some(0), "{arguments:?}: {ended:?}");
    ended
}

/// The rows of `ks.t`, sorted.
fn rows(cluster: &Cluster) -> Value {
    let mut found = cluster.run("query", &["SELECT k, v FROM ks.t"]);
    let mut rows: Vec<Value> = found[0]["rows"].as_array_mut().unwrap().drain(..).collect();
    rows.sort_by_key(|row| row[0].as_i64());
    rows.into()
}

/// Each form in the contract, and what comes back of values that are written in more than one.
#[test]
fn values_of_all_types_go_both_ways() {
    let uuid = json!("01020304-0506-0708-090a-0b0c0d0e0f10");
    let timeuuid = json!("d2177dd0-eaa2-11de-a572-001b779c76e3");
    let columns = [
        ("ascii", json!("plain")),
        ("bigint", json!(9_223_372_036_854_775_807_i64)),
        ("blob", json!("0x00ff")),
        ("boolean", json!(true)),
        ("date", json!("2026-11-29")),
        ("decimal", json!("-1.50")),
        ("double", json!("-Infinity")),
        ("duration", json!("1mo2d3ns")),
        ("float", json!(0.1)),
        ("inet", json!("2001:db8::1")),
        ("list<int>", json!([1, 2, 1])),
        ("map<text, int>", json!([["a", 1], ["b", 2]])),
        ("set<uuid>", json!([uuid])),
        ("smallint", json!(-32768)),
        ("text", json!("a \"\u{fc}\"\n")),
        ("time", json!("23:59:59.999999999")),
        ("timestamp", json!("2026-11-29T12:00:00.000Z")),
        ("timeuuid", timeuuid),
        ("tinyint", json!(-128)),
        ("tuple<int, text>", json!([5, null])),
        ("uuid", uuid),
        ("varint", json!("340282366920938463463374607431768211456")),
        ("vector<float, 3>", json!([1.0, 2.5, -3.0])),
        ("frozen<point>", json!({"x": 1, "name": "z"})),
        (
            "frozen<map<int, frozen<list<point>>>>",
            json!([[1, [{"x": 2, "name": null}]]]),
        ),
    ];
    let names: Vec<_> = (0..columns.len()).map(|at| format!("c{at}")).collect();
    let defined: Vec<_> = names
        .iter()
        .zip(&columns)
        .map(|(name, column)| format!("{name} {}", column.0))
        .collect();
    let schema = format!(
        "CREATE TYPE ks.point (x int, name text); CREATE TABLE ks.all (k int PRIMARY KEY, {})",
        defined.join(", ").replace("point", "ks.point")
    );
    let cluster = cluster(1, &schema);
    let list = names.join(", ");
    let insert = format!(
        "INSERT INTO ks.all (k, {list}) VALUES (?{})",
        ", ?".repeat(columns.len())
    );
    let with_key = |key: i32, values: Vec<Value>| {
        let row: Vec<_> = core::iter::once(json!(key)).chain(values).collect();
        Value::from(row).to_string()
    };
    let values: Vec<_> = columns.iter().map(|(_, value)| value.clone()).collect();
    let nulls = vec![Value::Null; columns.len()];
    let unset = vec![json!({"unset": true}); columns.len()];
    let arguments = [
        with_key(1, values.clone()),
        with_key(2, nulls.clone()),
        with_key(1, unset),
    ];
    let mut arguments: Vec<_> = arguments.iter().flat_map(|row| ["--bind", row]).collect();
    arguments.push(&insert);
    cluster.run("query", &arguments);

    let read = |key: i32| {
        let select = format!("SELECT {list} FROM ks.all WHERE k = {key}");
        cluster.run("query", &[&select]).remove(0)
    };
    let found = read(1);
    assert_eq!(found["rows"], json!([values]));
    for (column, (ty, _)) in found["columns"].as_array().unwrap().iter().zip(&columns) {
        let told = column["type"].as_str().unwrap().replace("ks.", "");
        let wanted = ty.replace("frozen<point>", "point");
        assert!(
            told == wanted || ty.starts_with("frozen"),
            "{told} for {ty}"
        );
    }
    assert_eq!(read(2)["rows"], json!([nulls]));

    // Zero bytes, for a type that has such a value; milliseconds for a timestamp.
    let empty = "UPDATE ks.all SET c1 = ?, c16 = ? WHERE k = 3";
    cluster.run(
        "query",
        &["--bind", r#"[{"empty":true}, 1764417600000]"#, empty],
    );
    let found = cluster.run("query", &["SELECT c1, c16 FROM ks.all WHERE k = 3"]);
    assert_eq!(
        found[0]["rows"],
        json!([[{"empty": true}, "2025-11-29T12:00:00.000Z"]])
    );
    cluster.stop();
}

#[test]
fn statements_and_values_come_from_files_and_standard_input() {
    let cluster = cluster(1, TABLE);
    let folder = std::env::temp_dir().join(format!("messina-query-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let statements = file(
        "s.cql",
        "-- two; of them\nINSERT INTO ks.t (k, v) VALUES (1, ';');\nDELETE FROM ks.t WHERE k = 9;\n",
    );
    let ran = cluster.run("query", &["--file", &statements]);
    assert_eq!(ran.last().unwrap()["summary"]["ok"], 2);
    let values = file("v.json", "[2, \"b\"]\n\n[3, null]\n");
    let ran = cluster.run("query", &["--bind-file", &values, INSERT]);
    assert_eq!(ran.last().unwrap()["summary"]["ok"], 2);
    let named = file("n.json", "{\"v\": \"d\", \"k\": 4}\n");
    cluster.run("query", &["--bind-file", &named, "--named", INSERT]);
    cluster.run_with("query", &["--bind", r#"[5, "e"]"#], INSERT);
    let expected = json!([[1, ";"], [2, "b"], [3, null], [4, "d"], [5, "e"]]);
    assert_eq!(rows(&cluster), expected);

    // Twice five rows in pages of two, and what is asked for to be less.
    let all = ["--page-size", "2", "SELECT k FROM ks.t"];
    let twice = cluster.run(
        "query",
        &[&["--repeat", "2", "--concurrency", "2"], &all[..]].concat(),
    );
    assert_eq!(twice.len(), 3);
    assert_eq!(twice[2]["summary"]["rows"], 10);
    assert!(twice[0]["pages"].as_u64() >= Some(3), "{twice:?}");
    let unpaged = cluster.run("query", &[&["--unpaged"], &all[..]].concat());
    assert_eq!(
        (&unpaged[0]["pages"], &unpaged[1]["summary"]["rows"]),
        (&json!(1), &json!(5))
    );
    let some = cluster.run("query", &[&["--max-rows", "3"], &all[..]].concat());
    assert_eq!(
        (&some[0]["pages"], &some[1]["summary"]["rows"]),
        (&json!(2), &json!(3))
    );
    let summary = cluster.run(
        "query",
        &[&["--print-limit", "1", "--repeat", "2"], &all[..]].concat(),
    );
    assert_eq!(summary.len(), 1);
    std::fs::remove_dir_all(&folder).unwrap();
    cluster.stop();
}

#[test]
fn batches_are_one_request() {
    let tables = format!("{TABLE}; CREATE TABLE ks.n (k int PRIMARY KEY, n counter)");
    let cluster = cluster(1, &tables);
    let batches = || cluster.nodes().stats().nodes[0].batches;
    let run = |arguments: &[&str]| {
        let before = batches();
        let ran = cluster.run("query", arguments);
        assert_eq!(batches() - before, 1, "{arguments:?}");
        assert_eq!(ran.len(), 2, "{ran:?}");
        assert_eq!(ran[1]["summary"]["executed"], 1, "{ran:?}");
        ran
    };
    // One statement with several values, one set of values for each statement, and texts.
    run(&[
        "--batch",
        "logged",
        "--bind",
        r#"[1, "a"]"#,
        "--bind",
        r#"[2, "b"]"#,
        INSERT,
    ]);
    let delete = "DELETE FROM ks.t WHERE k = ?";
    run(&[
        "--batch",
        "unlogged",
        "--bind",
        r#"[3, "c"]"#,
        "--bind",
        "[1]",
        INSERT,
        delete,
    ]);
    assert_eq!(rows(&cluster), json!([[2, "b"], [3, "c"]]));
    let texts = "INSERT INTO ks.t (k, v) VALUES (4, 'd'); DELETE FROM ks.t WHERE k = 2";
    let prepares = || cluster.nodes().stats().nodes[0].prepares;
    let before = prepares();
    run(&["--batch", "unlogged", "--unprepared", texts]);
    assert_eq!(prepares(), before);
    assert_eq!(rows(&cluster), json!([[3, "c"], [4, "d"]]));
    let add = "UPDATE ks.n SET n = n + 2 WHERE k = ?";
    run(&["--batch", "counter", "--bind", "[1]", "--bind", "[2]", add]);
    let found = cluster.run("query", &["SELECT n FROM ks.n WHERE k = 2"]);
    assert_eq!(found[0]["rows"], json!([[2]]));
    // All or nothing: the condition does not hold, so that neither is done.
    let conditional = "INSERT INTO ks.t (k, v) VALUES (4, 'x') IF NOT EXISTS; \
        UPDATE ks.t SET v = 'y' WHERE k = 4";
    assert_eq!(
        run(&["--batch", "logged", conditional])[0]["lwt_applied"],
        false
    );
    assert_eq!(rows(&cluster), json!([[3, "c"], [4, "d"]]));

    for (arguments, code, hint) in [
        (
            &["--batch", "logged", "--bind", "[1]", INSERT, delete][..],
            2,
            "one set for each",
        ),
        (
            &["--batch", "logged", "--unprepared", "--bind", "[1]", delete],
            2,
            "--unprepared",
        ),
        (
            &["--batch", "logged", "--bind", "[1]", INSERT],
            1,
            "k int, v text",
        ),
        (&["--batch", "logged", delete], 1, "k int"),
        (&["--batch", "counter", texts], 1, "counter"),
        (&["--batch", "logged", "SELECT k FROM ks.t"], 1, "batch"),
    ] {
        let ended = query_in_vain(&cluster, arguments);
        assert_eq!(ended.code, Some(code), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(hint), "{hint}: {ended:?}");
    }
    cluster.stop();
}

#[test]
fn conditional_statements_say_whether_they_were_applied() {
    let cluster = cluster(1, TABLE);
    let insert = "INSERT INTO ks.t (k, v) VALUES (?, ?) IF NOT EXISTS";
    let ran = cluster.run(
        "query",
        &["--bind", r#"[1, "a"]"#, "--bind", r#"[1, "b"]"#, insert],
    );
    let applied = |ran: &[Value], at: usize| ran[at]["lwt_applied"].clone();
    assert_eq!(
        (applied(&ran, 0), applied(&ran, 1)),
        (json!(true), json!(false))
    );
    assert_eq!(ran[1]["rows"], json!([[false, 1, "a"]]));
    let ran = cluster.run("query", &["INSERT INTO ks.t (k, v) VALUES (2, 'c')"]);
    assert_eq!(applied(&ran, 0), Value::Null);
    cluster.stop();
}

/// Values by QUERY, with types that a PREPARE told.
#[test]
fn unprepared_statements_may_have_values() {
    let cluster = Cluster::start(Options::uniform(1, 2).with_tablets(TabletsMode::V1));
    cluster.run("query", &[&format!("{KEYSPACE}{TABLE}")]);
    let counted = || {
        let stats = cluster.nodes().stats();
        (stats.nodes[0].queries, stats.nodes[0].executes)
    };
    let before = counted();
    let values = [
        "--bind",
        r#"[1, "a"]"#,
        "--bind",
        r#"[2, {"unset":true}]"#,
        INSERT,
    ];
    cluster.run("query", &[&["--unprepared"], &values[..]].concat());
    let after = counted();
    assert!(
        after.0 >= before.0 + 2 && after.1 == before.1,
        "{before:?}, {after:?}"
    );
    let read = "SELECT k, v FROM ks.t WHERE v = ? ALLOW FILTERING";
    let read = [
        "--unprepared",
        "--page-size",
        "1",
        "--bind",
        r#"["a"]"#,
        read,
    ];
    assert_eq!(cluster.run("query", &read)[0]["rows"], json!([[1, "a"]]));
    cluster.stop();
}

/// Where a server would apply the statement and then answer with an error.
#[test]
fn unprepared_statements_with_values_are_refused_where_they_would_fail_after_applying() {
    let cluster = cluster(1, TABLE);
    let write = ["--unprepared", "--bind", r#"[1, "a"]"#, INSERT];
    let refused = query_in_vain(&cluster, &write);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--force"), "{refused:?}");
    assert_eq!(rows(&cluster), json!([]));
    let forced = query_in_vain(&cluster, &[&write[..], &["--force"]].concat());
    assert_eq!(forced.code, Some(1), "{forced:?}");
    assert_eq!(json_lines(&forced.stderr)[0]["error"]["applied"], "unknown");
    assert_eq!(rows(&cluster), json!([[1, "a"]]));
    cluster.stop();
}

#[test]
fn errors_tell_what_the_server_told() {
    let cluster = cluster(1, TABLE);
    let write = ["--bind", r#"[1, "a"]"#, INSERT];
    let fail = |name: &str| {
        let error = CqlError::named(name, "told").unwrap();
        // The last request of the command; a control connection and PREPARE are not counted.
        cluster
            .nodes()
            .with(|nodes| nodes.fail_next(0, &error, 1))
            .unwrap();
        let ended = query_in_vain(&cluster, &write);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        json_lines(&ended.stderr).remove(0)["error"].take()
    };
    for (name, code, applied) in [
        ("rate_limit", json!(0xf000), "no"),
        ("write_timeout", json!(0x1100), "unknown"),
        ("unavailable", json!(0x1000), "no"),
        ("unauthorized", json!(0x2100), "no"),
        ("invalid", json!(0x2200), "no"),
    ] {
        let error = fail(name);
        assert_eq!(error["kind"], name, "{error}");
        assert_eq!(
            (&error["code"], &error["applied"]),
            (&code, &json!(applied)),
            "{error}"
        );
        assert!(
            error["host_id"].is_string() && error["shard"].is_u64(),
            "{error}"
        );
        let is_rate_limit = name == "rate_limit";
        assert_eq!(
            error["op_type"].as_str(),
            is_rate_limit.then_some("write"),
            "{error}"
        );
        let by_coordinator = error["rejected_by_coordinator"].as_bool();
        assert_eq!(by_coordinator, is_rate_limit.then_some(false), "{error}");
    }
    cluster.stop();
}

/// A node writes a trace after its answer: the command waits for the whole of it.
#[test]
fn traces_are_waited_for() {
    let cluster = cluster(1, TABLE);
    let traced = cluster.run("query", &["--trace", "SELECT k FROM ks.t"]);
    let trace = &traced[0]["traces"][0];
    assert_eq!(trace["id"].as_str().unwrap().len(), 36, "{traced:?}");
    assert_eq!(
        (&trace["complete"], &trace["coordinator"]),
        (&json!(true), &json!("127.0.0.1"))
    );
    assert!(trace["duration_us"].as_u64() > Some(0), "{traced:?}");
    let events = trace["events"].as_array().unwrap();
    assert!(events.len() > 1, "{traced:?}");
    for event in events {
        assert_eq!(event["source"], "127.0.0.1", "{event}");
        assert!(
            event["elapsed_us"].is_u64() && event["activity"].is_string(),
            "{event}"
        );
    }
    let contact = [
        "query",
        "--contact",
        &cluster.contact,
        "--format",
        "table",
        "--trace",
    ];
    let told = messina(&[&contact[..], &["SELECT k FROM ks.t"]].concat());
    let activity = events[0]["activity"].as_str().unwrap();
    assert!(told.stdout.contains(activity), "{activity}: {told:?}");
    let plain = cluster.run("query", &["SELECT k FROM ks.t"]);
    assert_eq!(plain[0].get("traces"), None);
    cluster.stop();
}
