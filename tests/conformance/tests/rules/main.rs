//! The rules of the protocol that a driver or a node can get wrong, each with the test that holds it.
//!
//! [`rule`] says what a rule is. The tables stand by subject: [`pitfalls`] are points that are easy to get
//! wrong, [`extensions`] the rules of ScyllaDB's protocol extensions document, [`awareness`] those of
//! its documents on tablets and on what its drivers do. A rule is held by a test of this module or by
//! one elsewhere in the tree; [`table`] checks that each of them exists, and that what is missing is
//! exactly what is known to be missing. Not a second copy of tests that stand elsewhere.

mod awareness;
mod errors;
mod extensions;
mod handshake;
mod offers;
mod pitfalls;
mod rule;
mod statements;
mod table;
mod tablets;
mod tokens;
