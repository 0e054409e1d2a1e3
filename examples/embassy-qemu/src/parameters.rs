//! What one run shall do, from the words of the command line. Nothing is rebuilt between tests.

use core::net::Ipv4Addr;

use crate::board::lan9118;

/// The parameters with their defaults, as `key=value` words, separated by spaces or commas.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// `mode=`: what to do once the network is up.
    pub mode: Mode,
    /// `host=A.B.C.D`: address of the far end, the first of `nodes` in a row. QEMU's user network
    /// passes the guest's connections to 127.x.y.z on to the very same address of the host.
    pub host: Ipv4Addr,
    /// `nodes=N`: how many addresses are contact points.
    pub nodes: u8,
    /// `port=N`: port of the far end.
    pub port: u16,
    /// `ip=dhcp|static`: ask, or take 10.0.2.15 with gateway 10.0.2.2.
    pub dhcp: bool,
    /// `count=N`: how many requests or rows.
    pub count: u32,
    /// `depth=N`: how many requests are under way at once.
    pub depth: u8,
    /// `request=N`: bytes of a request of the echo.
    pub request: u16,
    /// `answer=N`: bytes of its answer.
    pub answer: u32,
    /// `limit=SECONDS`: the whole run must end within.
    pub limit_s: u16,
    /// `seed=N`: seed of the network stack and the driver, for runs that repeat. The host's entropy
    /// otherwise.
    pub seed: Option<u64>,
    /// `ca=FILE`: a file of the host with the authority's certificate, in DER.
    pub ca: &'static str,
    /// `machine=`: which of the emulated machines this is; they differ in the chip's address.
    pub machine: Machine,
}

/// See [`Parameters::mode`]. Not every image has every mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Get an address and stop.
    Boot,
    /// Connect, send a little and take it back.
    Hello,
    /// Send bytes to an echo server, count what returns.
    Echo,
    /// Write readings and read them back.
    Readings,
    /// The same, with all that happens to a cluster meanwhile.
    Sensors,
    /// Requests without end, and a new session every 1,000.
    Soak,
    /// A page of 1 MiB.
    Page,
    /// INSERTs, several under way at once.
    Pipeline,
    /// INSERTs and rows in turn, for counting instructions.
    Cost,
    /// Load while the cable is pulled.
    Cable,
    /// Answers of absurd lengths.
    Absurd,
    /// A session that must not come about, because the nodes' certificates are not trusted.
    Refused,
}

/// See [`Parameters::machine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// Cortex-M3.
    An385,
    /// Cortex-M4F.
    An386,
    /// Cortex-M7.
    An500,
}

impl Machine {
    /// Where the network chip's registers are.
    pub const fn chip(self) -> usize {
        match self {
            Self::An385 | Self::An386 => lan9118::BASE_AN386,
            Self::An500 => lan9118::BASE_AN500,
        }
    }
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            mode: Mode::Boot,
            host: Ipv4Addr::LOCALHOST,
            nodes: 1,
            port: 9042,
            dhcp: true,
            count: 1_000,
            depth: 8,
            request: 64,
            answer: 64,
            limit_s: 30,
            seed: None,
            ca: "",
            machine: Machine::An386,
        }
    }
}

impl Parameters {
    /// Takes over `key=value` words. The word that has no `=` is the program's name.
    ///
    /// Returns the offending word when a key is unknown or a value makes no sense.
    pub fn read(&mut self, line: &'static str) -> Result<(), &'static str> {
        for word in line.split([' ', ',']).filter(|word| !word.is_empty()) {
            if let Some((key, value)) = word.split_once('=') {
                self.set(key, value).ok_or(word)?;
            }
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: &'static str) -> Option<()> {
        match (key, value) {
            ("mode", _) => self.mode = mode(value)?,
            ("ip", "dhcp") => self.dhcp = true,
            ("ip", "static") => self.dhcp = false,
            ("ca", _) => self.ca = value,
            ("machine", "an385") => self.machine = Machine::An385,
            ("machine", "an386") => self.machine = Machine::An386,
            ("machine", "an500") => self.machine = Machine::An500,
            ("host", _) => self.host = value.parse().ok()?,
            ("nodes", _) => self.nodes = number(value)?,
            ("port", _) => self.port = number(value)?,
            ("count", _) => self.count = number(value)?,
            ("depth", _) => self.depth = number(value)?,
            ("request", _) => self.request = number(value)?,
            ("answer", _) => self.answer = number(value)?,
            ("limit", _) => self.limit_s = number(value)?,
            ("seed", _) => self.seed = Some(number::<u32>(value)?.into()),
            _ => return None,
        }
        Some(())
    }
}

/// One reader of digits for numbers of all widths.
fn number<T: TryFrom<u32>>(text: &str) -> Option<T> {
    T::try_from(digits(text)?).ok()
}

#[inline(never)]
fn digits(text: &str) -> Option<u32> {
    let mut number = (!text.is_empty()).then_some(0_u32)?;
    for byte in text.bytes() {
        let digit = char::from(byte).to_digit(10)?;
        number = number.checked_mul(10)?.checked_add(digit)?;
    }
    Some(number)
}

fn mode(word: &str) -> Option<Mode> {
    Some(match word {
        "boot" => Mode::Boot,
        "hello" => Mode::Hello,
        "echo" => Mode::Echo,
        "readings" => Mode::Readings,
        "sensors" => Mode::Sensors,
        "soak" => Mode::Soak,
        "page" => Mode::Page,
        "pipeline" => Mode::Pipeline,
        "cost" => Mode::Cost,
        "cable" => Mode::Cable,
        "absurd" => Mode::Absurd,
        "refused" => Mode::Refused,
        _ => return None,
    })
}
