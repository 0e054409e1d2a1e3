//! What the table must hold, whatever went wrong on the way.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use messina_core::drive::Session;
use messina_core::error::Error;

use crate::clock::Certainty;

/// A reading that was taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Taken {
    /// The true time, in microseconds since 1970.
    pub at: i64,
    /// Who measured.
    pub sensor: i32,
    /// What; no two readings have the same.
    pub celsius: f64,
    /// Whether it must be in the table.
    pub fate: Fate,
}

/// What has become of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// It was in flash when the power went, or went on: it must be in the table.
    Kept,
    /// The power went while it was put into flash: both are right.
    Open,
    /// It was in RAM when the power went: it must not be in the table.
    Lost,
}

/// All readings that were taken.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// In the order of their taking.
    pub taken: Vec<Taken>,
}

/// A row of `history` or `latest`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    at: i64,
    sensor: i32,
    celsius: f64,
    certainty: i8,
    written_at: i64,
}

impl Model {
    /// Readings that must be in the table.
    pub fn kept(&self) -> usize {
        self.count(Fate::Kept)
    }

    /// Readings that have this fate.
    pub fn count(&self, fate: Fate) -> usize {
        self.taken.iter().filter(|taken| taken.fate == fate).count()
    }

    /// Compares the tables with the model. Returns the number of rows, or what differs.
    pub async fn compare(&self, session: &Session) -> Result<usize, String> {
        let history = read(session, "history").await;
        let history = history.map_err(|error| format!("history cannot be read: {error}"))?;
        self.check_history(&history)?;
        let latest = read(session, "latest").await;
        let latest = latest.map_err(|error| format!("latest cannot be read: {error}"))?;
        check_latest(&history, &latest)?;
        Ok(history.len())
    }

    fn check_history(&self, rows: &[Row]) -> Result<(), String> {
        for taken in &self.taken {
            let found = rows.iter().filter(|row| is_same(row, taken)).count();
            let may = match taken.fate {
                Fate::Kept => 1..=1,
                Fate::Open => 0..=1,
                Fate::Lost => 0..=0,
            };
            if !may.contains(&found) {
                return Err(format!("{found} rows for {taken:?}"));
            }
        }
        for row in rows {
            let Some(taken) = self.taken.iter().find(|taken| is_same(row, taken)) else {
                return Err(format!("nobody took {row:?}"));
            };
            let is_exact = row.certainty == Certainty::Read.code().cast_signed()
                || row.certainty == Certainty::Dated.code().cast_signed();
            if is_exact && row.at.abs_diff(taken.at) > CLOCK_MICROS.unsigned_abs() {
                return Err(format!("{row:?} was taken at {}", taken.at));
            }
            let is_latest = row.certainty == Certainty::Latest.code().cast_signed();
            if is_latest && row.at + CLOCK_MICROS < taken.at {
                return Err(format!("{row:?} was taken later, at {}", taken.at));
            }
            if row.written_at != row.at {
                return Err(format!("{row:?} has another timestamp"));
            }
        }
        Ok(())
    }
}

/// Each sensor's newest reading stands in `latest`, and nothing else.
fn check_latest(history: &[Row], latest: &[Row]) -> Result<(), String> {
    let mut newest = BTreeMap::new();
    for row in history {
        let found = newest.entry(row.sensor).or_insert(row);
        if found.at < row.at {
            *found = row;
        }
    }
    for row in latest {
        match newest.remove(&row.sensor) {
            Some(newest) if newest == row => {}
            newest => return Err(format!("latest has {row:?}, history {newest:?}")),
        }
    }
    match newest.first_key_value() {
        Some((sensor, _)) => Err(format!("latest has nothing of sensor {sensor}")),
        None => Ok(()),
    }
}

async fn read(session: &Session, table: &str) -> Result<Vec<Row>, Error> {
    let text =
        format!("SELECT at, sensor, celsius, certainty, writetime(celsius) FROM plant.{table}");
    let mut rows = Vec::new();
    let prepared = session.prepare(text).await?;
    let mut pages = session.pages(&prepared, ())?;
    while let Some(page) = pages.next_page().await? {
        for row in page.rows::<(i64, i32, f64, i8, i64)>()? {
            let (at, sensor, celsius, certainty, written_at) = row?;
            rows.push(Row {
                at,
                sensor,
                celsius,
                certainty,
                written_at,
            });
        }
    }
    Ok(rows)
}

fn is_same(row: &Row, taken: &Taken) -> bool {
    row.sensor == taken.sensor && row.celsius.to_bits() == taken.celsius.to_bits()
}

/// The cluster tells its time in milliseconds, after half a round trip. Readings of one instant are
/// told apart by a microsecond.
const CLOCK_MICROS: i64 = 2_000;
