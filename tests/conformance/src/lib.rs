//! Golden frames of the CQL protocol, and what must never happen when they are cut or bent.
//!
//! The bytes here are a copy of what the specification gives and what servers send; nothing is
//! produced by the encoder under test. [`golden`] holds the corpus of responses, [`walk`] reads
//! everything that a response holds, [`fuzz_bodies`] are the bodies of fuzz targets, run over the
//! corpus and over bent copies of it in the ordinary tests.

#![forbid(unsafe_code)]

pub mod fuzz_bodies;
pub mod golden;
pub mod hex;
pub mod walk;
