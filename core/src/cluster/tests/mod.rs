//! Scenarios of the control plane: a few imagined nodes, virtual time, no sockets.
//!
//! Answers are built here byte by byte, from the layouts of the protocol and of the system tables;
//! nothing of the crate's own encoders is used for them.

pub(crate) mod answers;
mod chaos;
mod duty;
mod first_contact;
mod lazy;
mod pools;
mod refresh;
mod routes;
mod warm;
pub(super) mod world;
