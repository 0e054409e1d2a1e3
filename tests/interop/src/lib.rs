//! Messina meets strangers: servers and drivers that no one here wrote.
//!
//! - [`cassandra`] lays out, starts, watches and stops one real Apache Cassandra node, whose jars
//!   [`maven`] brings.
//! - [`capture`] records by hand what a driver and a server say to each other.
//! - [`foreign`] runs foreign drivers through one scenario and judges what they saw; [`python`] and
//!   [`javascript`] keep the packages of two of them.
//! - [`airports`] reads a data file that comes with the Python packages.
//! - [`mod@compare`] lets three drivers do the same work and counts what it costs the servers.
//! - [`command`] runs the `messina` command from outside, as a person would.
//! - [`mod@slice`] is what CI runs: our command and our driver against Cassandra, foreign drivers
//!   against `messina sim`, each judged by the other side.
//!
//! It is no test framework. Whether a server is ready it never asks the driver under test: for that
//! it knows the few bytes of the protocol in [`probe`]. Everything it makes lies in the folder
//! `interop` of cargo's target folder and is used again when present. Everything it starts listens
//! on loopback, has a time limit, and is stopped by process id. Unix only.

#![forbid(unsafe_code)]

pub mod airports;
pub mod capture;
pub mod cassandra;
pub mod command;
pub mod compare;
pub mod foreign;
pub mod javascript;
pub mod maven;
pub mod ports;
pub mod probe;
pub mod process;
pub mod python;
pub mod report;
pub mod slice;
pub mod target;
