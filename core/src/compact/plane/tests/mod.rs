//! The plane against the planner of servers, against naive models, and with answers written by hand.

mod differential;
mod reading;
mod tablet_model;

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

/// A node of rack `r` in data centre `a`.
fn row(number: u16) -> MemberRow<'static> {
    MemberRow {
        host_id: host(number),
        address: Some([10, 0, 0, number as u8].into()),
        broadcast: None,
        dc: "a",
        rack: "r",
        has_tokens: true,
    }
}
