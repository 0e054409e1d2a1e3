//! TLS of `messina sim`: its options, and the file that holds the authority made for it.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use messina_sim::tcp::{SimServer, TlsOptions, TlsPorts};

use crate::failure::Failure;

/// Options of TLS.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "TLS")]
pub(super) struct TlsArguments {
    /// Serve TLS with a certificate made for it, whose authority the ready line names
    #[arg(long)]
    tls: bool,
    /// Serve TLS with this certificate
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_key",
        conflicts_with = "tls"
    )]
    tls_cert: Option<PathBuf>,
    /// Key of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Port of TLS, which --port then is not; 0 takes a free one
    #[arg(long, value_name = "PORT")]
    tls_port: Option<u16>,
    /// The same that takes the shard from the client's port
    #[arg(long, value_name = "PORT", requires = "tls_port")]
    shard_aware_tls_port: Option<u16>,
}

impl TlsArguments {
    /// What the shell is to do; none: nothing speaks TLS.
    pub(super) fn options(&self) -> Result<Option<TlsOptions>, Failure> {
        let mut options = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => TlsOptions::given(read(certificate)?, read(key)?),
            _ if self.tls => TlsOptions::made(),
            _ if self.tls_port.is_some() => {
                return Err(Failure::usage("--tls-port needs --tls or --tls-cert"));
            }
            _ => return Ok(None),
        };
        if let Some(port) = self.tls_port {
            options.ports = TlsPorts::Beside {
                port,
                shard_aware_port: self.shard_aware_tls_port,
            };
        }
        Ok(Some(options))
    }

    /// Whether TLS has ports of its own.
    pub(super) const fn is_beside(&self) -> bool {
        self.tls_port.is_some()
    }
}

fn read(file: &PathBuf) -> Result<Vec<u8>, Failure> {
    fs::read(file).map_err(|error| Failure::io(&file.display().to_string(), &error))
}

/// A file with the authority's certificate; removed when dropped.
#[derive(Debug)]
pub(super) struct CaFile(PathBuf);

impl CaFile {
    /// Writes the file, if an authority was made for the server.
    pub(super) fn of(server: &SimServer) -> Result<Option<Self>, Failure> {
        let Some(pem) = server.ca_pem() else {
            return Ok(None);
        };
        // No two servers of a machine have the same at a time.
        let (process, control) = (std::process::id(), server.control().port());
        let name = format!("messina-sim-{process}-{control}.pem");
        let path = std::env::temp_dir().join(name);
        let created = OpenOptions::new().write(true).create_new(true).open(&path);
        let io = |error| Failure::io(&path.display().to_string(), &error);
        let mut file = created.map_err(io)?;
        let made = Self(path.clone());
        file.write_all(pem.as_bytes()).map_err(io)?;
        Ok(Some(made))
    }

    /// Where it is.
    pub(super) fn path(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for CaFile {
    fn drop(&mut self) {
        // Somebody else may have tidied up.
        let _ = fs::remove_file(&self.0);
    }
}
