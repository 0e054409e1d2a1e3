//! The whole driver under virtual time, without faults but those that a test sets.

mod altered;
mod batches;
mod conditional;
mod following;
mod mixed;
mod options;
mod payloads;
mod planning;
mod pools;
mod routes;
mod scene;
mod scripted;
mod single;
mod strong;
mod views;
mod warm;
