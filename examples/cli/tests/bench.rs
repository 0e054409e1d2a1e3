//! Load, and what is told of it.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

#[path = "support/cluster.rs"]
mod cluster;
mod support;

use cluster::Cluster;
use messina_sim::node::Options;
use serde_json::{Value, json};
use support::{json_lines, messina};

/// Runs a load that must end well.
fn bench(cluster: &Cluster, arguments: &[&str]) -> Value {
    let mut lines = cluster.run("bench", arguments);
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines.remove(0)
}

/// Runs a load that must not end well; what it prints, and the kinds of errors it tells.
fn bench_in_vain(cluster: &Cluster, arguments: &[&str]) -> (Option<Value>, Vec<String>) {
    let head = ["bench", "--contact", &cluster.contact, "--format", "json"];
    let ended = messina(&[&head[..], arguments].concat());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let kinds = json_lines(&ended.stderr).into_iter();
    let kinds = kinds.map(|line| line["error"]["kind"].as_str().unwrap().to_owned());
    (json_lines(&ended.stdout).pop(), kinds.collect())
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// What must be in every report of a load without errors.
fn assert_sound(report: &Value, requests: u64) {
    assert_eq!(report["requests"], requests, "{report}");
    assert_eq!(report["errors"], json!({}), "{report}");
    let (seconds, throughput) = (number(&report["seconds"]), number(&report["throughput"]));
    let computed = f64::from(u32::try_from(requests).unwrap()) / seconds;
    assert!((throughput / computed - 1.0).abs() < 1e-6, "{report}");
    let latency = &report["latency_us"];
    let quantiles = ["p50", "p90", "p99", "p999", "max"].map(|name| number(&latency[name]));
    assert!(quantiles.is_sorted() && quantiles[0] > 0.0, "{report}");
    for field in ["cpu_user_us_per_request", "cpu_sys_us_per_request"] {
        let is_told = report[field].as_f64().is_some_and(|micros| micros >= 0.0);
        assert!(is_told || cfg!(not(unix)), "{field} in {report}");
    }
    let has_memory = report["rss_bytes"].as_u64() > Some(1_000_000);
    assert!(has_memory || cfg!(not(target_os = "linux")), "{report}");
}

#[test]
fn all_workloads_on_all_kinds_of_tables() {
    let cluster = Cluster::start(Options::uniform(3, 2));
    for kind in ["eventual", "strong", "vnode"] {
        let table = format!("bench_{kind}.Rows");
        let on = |workload| {
            let mut arguments = vec!["--kind", kind, "--table", &table, "--workload", workload];
            arguments.extend(["--rows", "200", "--row-bytes", "33", "--concurrency", "8"]);
            arguments
        };
        for (workload, rows) in [("write", 300), ("read", 300), ("mixed", 300)] {
            let report = bench(
                &cluster,
                &[&on(workload)[..], &["--requests", "300"]].concat(),
            );
            assert_sound(&report, 300);
            assert_eq!(report["workload"], workload);
            assert_eq!(report["rows"], rows, "{report}");
            // Each shard has its connection before the load begins, and rows have one place.
            let shards = ["on_shard", "off_shard"].map(|key| report[key].as_u64());
            let [Some(on_shard), Some(0)] = shards else {
                panic!("{report}")
            };
            assert!((1..=300).contains(&on_shard), "{report}");
            // Where there are tablets the driver has to meet some, and is told; reads come after
            // rows were looked for, so that little is left to be learned.
            let misrouted = report["misrouted"].as_u64();
            assert_eq!(misrouted.is_some(), kind != "vnode", "{report}");
            assert!(misrouted.is_none_or(|count| count < 300), "{report}");
            assert!(workload != "write" || misrouted != Some(0), "{report}");
        }
        // Ten scans of 200 rows, 50 a page; strongly consistent tables are not scanned.
        let scan = [&on("scan")[..], &["--requests", "40", "--page-size", "50"]].concat();
        if kind == "strong" {
            let (report, kinds) = bench_in_vain(&cluster, &scan);
            assert_eq!(report.unwrap()["errors"], json!({"invalid": 40}));
            assert_eq!(kinds, ["invalid"]);
        } else {
            let report = bench(&cluster, &scan);
            assert_sound(&report, 40);
            assert_eq!(report["rows"], 2000, "{report}");
        }
        let made = cluster.run(
            "query",
            &[&format!(
                "SELECT k FROM bench_{kind}.\"Rows\" WHERE k = 199"
            )],
        );
        assert_eq!(made[0]["rows"], json!([[199]]));
    }
    cluster.stop();
}

/// A rate is kept: of so many requests a second, each is made or said to be missing. And whoever
/// cannot keep up sees how late its requests were.
#[test]
fn a_rate_hides_nothing() {
    let cluster = Cluster::start(Options::uniform(1, 1));
    let arguments = ["--workload", "read", "--rows", "50"];
    let at = |more: &[&str]| bench(&cluster, &[&arguments[..], more].concat());

    let slow = at(&["--rate", "100", "--seconds", "2"]);
    let requests = slow["requests"].as_u64().unwrap();
    assert_eq!(
        requests + slow["not_begun"].as_u64().unwrap(),
        200,
        "{slow}"
    );
    assert!(requests > 100 && number(&slow["seconds"]) > 1.9, "{slow}");

    // One at a time, far more than can be made: all are due at once, and half of them wait for
    // half of the time.
    let late = [
        "--rate",
        "1000000",
        "--requests",
        "500",
        "--concurrency",
        "1",
    ];
    let late = at(&late);
    assert_sound(&late, 500);
    assert_eq!(late["not_begun"], 0);
    let half = number(&late["latency_us"]["p50"]) / 1e6;
    assert!(half > number(&late["seconds"]) / 4.0, "{late}");
    // Without a rate none waits for others.
    let closed = at(&["--requests", "500", "--concurrency", "1"]);
    assert_sound(&closed, 500);
    assert_eq!(closed["not_begun"], Value::Null);
    let half = number(&closed["latency_us"]["p50"]) / 1e6;
    assert!(half < number(&closed["seconds"]) / 50.0, "{closed}");

    let behind = ["--rate", "1000000", "--seconds", "1", "--concurrency", "1"];
    let behind = at(&behind);
    let not_begun = behind["not_begun"].as_u64().unwrap();
    assert!(not_begun > 0, "{behind}");
    assert_eq!(behind["requests"].as_u64().unwrap() + not_begun, 1_000_000);
    cluster.stop();
}

#[test]
fn rows_that_are_not_as_written_count_as_errors() {
    let cluster = Cluster::start(Options::uniform(1, 1));
    let scan = [
        "--workload",
        "scan",
        "--rows",
        "3000",
        "--requests",
        "2",
        "--concurrency",
        "1",
    ];
    let scan = [&scan[..], &["--page-size", "2000"]].concat();
    assert_eq!(bench(&cluster, &scan)["rows"], 3000);
    for damage in [
        "INSERT INTO messina_bench.rows (k, v) VALUES (1234, 0x00)",
        "DELETE FROM messina_bench.rows WHERE k = 1234",
    ] {
        cluster.run("query", &[damage]);
        let (report, kinds) = bench_in_vain(&cluster, &scan);
        let report = report.unwrap();
        let errors = report["errors"].as_object().unwrap();
        assert_eq!((errors.len(), &report["requests"]), (1, &json!(2)));
        assert!(errors["wrong_row"].as_u64() > Some(0), "{damage}: {report}");
        assert_eq!(kinds, ["wrong_row"]);
    }
    // What is seen to be missing before the load is written; rows of another size are too.
    let other = [&scan[..], &["--row-bytes", "7"]].concat();
    assert_eq!(bench(&cluster, &other)["rows"], 3000);
    cluster.stop();
}

#[test]
fn a_table_of_other_columns_is_left_alone() {
    let cluster = Cluster::start(Options::uniform(1, 1));
    let schema = "CREATE KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy', \
        'replication_factor': 1}; CREATE TABLE ks.t (name text PRIMARY KEY)";
    cluster.run("query", &[schema]);
    let (report, kinds) = bench_in_vain(&cluster, &["--table", "ks.t", "--requests", "1"]);
    assert_eq!((report, kinds), (None, vec!["invalid".to_owned()]));
    cluster.stop();
}

#[test]
fn fixed_answers_are_taken_as_they_come_only_if_asked_to() {
    let mut options = Options::uniform(1, 2);
    options.lean = true;
    let cluster = Cluster::start(options);
    let read = ["--workload", "read", "--rows", "100", "--requests", "500"];
    let (report, kinds) = bench_in_vain(&cluster, &read);
    assert!(kinds.iter().all(|kind| kind == "wrong_row"), "{kinds:?}");
    let wrong = report.map(|report| report["errors"]["wrong_row"].clone());
    assert!(wrong.is_none_or(|wrong| wrong == 500), "all of them");
    let report = bench(&cluster, &[&read[..], &["--no-verify"]].concat());
    assert_sound(&report, 500);
}
