//! The contracts of links, timers and clocks, run against every transport. The tests are in
//! `tests/`, one file for each platform; this library is empty.
#![forbid(unsafe_code)]
