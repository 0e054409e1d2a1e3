//! Options of `messina bench`.

use clap::ValueEnum;

use crate::arguments::Common;
use crate::failure::Failure;
use crate::table_kind::Kind;

/// Options of `messina bench`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct BenchArguments {
    /// What requests do: write the next row, read any, either, or read the next page
    #[arg(long, value_enum, default_value_t = Workload::Mixed)]
    pub(super) workload: Workload,
    /// Table; made when absent, filled when its rows are missing, and left there
    #[arg(long, value_name = "KS.TABLE", default_value = "messina_bench.rows")]
    table: String,
    /// Kind of a table that is made [default: eventual if there are tablets, else vnode]
    #[arg(long, value_enum)]
    pub(super) kind: Option<Kind>,
    /// Rows that requests choose from
    #[arg(long, value_name = "N", default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub(super) rows: u32,
    /// Bytes of each row's value
    #[arg(long, value_name = "N", default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(0..=16_777_216))]
    pub(super) row_bytes: u32,
    /// Requests to make [default: as many as 10 seconds allow]
    #[arg(long, value_name = "N", conflicts_with = "seconds",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    pub(super) requests: Option<u64>,
    /// How long to make requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(super) seconds: Option<u32>,
    /// Requests in flight, at most
    #[arg(long, value_name = "N", default_value_t = 64,
        value_parser = clap::value_parser!(u16).range(1..=16_384))]
    pub(super) concurrency: u16,
    /// Requests a second, begun on time; latency counts from when a request was due
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(super) rate: Option<u32>,
    /// Take rows as they come, for servers with fixed answers such as `messina sim --lean`; a table
    /// that is there is then taken for filled
    #[arg(long)]
    pub(super) no_verify: bool,
    /// Seed of the order of rows
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(super) seed: u64,
    #[command(flatten)]
    pub(super) common: Common,
}

/// Shown below the options.
pub(crate) const EXAMPLES: &str = "\
Examples:
  messina bench --contact 127.0.0.1
  messina bench --contact 127.0.0.1 --workload write --rows 1000000 --row-bytes 1000 --requests 1000000
  messina bench --contact 127.0.0.1 --workload read --rate 5000 --seconds 60
  messina bench --contact 127.0.0.1 --workload mixed --kind strong --table bench.strong

The JSON object has, beside the figures of their names:
  requests     requests that were answered or failed; latencies and throughput are of the answered
  misrouted    answers that taught the driver a tablet, because the request was sent by none or an
               outdated one; null where tables have no tablets
  on_shard     requests sent on a connection to the shard they were meant for
  off_shard    requests sent on another connection of the node, for want of that one
  not_begun    with --rate: requests that were due but found all --concurrency places taken";

/// What requests do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    // Write the next row.
    Write,
    // Read one row by chance, and compare it.
    Read,
    // Write or read one row, both by chance.
    Mixed,
    // Read the next page of the whole table, and compare its rows.
    Scan,
}

impl Workload {
    /// The name in the contract.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::Mixed => "mixed",
            Self::Scan => "scan",
        }
    }

    /// Whether rows have to be there before.
    pub(super) const fn reads(self) -> bool {
        !matches!(self, Self::Write)
    }
}

/// A keyspace and a table, as they are called, not as CQL writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableName {
    pub(super) keyspace: String,
    pub(super) table: String,
}

impl TableName {
    /// The name in CQL.
    pub(super) fn cql(&self) -> String {
        format!("{}.{}", quoted(&self.keyspace), quoted(&self.table))
    }

    /// The keyspace's name in CQL.
    pub(super) fn keyspace_cql(&self) -> String {
        quoted(&self.keyspace)
    }
}

/// Quotes where CQL would fold or refuse the name, reserved words included.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl BenchArguments {
    /// The table that is meant.
    pub(super) fn table(&self) -> Result<TableName, Failure> {
        let keyspace_and_table = match self.table.split_once('.') {
            Some(both) => Some(both),
            None => self
                .common
                .keyspace
                .as_deref()
                .map(|keyspace| (keyspace, self.table.as_str())),
        };
        match keyspace_and_table {
            Some((keyspace, table)) if !keyspace.is_empty() && !table.is_empty() => Ok(TableName {
                keyspace: keyspace.to_owned(),
                table: table.to_owned(),
            }),
            _ => Err(Failure::usage("write --table KEYSPACE.TABLE")),
        }
    }

    /// How long requests are made, unless they are counted.
    pub(super) fn seconds(&self) -> Option<u32> {
        match self.requests {
            Some(_) => None,
            None => Some(self.seconds.unwrap_or(SECONDS)),
        }
    }

    /// One line about the load.
    pub(super) fn shape(&self) -> String {
        use crate::figures::{bytes, counted};
        let pace = match self.rate {
            Some(rate) => format!("{} a second, ", counted(rate.into(), "request")),
            None => String::new(),
        };
        format!(
            "{} · {} of {} · {pace}{} in flight",
            self.table,
            counted(self.rows.into(), "row"),
            bytes(self.row_bytes.into()),
            self.concurrency
        )
    }
}

/// How long requests are made if nothing is said.
const SECONDS: u32 = 10;
