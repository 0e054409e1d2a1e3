//! Structs and enumerations that derive the traits: through bytes, and through a session with a
//! simulated cluster.

mod properties;
mod rows;
mod session;
mod support;
mod values;
