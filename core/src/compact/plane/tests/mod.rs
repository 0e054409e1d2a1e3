//! The plane against the planner of servers, against naive models, and with answers written by hand.

mod differential;

use super::*;
use std::vec::Vec;
use uuid::Uuid;

const LIMITS: PlaneLimits = PlaneLimits {
    members: 64,
    tables: 8,
    tablet_bytes: 1 << 20,
};

fn host(number: u16) -> Uuid {
    Uuid::from_u128(u128::from(number))
}
