//! The image that encrypts, against `messina sim --tls`: with the authority of the nodes it works, with another's it
//! does not. The firmware reads the authority's certificate from a file of this machine.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::cluster::Cluster;
use super::emulator::{Emulation, Printed};
use super::figures::{Bar, Figures};
use super::scenarios::INSTRUCTIONS_PER_TICK;
use crate::command::{Failure, Outcome};
use crate::context::Context;

const NODES: [&str; 5] = ["--tls", "--nodes", "3", "--shards", "2"];
/// A cluster with an authority of its own, on an address that the other one does not have.
const STRANGER: [&str; 5] = ["--tls", "--nodes", "1", "--host", "127.0.0.9"];

/// Runs both; `plain` is the flash of the same driver without encryption.
pub(super) fn run(context: &Context, image: &Path, plain: u64, figures: &mut Figures) -> Outcome {
    let cluster = Cluster::start(context, &NODES)?;
    cluster.make_table(context)?;
    let stranger = Cluster::start(context, &STRANGER)?;
    let printed = run_with(context, image, "readings", &cluster, &cluster)?;
    run_with(context, image, "refused", &cluster, &stranger)?;
    let flash = printed.number("flash_bytes")?.saturating_sub(plain);
    figures.exact("tls_flash_bytes", flash, Bar::LowerIsBetter);
    let stack = printed.number("stack_peak_bytes")?;
    figures.noisy("tls_stack_peak_bytes", stack, Bar::LowerIsBetter, 5);
    let static_bytes = printed.number("static_bytes")?;
    figures.exact("tls_static_bytes", static_bytes, Bar::LowerIsBetter);
    let ready = printed.number("ready_busy_ticks")? * INSTRUCTIONS_PER_TICK;
    figures.noisy("tls_ready_instructions", ready, Bar::LowerIsBetter, 30);
    Ok(())
}

fn run_with(
    context: &Context,
    image: &Path,
    mode: &str,
    cluster: &Cluster,
    trusted: &Cluster,
) -> Outcome<Printed> {
    let authority = trusted.authority.as_deref();
    let authority = authority.ok_or_else(|| Failure::new("the cluster does not encrypt"))?;
    let authority = AuthorityFile::new(authority)?;
    let words = [
        format!("mode={mode}"),
        "count=200".to_owned(),
        format!("port={}", cluster.port),
        "nodes=3".to_owned(),
        format!("ca={}", authority.0.display()),
    ];
    let mut emulation = Emulation::new(image, words);
    emulation.counts_instructions = true;
    emulation.run_alone(context)
}

/// The certificate in DER; removed when dropped.
struct AuthorityFile(PathBuf);

impl AuthorityFile {
    fn new(pem: &Path) -> Outcome<Self> {
        let path = env::temp_dir().join(format!("messina-authority-{}.der", process::id()));
        fs::write(&path, der(&fs::read_to_string(pem)?)?)?;
        Ok(Self(path))
    }
}

impl Drop for AuthorityFile {
    fn drop(&mut self) {
        // Somebody else may have tidied up.
        let _ = fs::remove_file(&self.0);
    }
}

/// What stands between the lines that begin and end a certificate.
fn der(pem: &str) -> Outcome<Vec<u8>> {
    let text: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    STANDARD
        .decode(text.trim())
        .map_err(|error| Failure::new(format!("the authority's certificate: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_stand_between_two_lines() {
        let pem = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
        assert_eq!(der(pem).expect("base64"), [0x30, 0]);
        assert!(der("MAA").is_err());
    }
}
