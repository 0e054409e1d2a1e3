//! What one run shall do, from the words of the command line. Nothing is rebuilt between tests.

use core::net::Ipv4Addr;

/// The parameters with their defaults: `mode=MODE`, `host=A.B.C.D`, `port=N`, `ip=dhcp|static`,
/// `bytes=N`, `limit=SECONDS`, `seed=N`, `machine=an386|an500`. Words may be separated by spaces or
/// commas.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// What to do once the network is up.
    pub mode: Mode,
    /// Address of the far end. QEMU's user network passes the guest's connections to 127.x.y.z on
    /// to the very same address of the host.
    pub host: Ipv4Addr,
    /// Port of the far end.
    pub port: u16,
    /// Ask by DHCP, or take 10.0.2.15 with gateway 10.0.2.2.
    pub dhcp: bool,
    /// How many bytes `mode=echo` sends and expects back.
    pub bytes: u32,
    /// The whole run must end within this many seconds.
    pub limit_s: u16,
    /// Seed of the network stack and the driver, for runs that repeat. The host's entropy otherwise.
    pub seed: Option<u64>,
    /// Which of the two emulated machines this is: they differ in the chip's address.
    pub machine: Machine,
}

/// See [`Parameters::mode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Get an address and stop: the baseline of the size card.
    Boot,
    /// Send bytes to an echo server and compare what returns.
    Echo,
    /// Connect to a cluster, write and read with prepared statements, print a row.
    #[cfg(feature = "driver")]
    Query,
}

/// See [`Parameters::machine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// Cortex-M4F.
    An386,
    /// Cortex-M7.
    An500,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            mode: Mode::Boot,
            host: Ipv4Addr::LOCALHOST,
            port: 9042,
            dhcp: true,
            bytes: 100 * 1024,
            limit_s: 30,
            seed: None,
            machine: Machine::An386,
        }
    }
}

impl Parameters {
    /// Reads `key=value` words. The word that has no `=` is the program's name.
    ///
    /// Returns the offending word when a key is unknown or a value makes no sense.
    pub fn parse(line: &str) -> Result<Self, &str> {
        let mut parameters = Self::default();
        for word in line.split([' ', ',']).filter(|word| !word.is_empty()) {
            if let Some((key, value)) = word.split_once('=') {
                parameters.set(key, value).ok_or(word)?;
            }
        }
        Ok(parameters)
    }

    fn set(&mut self, key: &str, value: &str) -> Option<()> {
        match (key, value) {
            ("mode", "boot") => self.mode = Mode::Boot,
            ("mode", "echo") => self.mode = Mode::Echo,
            #[cfg(feature = "driver")]
            ("mode", "query") => self.mode = Mode::Query,
            ("ip", "dhcp") => self.dhcp = true,
            ("ip", "static") => self.dhcp = false,
            ("machine", "an386") => self.machine = Machine::An386,
            ("machine", "an500") => self.machine = Machine::An500,
            ("host", _) => self.host = value.parse().ok()?,
            ("port", _) => self.port = value.parse().ok()?,
            ("bytes", _) => self.bytes = value.parse().ok()?,
            ("limit", _) => self.limit_s = value.parse().ok()?,
            ("seed", _) => self.seed = Some(value.parse().ok()?),
            _ => return None,
        }
        Some(())
    }
}
