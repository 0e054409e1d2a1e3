//! Fuzz targets: plain functions that take any bytes, must not panic, and check what must hold
//! whatever the bytes are.
//!
//! Parsers read the bytes as they are; state machines take them as a sequence of operations
//! (see [`Input`]). [`run`] drives a target over its corpus and bent copies of it; the same bodies
//! serve a coverage-guided fuzzer in `tests/fuzz`.

mod cluster;
mod connection;
mod decoders;
mod framer;
mod input;
mod mutate;
mod negotiation;
mod offer;
mod plane;
#[cfg(feature = "tunnel")]
mod relay;
mod rows;
mod run;
#[cfg(feature = "segments")]
mod segments;
mod system_tables;
mod tablets;
#[cfg(feature = "tunnel")]
mod tunnel;
mod warm_start;

pub use input::Input;
pub use run::{Plan, Summary, run};

/// One target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, also that of its test.
    pub name: &'static str,
    /// Takes any bytes. A panic is a finding.
    pub body: fn(&[u8]),
    /// Bytes to begin with.
    pub corpus: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    decoders::HEADER,
    decoders::RESPONSE,
    decoders::VALUES,
    decoders::CELL,
    offer::OFFER,
    framer::FRAMER,
    #[cfg(feature = "segments")]
    segments::SEGMENTS,
    rows::ROWS,
    negotiation::NEGOTIATION,
    connection::CONNECTION,
    tablets::TABLETS,
    cluster::CLUSTER,
    warm_start::WARM_START,
    plane::PLANE,
    #[cfg(feature = "tunnel")]
    tunnel::TUNNEL,
    #[cfg(feature = "tunnel")]
    tunnel::TUNNEL_PAIR,
    #[cfg(feature = "tunnel")]
    relay::REQUEST,
    #[cfg(feature = "tunnel")]
    relay::TARGET,
    #[cfg(feature = "tunnel")]
    relay::TOKEN,
    #[cfg(feature = "tunnel")]
    relay::FIRST_BYTES,
    #[cfg(feature = "tunnel")]
    relay::LOGIN,
];

/// Finds a target by its name.
///
/// # Panics
///
/// If there is none.
#[must_use]
pub fn target(name: &str) -> &'static Target {
    let found = TARGETS.iter().find(|target| target.name == name);
    found.unwrap_or_else(|| panic!("no fuzz target {name}"))
}
