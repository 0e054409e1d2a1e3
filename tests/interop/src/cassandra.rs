//! One real Apache Cassandra 5.0 node on 127.0.0.1, for tests.
//!
//! The jars bring no `cassandra.yaml`, logging configuration or start script; `layout` writes the
//! first two and `java` holds the third. What running one taught (Cassandra 5.0.9, Java 17, 2
//! cores; `cargo run -p messina-interop -- cassandra --restart` prints the figures):
//!
//! - From `java` to the first SUPPORTED 7 to 9 s, with an empty folder as with the data of an
//!   earlier start, and up to 13 s beside a build. From SIGTERM to the end 5 s. 0.86 GB resident at
//!   most with a heap of 768 MB. Fetching the jars takes about 20 s.
//! - The native port opens before the default role exists. With a login the node is ready only when
//!   the role `cassandra` can log in, so that is what [`Cassandra::start`] waits for;
//!   `superuser_setup_delay_ms` of 0 makes the difference 0.2 s instead of 10 s.
//! - A node that is its own only seed waits for no ring, but for gossip to settle (5 s and three
//!   looks a second apart) unless `skip_wait_for_gossip_to_settle` is 0.
//! - Without JMX properties no JMX port is opened (`StartupChecks` warns), which is what a test
//!   wants. `unsafesystem` leaves out the sync of system tables after each change of the schema.
//! - A port that is taken shows only as the native transport's exception at the very end of the
//!   start: the process then ends by itself.
//! - Something else that listens on a port given by hand would pass for the node, so nothing may
//!   answer there before it starts.
//! - PREPARED names no columns for a conditional statement, and its answers have `[applied]` alone
//!   when the condition held: the columns of one statement differ from answer to answer.
//! - An ALTER makes the node forget the statements of the table; given back they have the same id.
//!   On version 4 nothing tells that columns changed, but a request without the skip flag is always
//!   answered with them.
//! - A paging state may come with the last row of all: one page more than needed, and empty.
//! - A frozen set or map in a key is stored in order whatever the order it was bound in, and
//!   `token()` is of what is stored. Values of no bytes (`blob_as_int(0x)`) are kept and their JSON
//!   is null, as that of NaN and the infinities is.
//! - While it stops it answers OVERLOADED and UNAVAILABLE before it closes its connections, so a
//!   request in flight is refused rather than lost.
//! - On version 4 a duration is the custom class `DurationType`, since its number came with version
//!   5; a vector's class has a space before the comma. AUTH_SUCCESS has no token. A version that it
//!   does not speak is refused on the request's stream and in the header of version 5, its highest.
//! - A connection has the version of its STARTUP, whatever that of its OPTIONS; both may come at once. On
//!   version 5 the answer to STARTUP is the last frame by itself: AUTH_RESPONSE without a segment is
//!   answered by PROTOCOL_ERROR on stream 0, in a segment, as is any wrong checksum. Snappy is
//!   refused there.
//! - SUPPORTED lists the versions `3/v3`, `4/v4`, `5/v5`, `6/v6-beta`, the compressions snappy and
//!   lz4, CQL 3.4.7, and no ScyllaDB key.

mod java;
mod layout;

use core::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};
use std::{
    fs,
    net::TcpStream,
    path::{Path, PathBuf},
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, bail};

use crate::{
    maven::{self, Jars},
    ports,
    probe::{self, Credentials},
    process::{Process, Stopped},
    target::Target,
};

/// What to start.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The version of the jars.
    pub version: String,
    /// Logins are demanded (`PasswordAuthenticator`); else everyone may do everything.
    pub auth: bool,
    /// The largest heap.
    pub heap_max_mib: u32,
    /// Tokens of the node, so ranges of the ring.
    pub num_tokens: u32,
    /// The native port; a free one when `None`.
    pub port: Option<u16>,
    /// From `java` to ready, at most.
    pub start_within: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            version: maven::CASSANDRA_VERSION.to_owned(),
            auth: false,
            heap_max_mib: 768,
            num_tokens: 8,
            port: None,
            start_within: Duration::from_secs(150),
        }
    }
}

/// A node: its folder, its ports and, while it runs, its process. Dropping it stops the process
/// and removes the folder.
#[derive(Debug)]
pub struct Cassandra {
    options: Options,
    jars: Jars,
    java: PathBuf,
    folder: PathBuf,
    native_port: u16,
    process: Option<Process>,
    start_seconds: f64,
}

impl Cassandra {
    /// Fetches what is missing, lays out a fresh folder, starts the node and waits until it answers
    /// OPTIONS and, with `auth`, lets the default role in.
    ///
    /// # Errors
    /// Fails when Java 17 or the jars are not to be had, or the node ends or is not ready in time;
    /// the error then carries the end of its log.
    pub fn start(target: &Target, options: Options) -> Result<Self> {
        let java = java::find()?;
        let jars = Jars::fetch(target, &options.version)?;
        let folder = target.run_folder("cassandra")?;
        let native_port = options.port.map_or_else(|| ports::free(1), Ok)?;
        layout::write(&folder, &options, native_port, ports::free(1)?)?;
        let mut node = Self {
            options,
            jars,
            java,
            folder,
            native_port,
            process: None,
            start_seconds: 0.0,
        };
        node.start_again()?;
        Ok(node)
    }

    /// Starts a stopped node again, with its data and ports, and waits until it is ready.
    ///
    /// # Errors
    /// As [`start`](Self::start); also when it runs already.
    pub fn start_again(&mut self) -> Result<()> {
        if self.process.is_some() {
            bail!("the node runs already");
        }
        if TcpStream::connect(self.address()).is_ok() {
            bail!("something answers at {} already", self.address());
        }
        let start = Instant::now();
        let mut command = java::command(&self.java, &self.jars, &self.folder, &self.options);
        self.process = Some(Process::spawn(&mut command, &self.folder, "cassandra")?);
        let ready = self.wait_until_ready(start);
        if ready.is_err() {
            self.process = None;
        }
        ready?;
        self.start_seconds = start.elapsed().as_secs_f64();
        Ok(())
    }

    /// Stops the node in order; its data stays for [`start_again`](Self::start_again).
    ///
    /// # Errors
    /// Fails when the node does not run or had ended by itself.
    pub fn stop(&mut self) -> Result<Stopped> {
        self.process.take().context("the node does not run")?.stop()
    }

    /// Where it speaks CQL.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.native_port))
    }

    /// Who may log in; `None` when no login is wanted.
    #[must_use]
    pub fn credentials(&self) -> Option<Credentials> {
        self.options.auth.then(default_role)
    }

    /// From `java` to ready, the last time it was started.
    #[must_use]
    pub fn start_seconds(&self) -> f64 {
        self.start_seconds
    }

    /// The most memory that the running process ever held, where the system tells.
    #[must_use]
    pub fn peak_memory_bytes(&self) -> Option<u64> {
        self.process.as_ref()?.peak_memory_bytes()
    }

    /// The id of the running process.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    /// The folder with its configuration, data and log.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The end of its log.
    #[must_use]
    pub fn log_tail(&self, lines: usize) -> String {
        self.process
            .as_ref()
            .map(|process| process.output_tail(lines))
            .unwrap_or_default()
    }

    fn wait_until_ready(&mut self, start: Instant) -> Result<()> {
        let limit = self.options.start_within;
        let (address, credentials) = (self.address(), self.credentials());
        let process = self.process.as_mut().context("the node does not run")?;
        loop {
            if let Some(status) = process.poll_exit()? {
                bail!(
                    "Cassandra ended while starting ({status}):\n{}",
                    process.output_tail(40)
                );
            }
            let Err(not_yet) = answers(address, credentials.as_ref()) else {
                return Ok(());
            };
            if start.elapsed() >= limit {
                bail!(
                    "Cassandra was not ready after {} s ({not_yet:#}):\n{}",
                    limit.as_secs(),
                    process.output_tail(40)
                );
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Cassandra {
    fn drop(&mut self) {
        self.process = None;
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn answers(address: SocketAddr, credentials: Option<&Credentials>) -> Result<()> {
    let limit = Duration::from_secs(2);
    probe::supported(address, limit)?;
    if let Some(credentials) = credentials {
        probe::log_in(address, credentials, limit)?;
    }
    Ok(())
}

/// The role that a new node makes for itself.
fn default_role() -> Credentials {
    Credentials::new("cassandra", "cassandra")
}
