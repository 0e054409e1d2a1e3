//! What this gateway measures, and the tables it goes to. An application has its own here.
//!
//! All readings that a gateway takes in one day share a partition, so a batch of them is one write
//! for the cluster, and partitions stay bounded. The key of a reading is its time and its sensor, so
//! writing it twice makes one row. `latest` has one row for each sensor: there the timestamps alone
//! decide who wins, in whatever order writes come.

use crate::record::Payload;

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Who measured.
    pub sensor: i32,
    /// What.
    pub celsius: f64,
}

impl Reading {
    /// As a payload.
    pub fn to_payload(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        let (sensor, celsius) = bytes.split_at_mut(4);
        sensor.copy_from_slice(&self.sensor.to_le_bytes());
        celsius.copy_from_slice(&self.celsius.to_le_bytes());
        bytes
    }

    pub(crate) fn parse(payload: &Payload) -> Option<Self> {
        let (sensor, celsius) = payload.split_first_chunk()?;
        Some(Self {
            sensor: i32::from_le_bytes(*sensor),
            celsius: f64::from_le_bytes(celsius.try_into().ok()?),
        })
    }
}

/// Makes the keyspace and its tables.
pub const TABLES: [&str; 3] = [
    "CREATE KEYSPACE IF NOT EXISTS plant WITH replication = \
     {'class': 'NetworkTopologyStrategy', 'replication_factor': 3}",
    "CREATE TABLE IF NOT EXISTS plant.history (gateway int, day int, at bigint, sensor int, \
     celsius double, certainty tinyint, PRIMARY KEY ((gateway, day), at, sensor))",
    "CREATE TABLE IF NOT EXISTS plant.latest (gateway int, sensor int, at bigint, \
     celsius double, certainty tinyint, PRIMARY KEY (gateway, sensor))",
];

pub(crate) const HISTORY: &str = "INSERT INTO plant.history \
     (gateway, day, at, sensor, celsius, certainty) VALUES (?, ?, ?, ?, ?, ?) USING TIMESTAMP ?";
pub(crate) const LATEST: &str = "INSERT INTO plant.latest \
     (gateway, sensor, at, celsius, certainty) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ?";
pub(crate) const CLOCK: &str = "SELECT toUnixTimestamp(now()) FROM system.local";

/// The day of a time, counted from 1970.
pub(crate) fn day(micros: i64) -> i32 {
    i32::try_from(micros.div_euclid(DAY_MICROS)).unwrap_or(i32::MAX)
}

const DAY_MICROS: i64 = 86_400_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_pass_through_payloads() {
        let reading = Reading {
            sensor: -7,
            celsius: 20.5,
        };
        let payload = Payload::from_slice(&reading.to_payload()).unwrap();
        assert_eq!(Reading::parse(&payload), Some(reading));
        assert_eq!(
            Reading::parse(&Payload::from_slice(&[1; 11]).unwrap()),
            None
        );
    }

    #[test]
    fn days_begin_at_midnight() {
        assert_eq!(day(DAY_MICROS - 1), 0);
        assert_eq!(day(DAY_MICROS), 1);
        assert_eq!(day(-1), -1);
    }
}
