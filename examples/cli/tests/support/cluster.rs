//! A simulated cluster for the time of a test, and the command against it.

use messina_sim::node::Options;
use messina_sim::tcp::{SimHandle, SimServer};
use serde_json::Value;

use crate::support::{json_lines, messina_with};

/// A cluster for the time of a test.
pub(crate) struct Cluster {
    runtime: tokio::runtime::Runtime,
    server: SimServer,
    pub(crate) contact: String,
    /// What the driver may warn of; nothing else may stand on standard error.
    warnings: &'static [&'static str],
}

impl Cluster {
    pub(crate) fn start(mut options: Options) -> Self {
        options.port = 0;
        options.shard_aware_port = options.shard_aware_port.map(|_| 0);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let server = runtime.block_on(SimServer::start(options)).unwrap();
        let contact = server.contacts()[0].to_string();
        Self {
            runtime,
            server,
            contact,
            warnings: &[],
        }
    }

    #[allow(dead_code, reason = "not every test has warnings")]
    pub(crate) fn with_warnings(self, warnings: &'static [&'static str]) -> Self {
        Self { warnings, ..self }
    }

    /// Runs a subcommand that must end well; the JSON values it prints.
    pub(crate) fn run(&self, subcommand: &str, arguments: &[&str]) -> Vec<Value> {
        self.run_with(subcommand, arguments, "")
    }

    pub(crate) fn run_with(&self, subcommand: &str, arguments: &[&str], input: &str) -> Vec<Value> {
        let head = [subcommand, "--contact", &self.contact, "--format", "json"];
        let ended = messina_with(&[&head[..], arguments].concat(), input);
        assert_eq!(ended.code, Some(0), "{arguments:?}: {ended:?}");
        let unexpected = ended
            .stderr
            .lines()
            .find(|line| !self.warnings.iter().any(|known| line.contains(known)));
        assert_eq!(unexpected, None, "{arguments:?}: {ended:?}");
        json_lines(&ended.stdout)
    }

    /// The nodes, to be asked and to be changed.
    #[allow(dead_code, reason = "not every test looks at the nodes")]
    pub(crate) fn nodes(&self) -> SimHandle {
        self.server.handle()
    }

    pub(crate) fn stop(self) {
        self.runtime.block_on(self.server.stop());
    }
}
