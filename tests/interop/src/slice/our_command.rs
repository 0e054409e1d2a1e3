//! `messina query` against one real Cassandra node that demands a login.
//!
//! A keyspace, a table and 1,000 airports by prepared statements, read back one by one and in
//! pages; then the server's own count and a foreign driver's comparison; batches, a trace, a route
//! and a load. Last what must be refused: a wrong password and broken CQL.

mod tools;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};

use super::{ROWS, doubles};
use crate::{
    airports::{self, Airport, Airports},
    cassandra::Cassandra,
    command::{self, Answers, Messina},
    probe::Credentials,
    process,
    python::Python,
    report::Report,
};

const CONCURRENCY: &str = "32";

/// Takes the steps on a node that runs.
pub(super) fn run(report: &mut Report, messina: &Messina, python: &Python, node: &Cassandra) {
    let airports = report.step("public-domain data file", || {
        let airports = Airports::read(python, ROWS)?;
        Ok((
            airports,
            format!("the first {ROWS} lines of vega-datasets' airports.csv"),
        ))
    });
    let Some(airports) = airports else { return };
    let trial = Trial {
        messina,
        python,
        airports: &airports,
        node,
    };
    trial.steps(report);
}

/// Everything that a step needs.
struct Trial<'a> {
    messina: &'a Messina,
    python: &'a Python,
    airports: &'a Airports,
    node: &'a Cassandra,
}

impl Trial<'_> {
    fn steps(&self, report: &mut Report) {
        if report
            .step("create keyspace and table", || self.create())
            .is_some()
            && report
                .step("1,000 prepared writes", || self.write())
                .is_some()
        {
            report.step("1,000 prepared reads", || self.read());
            report.step("one scan in pages", || self.scan());
            report.step("count and sum by the server", || self.count());
            report.step("versions and compressions", || self.versions());
            report.step("read by a foreign driver", || self.read_by_a_stranger());
        }
        report.step("doubles to the last bit", || self.doubles());
        report.step("batches", || self.batches());
        report.step("a trace", || self.trace());
        report.step("a route", || self.route());
        report.step("a load", || self.load());
        report.step("a wrong password", || self.wrong_password());
        report.step("broken CQL", || self.broken_cql());
    }

    fn create(&self) -> Result<((), String)> {
        let file = self.file("schema.cql");
        std::fs::write(&file, airports::SCHEMA)?;
        let mut query = self.query();
        let answers = Answers::of(query.arg("--file").arg(&file), self.folder(), "create")?;
        answers.expect_all_ok(2)?;
        Ok(((), format!("{} statements", answers.executions.len())))
    }

    fn write(&self) -> Result<((), String)> {
        let answers = self.bound("write", airports::INSERT, Airport::row)?;
        Ok(((), rate(&answers)))
    }

    fn read(&self) -> Result<((), String)> {
        let answers = self.bound("read", airports::SELECT, Airport::key)?;
        self.airports.compare(answers.rows()?.iter())?;
        let names = columns(&answers.executions[0]);
        let types = "country:text state:text iata:text line:int name:text city:text \
            latitude:double longitude:double";
        ensure!(names == types, "the columns are {names}");
        Ok(((), format!("every value as written, {}", rate(&answers))))
    }

    fn scan(&self) -> Result<((), String)> {
        let all = "SELECT country, state, iata, line, name, city, latitude, longitude \
            FROM interop.airports";
        let mut query = self.query();
        let answers = Answers::of(
            query.args(["--page-size", "64", all]),
            self.folder(),
            "scan",
        )?;
        self.airports.compare(answers.rows()?.iter())?;
        let pages = answers.executions[0]["pages"].as_u64().unwrap_or_default();
        ensure!(
            pages >= ROWS.div_ceil(64) as u64,
            "{ROWS} rows in {pages} pages of 64"
        );
        Ok((
            (),
            format!("{ROWS} rows in {pages} pages, every value as written"),
        ))
    }

    fn count(&self) -> Result<((), String)> {
        let cql = "SELECT COUNT(*), SUM(line) FROM interop.airports";
        let answers = Answers::of(self.query().arg(cql), self.folder(), "count")?;
        let row = answers.rows()?.pop().unwrap_or_default();
        ensure!(
            row == [json!(ROWS), json!(sum_of_lines())],
            "the server says {}",
            json!(row)
        );
        Ok(((), format!("COUNT(*) = {}, SUM(line) = {}", row[0], row[1])))
    }

    /// What `inspect` says that is spoken, and the count in each of them.
    fn versions(&self) -> Result<((), String)> {
        let credentials = self.node.credentials();
        for (protocol, compression, spoken) in [
            ("auto", "none", 5),
            ("auto", "snappy", 4),
            ("4", "lz4", 4),
            ("5", "none", 5),
            ("5", "lz4", 5),
        ] {
            let wire = ["--protocol", protocol, "--compression", compression];
            let contact = self.contact();
            let mut inspect = self
                .messina
                .connecting("inspect", &contact, credentials.as_ref());
            let seen = command::object(inspect.args(wire), self.folder(), "versions")?;
            let connection = &seen["nodes"][0]["connections"][0]["protocol"];
            ensure!(*connection == json!(spoken), "{wire:?}: {seen}");
            let cql = "SELECT COUNT(*) FROM interop.airports";
            let mut query = self.query();
            let answers = Answers::of(query.args(wire).arg(cql), self.folder(), "versions")?;
            ensure!(answers.rows()? == [[json!(ROWS)]], "{wire:?}: the count");
        }
        Ok(((), "4 and 5, each plain and compressed".to_owned()))
    }

    fn read_by_a_stranger(&self) -> Result<((), String)> {
        let csv = self
            .python
            .site_packages()?
            .join("vega_datasets/_data/airports.csv");
        let mut script = self.python.script("check_airports.py");
        script
            .args([
                "--contact",
                &self.contact(),
                "--rows",
                &ROWS.to_string(),
                "--csv",
            ])
            .arg(csv);
        if let Some(credentials) = self.node.credentials() {
            script
                .args(["--user", &credentials.user])
                .env("MESSINA_PASSWORD", &credentials.password);
        }
        let limit = core::time::Duration::from_secs(60);
        let finished = process::run(&mut script, self.folder(), "check_airports", limit)?
            .success("check_airports.py")?;
        let saw: Value = serde_json::from_str(&finished.stdout)?;
        let wanted = [
            ("count", ROWS),
            ("same", ROWS),
            ("others", 0),
            ("sum_of_lines", sum_of_lines()),
        ];
        for (name, expected) in wanted {
            ensure!(
                saw[name] == json!(expected),
                "{name} is {}, wanted {expected}",
                saw[name]
            );
        }
        let [driver, version, server] =
            ["driver", "version", "release_version"].map(|name| saw[name].as_str().unwrap_or("?"));
        Ok((
            (),
            format!("{driver} {version} on Cassandra {server}: {ROWS} rows as in the file"),
        ))
    }

    fn doubles(&self) -> Result<((), String)> {
        Answers::of(
            self.query().arg(doubles::CREATE),
            self.folder(),
            "create_doubles",
        )?;
        let wrote = doubles::sample();
        let file = self.file("doubles.jsonl");
        let lines: Vec<String> = wrote.iter().map(|row| json!(row).to_string()).collect();
        std::fs::write(&file, lines.join("\n"))?;
        let mut insert = self.query();
        insert
            .arg("--bind-file")
            .arg(&file)
            .args(["--concurrency", CONCURRENCY, doubles::INSERT]);
        Answers::of(&mut insert, self.folder(), "write_doubles")?
            .expect_all_ok(doubles::COUNT as u64)?;
        let mut select = self.query();
        let read = Answers::of(select.arg(doubles::SELECT), self.folder(), "read_doubles")?;
        let differences = doubles::differences(&wrote, &read.rows()?);
        if let Some(first) = differences.first() {
            bail!(
                "{} of {} differ, first: {first}",
                differences.len(),
                doubles::COUNT
            );
        }
        Ok((
            (),
            format!("{} as written, NaN and -0.0 among them", doubles::COUNT),
        ))
    }

    fn wrong_password(&self) -> Result<((), String)> {
        let secret = "not-the-Password-4711";
        let wrong = Credentials::new("cassandra", secret);
        let mut query = self.messina.query(&self.contact(), Some(&wrong));
        query.arg("SELECT key FROM system.local");
        let error = command::refusal(&mut query, self.folder(), "wrong_password")?;
        ensure!(error["kind"] == "auth", "the error is {error}");
        ensure!(
            !error.to_string().contains(secret),
            "the password is in {error}"
        );
        Ok(((), one_line(&error)))
    }

    fn broken_cql(&self) -> Result<((), String)> {
        let mut query = self.query();
        let error = command::refusal(query.arg("SELEKT 1"), self.folder(), "broken_cql")?;
        ensure!(
            error["kind"] == "syntax_error" && error["code"] == 0x2000,
            "the error is {error}"
        );
        ensure!(error["applied"] == "no", "the error is {error}");
        Ok(((), one_line(&error)))
    }

    /// Prepares `cql` and executes it once for each airport.
    fn bound(&self, name: &str, cql: &str, values: fn(&Airport) -> Vec<Value>) -> Result<Answers> {
        let file = self.file(&format!("{name}.jsonl"));
        self.airports.write_binds(&file, values)?;
        let mut query = self.query();
        query
            .args([
                "--concurrency",
                CONCURRENCY,
                "--print-limit",
                &(2 * ROWS).to_string(),
            ])
            .arg("--bind-file")
            .arg(&file)
            .arg(cql);
        let answers = Answers::of(&mut query, self.folder(), name)?;
        answers.expect_all_ok(ROWS as u64)?;
        Ok(answers)
    }

    fn query(&self) -> std::process::Command {
        self.messina
            .query(&self.contact(), self.node.credentials().as_ref())
    }

    fn contact(&self) -> String {
        self.node.address().to_string()
    }

    fn folder(&self) -> &Path {
        self.node.folder()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }
}

fn rate(answers: &Answers) -> String {
    let per_second = ROWS as f64 / answers.seconds.max(0.001);
    format!(
        "{:.2} s with start and login, {per_second:.0} a second",
        answers.seconds
    )
}

fn columns(execution: &Value) -> String {
    let columns = execution["columns"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let word = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let shown: Vec<String> = columns
        .iter()
        .map(|column| format!("{}:{}", word(&column["name"]), word(&column["type"])))
        .collect();
    shown.join(" ")
}

fn one_line(error: &Value) -> String {
    let word = |name: &str| error[name].as_str().unwrap_or("?").replace('\n', " ");
    format!("refused as {}: {}", word("kind"), word("message"))
}

fn sum_of_lines() -> usize {
    ROWS * (ROWS + 1) / 2
}
