//! Drivers that no one here wrote, each a program of its own, against one scenario.
//!
//! `scenario.json` says what is done and what must come of it; [`Driver`] names the programs, which
//! do it and tell what they saw; [`Scenario`] judges that against the expected values and against
//! the counters of the [`Simulator`]. A program decides nothing about itself: a check that it does
//! not report has failed. [`Visits`] is the report, for people and for machines.

mod driver;
mod judge;
mod scenario;
mod simulator;
mod table;

pub use self::{
    driver::{Account, Call, Driver, Programs},
    judge::{Shares, Verdict, Visit, Waste},
    scenario::{Scenario, scenario_file},
    simulator::{Offer, Simulator},
    table::Visits,
};
