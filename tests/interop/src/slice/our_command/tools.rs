//! Batches, a trace, a route and a load.

use anyhow::{Result, ensure};
use serde_json::json;

use super::Trial;
use crate::command::{self, Answers};

/// Requests of the load.
const REQUESTS: u64 = 2000;

impl Trial<'_> {
    /// Counters are added up, and a condition that does not hold keeps the whole batch from being
    /// applied.
    pub(super) fn batches(&self) -> Result<((), String)> {
        let run = |name: &str, arguments: &[&str]| {
            Answers::of(self.query().args(arguments), self.folder(), name)
        };
        let tables = "CREATE TABLE interop.counted (id int PRIMARY KEY, n counter); \
            CREATE TABLE interop.batched (id int, at int, n int, PRIMARY KEY (id, at))";
        run("create_batched", &[tables])?.expect_all_ok(2)?;
        let add = "UPDATE interop.counted SET n = n + 2 WHERE id = ?";
        let twice = ["--batch", "counter", "--bind", "[1]", "--bind", "[1]", add];
        run("count_twice", &twice)?.expect_all_ok(1)?;
        let counted = run("counted", &["SELECT n FROM interop.counted WHERE id = 1"])?;
        ensure!(
            counted.rows()? == [[json!(4)]],
            "counted {:?}",
            counted.rows()?
        );

        let insert = "INSERT INTO interop.batched (id, at, n) VALUES (1, ?, ?)";
        let two = [
            "--batch", "logged", "--bind", "[1, 1]", "--bind", "[2, 2]", insert,
        ];
        run("insert_two", &two)?.expect_all_ok(1)?;
        let conditional = "INSERT INTO interop.batched (id, at, n) VALUES (1, 1, 9) IF NOT EXISTS; \
            UPDATE interop.batched SET n = 9 WHERE id = 1 AND at = 2";
        let conditional = run("conditional", &["--batch", "unlogged", conditional])?;
        let applied = &conditional.executions[0]["lwt_applied"];
        ensure!(*applied == false, "applied is {applied}");
        let rows = run(
            "batched",
            &["SELECT at, n FROM interop.batched WHERE id = 1"],
        )?
        .rows()?;
        ensure!(
            rows == [[json!(1), json!(1)], [json!(2), json!(2)]],
            "found {rows:?}"
        );
        Ok((
            (),
            "counter, logged, and conditional: not applied".to_owned(),
        ))
    }

    pub(super) fn trace(&self) -> Result<((), String)> {
        let cql = "SELECT at FROM interop.batched WHERE id = 1";
        let mut query = self.query();
        let traced = Answers::of(query.args(["--trace", cql]), self.folder(), "trace")?;
        let trace = &traced.executions[0]["traces"][0];
        let events = trace["events"].as_array().map_or(0, Vec::len);
        ensure!(
            trace["complete"] == true && events > 0,
            "the trace is {trace}"
        );
        Ok(((), format!("{events} events, {} µs", trace["duration_us"])))
    }

    /// The token is the one that the server computes.
    pub(super) fn route(&self) -> Result<((), String)> {
        let cql = "SELECT token(id) FROM interop.batched WHERE id = 1 LIMIT 1";
        let token = Answers::of(self.query().arg(cql), self.folder(), "token")?.rows()?;
        let mut route = self.connecting("route");
        route.args([
            "SELECT at FROM interop.batched WHERE id = ?",
            "--bind",
            "[1]",
        ]);
        let route = command::object(&mut route, self.folder(), "route")?;
        ensure!(
            token == [[route["token"].clone()]],
            "the server says {token:?}: {route}"
        );
        let is_known = route["source"] == "ring" && route["plan"][0]["reason"] == "dc";
        ensure!(is_known, "the route is {route}");
        Ok(((), format!("token {}, from the ring", route["token"])))
    }

    pub(super) fn load(&self) -> Result<((), String)> {
        let mut bench = self.connecting("bench");
        bench.args(["--table", "interop.load", "--rows", "500"]);
        bench.args(["--requests", &REQUESTS.to_string()]);
        let told = command::object(&mut bench, self.folder(), "bench")?;
        let is_whole = told["requests"] == REQUESTS && told["errors"] == json!({});
        ensure!(is_whole, "the load came to {told}");
        Ok((
            (),
            format!(
                "{REQUESTS} requests, {:.0} a second, p99 {} µs",
                told["throughput"].as_f64().unwrap_or_default(),
                told["latency_us"]["p99"]
            ),
        ))
    }

    fn connecting(&self, name: &str) -> std::process::Command {
        let credentials = self.node.credentials();
        self.messina
            .connecting(name, &self.contact(), credentials.as_ref())
    }
}
