//! Golden frames of the CQL protocol, and what must never happen when they are cut or bent.
//!
//! The bytes here are a copy of what the specification gives and what servers send; nothing is
//! produced by the encoder under test. [`golden`] holds the corpus of responses,
//! [`captures`] what went over a socket between other drivers and real servers, [`walk`] reads
//! everything that a response holds, [`fuzz`] has the bodies of fuzz targets and the driver that
//! runs them over the corpus and over bent copies of it in the ordinary tests.

#![forbid(unsafe_code)]

pub mod captures;
pub mod fuzz;
pub mod golden;
pub mod hex;
pub mod walk;
