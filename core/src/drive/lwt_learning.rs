//! Tablets of conditional statements.
//!
//! Where the second tablets extension was agreed, a conditional write never brings a tablet with
//! its answer. A table that is written by conditions alone would be guessed for ever, so before
//! such a write its key is read once at its serial level: that answer does bring the tablet.
//!
//! Before it and not beside it: both would run Paxos on one partition and hinder one another. It
//! costs the one statement that reads, not those sent meanwhile, and no more than a quarter of its
//! time limit for each of two steps (preparing the read, once for each table, and the read). What
//! becomes of the read never matters to the statement. It is made at most once a minute for each
//! tablet, known or stale; while a tablet is not known, one at a time and so many a minute for
//! each table. Batches teach nothing and are not learned for. Not on the first extension, whose
//! answers to conditional writes tell, nor for strongly consistent tables, which refuse them.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::time::Duration;

use super::outgoing::{Content, Outgoing};
use super::session::{EncodedRow, Session};
use super::statement::{Statement, StatementOptions};
use crate::cluster::prepared::PreparedStatement;
use crate::cluster::quoting::InQuotes;
use crate::conn::extensions::TabletsRouting;
use crate::rng::mix;
use crate::routing::{KeyspaceConsistency, TableRef, Token};
use crate::time::Instant;
use crate::wire::{Consistency, SerialConsistency, SmallBuffer, Values, ValuesBuilder};

/// At most this often is a tablet read for.
const PAUSE: Duration = Duration::from_secs(60);

/// Reads in that time for the unknown tablets of a table.
const UNKNOWN_MAX: u16 = 512;

/// How many of these one counts for that taught nothing.
const FRUITLESS: u16 = 16;

/// The longest that a step may take.
const STEP_MAX: Duration = Duration::from_millis(500);

impl Session {
    /// Whether this statement is to read its key first. If so, others are not for a while.
    pub(super) fn claim_learning(&self, request: &Outgoing<'_>) -> Option<Wanted> {
        let hub = self.hub();
        if !request.route.is_lwt || !hub.config().policy.learn_lwt {
            return None;
        }
        let wanted = self.wanted(request)?;
        let now = hub.clock().now();
        let with_marks = |look: fn(&mut LwtMarks, Wanted, Instant) -> bool| {
            let may = hub.lwt_marks().with(|marks| look(marks, wanted, now));
            may.unwrap_or(false)
        };
        // Most statements end here, so that only few are planned twice.
        let may = with_marks(|marks, wanted, now| marks.is_due(wanted, now))
            && goes_by_second(request)
            && with_marks(LwtMarks::claim);
        may.then_some(wanted)
    }

    /// Reads the key of a conditional statement, to learn its tablet.
    pub(super) async fn learn_before(&self, request: &Outgoing<'_>, wanted: Wanted) {
        let hub = self.hub();
        let left = request.deadline.saturating_since(hub.clock().now());
        let limit = STEP_MAX.min(left / 4);
        self.read(request, limit).await;
        let known = self.tablet_end(wanted.table, wanted.token);
        let now = hub.clock().now();
        // A poisoned lock says so to whoever needs it.
        let _ = hub.lwt_marks().with(|marks| {
            if wanted.known.is_none() {
                marks.finished(wanted.table, known.is_some());
            }
            if known.is_some() {
                marks.claim(Wanted { known, ..wanted }, now);
            }
        });
    }

    /// What there is to learn, if the table is one whose conditional writes may teach nothing.
    fn wanted(&self, request: &Outgoing<'_>) -> Option<Wanted> {
        let (table, token) = (request.route.table?, request.route.token?);
        let is_eventual = self.hub().view().with(|view| {
            let table = view.table(table)?;
            let is_eventual = table.consistency() == KeyspaceConsistency::Eventual;
            Some(table.has_tablets() && is_eventual)
        });
        is_eventual?.then(|| Wanted {
            table,
            token,
            known: self.tablet_end(table, token),
        })
    }

    fn tablet_end(&self, table: TableRef, token: Token) -> Option<i64> {
        self.hub().view().with(|view| view.tablet_end(table, token))
    }

    /// Reads the key of a conditional statement; whatever comes of it.
    async fn read(&self, request: &Outgoing<'_>, limit: Duration) {
        let Content::Execute { statement, values } = &request.content else {
            return;
        };
        let (Some(text), Some(key)) = (text_of(statement), key_of(statement, *values)) else {
            return;
        };
        let serial = request.route.serial_consistency;
        let options = StatementOptions {
            consistency: Some(match serial.unwrap_or(SerialConsistency::Serial) {
                SerialConsistency::Serial => Consistency::Serial,
                SerialConsistency::LocalSerial => Consistency::LocalSerial,
            }),
            timeout: Some(limit),
            is_idempotent: true,
            #[cfg(feature = "targeting")]
            target: request.only,
            ..StatementOptions::default()
        };
        let Ok(prepared) = self.prepare(Statement::with_options(text, options)).await else {
            return;
        };
        // Markers have names of their own where the statement named them: then this reads another
        // column's table or nothing, and must not be taken for the same key.
        if prepared.inner().key_indexes().len() != statement.key_indexes().len() {
            return;
        }
        let Ok(read) = self.execution(&prepared, &key, None) else {
            return;
        };
        if let Ok(ran) = read.run().await {
            // Storing the tablet is part of it.
            let _ = read.decode(ran);
        }
    }
}

/// Whether the connection that the request would go to has agreed the second extension, on which
/// its answer tells nothing.
fn goes_by_second(request: &Outgoing<'_>) -> bool {
    let plan = request.plan(0);
    let cell = plan
        .targets()
        .first()
        .and_then(|target| request.pick(target));
    cell.is_some_and(|cell| cell.agreed().tablets == TabletsRouting::V2)
}

/// The read of a statement's key.
fn text_of(statement: &PreparedStatement) -> Option<String> {
    let (keyspace, table) = statement.table_name()?;
    let mut text = String::new();
    for (nth, &index) in statement.key_indexes().iter().enumerate() {
        let column = InQuotes::name(&statement.markers().get(usize::from(index))?.name);
        let written = match nth {
            0 => write!(
                text,
                "SELECT {column} FROM {}.{} WHERE {column} = ?",
                InQuotes::name(&keyspace),
                InQuotes::name(&table)
            ),
            _ => write!(text, " AND {column} = ?"),
        };
        written.ok()?;
    }
    text.push_str(" LIMIT 1");
    Some(text)
}

/// The values of a statement's partition key, in the key's order.
fn key_of(statement: &PreparedStatement, values: Values<'_>) -> Option<EncodedRow> {
    let mut key = ValuesBuilder::new(SmallBuffer::new());
    for &index in statement.key_indexes() {
        key.value(values.get(index)?.bytes()?).ok()?;
    }
    Some(key.finish())
}

/// The tablet that is to be learned.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    table: TableRef,
    token: Token,
    /// Its last token, if it was learned before.
    known: Option<i64>,
}

impl Wanted {
    /// Which of the places it stands for: a tablet's or, if that is not known, its table's.
    fn number(self) -> u64 {
        let table = number(self.table);
        match self.known {
            Some(last) => mix(last.cast_unsigned() ^ mix(table)),
            None => table,
        }
    }
}

/// When what was last read for. Two tablets or tables that share a place are read for less often,
/// never more.
#[derive(Debug, Default)]
pub(super) struct LwtMarks {
    /// Until when a tablet is not read for.
    tablets: Vec<Instant>,
    tables: Vec<TableMark>,
}

#[derive(Clone, Copy, Debug)]
struct TableMark {
    /// When the allowance begins anew.
    until: Instant,
    left: u16,
    /// Until when another read is under way, unless it ends before.
    busy_until: Instant,
}

impl TableMark {
    const UNUSED: Self = Self {
        until: Instant::ZERO,
        left: 0,
        busy_until: Instant::ZERO,
    };
}

impl LwtMarks {
    /// Whether the caller may read. If so it is noted.
    fn claim(&mut self, wanted: Wanted, now: Instant) -> bool {
        let may = self.is_due(wanted, now);
        if may {
            self.note(wanted, now);
        }
        may
    }

    /// The same without noting it.
    fn is_due(&self, wanted: Wanted, now: Instant) -> bool {
        let which = wanted.number();
        match wanted.known {
            Some(_) => {
                let place = place(self.tablets.len(), which);
                let until = place.and_then(|place| self.tablets.get(place));
                until.is_none_or(|&until| until <= now)
            }
            None => {
                let place = place(self.tables.len(), which);
                let mark = place.and_then(|place| self.tables.get(place));
                mark.is_none_or(|mark| {
                    mark.busy_until <= now && (mark.until <= now || mark.left > 0)
                })
            }
        }
    }

    fn note(&mut self, wanted: Wanted, now: Instant) {
        let which = wanted.number();
        if wanted.known.is_some() {
            self.tablets.resize(TABLET_PLACES, Instant::ZERO);
            let place = place(self.tablets.len(), which);
            if let Some(until) = place.and_then(|place| self.tablets.get_mut(place)) {
                *until = now.saturating_add(PAUSE);
            }
            return;
        }
        self.tables.resize(TABLE_PLACES, TableMark::UNUSED);
        let place = place(self.tables.len(), which);
        if let Some(mark) = place.and_then(|place| self.tables.get_mut(place)) {
            if mark.until <= now {
                (mark.until, mark.left) = (now.saturating_add(PAUSE), UNKNOWN_MAX);
            }
            mark.left = mark.left.saturating_sub(1);
            mark.busy_until = now.saturating_add(STEP_MAX.saturating_mul(2));
        }
    }

    /// The read has ended. One that taught nothing costs more: where the server refuses it, the
    /// next will teach nothing either.
    fn finished(&mut self, table: TableRef, is_known: bool) {
        let place = place(self.tables.len(), number(table));
        if let Some(mark) = place.and_then(|place| self.tables.get_mut(place)) {
            mark.busy_until = Instant::ZERO;
            if !is_known {
                mark.left = mark.left.saturating_sub(FRUITLESS - 1);
            }
        }
    }
}

fn number(table: TableRef) -> u64 {
    (u64::from(table.generation()) << 32) | table.place() as u64
}

fn place(places: usize, which: u64) -> Option<usize> {
    usize::try_from(which.checked_rem(places as u64)?).ok()
}

const TABLET_PLACES: usize = 4096;
const TABLE_PLACES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: TableRef = TableRef::new(3, 1);

    fn at(seconds: u64) -> Instant {
        Instant::from_micros(100_000_000 + seconds * 1_000_000)
    }

    fn wanted(known: Option<i64>) -> Wanted {
        Wanted {
            table: TABLE,
            token: Token::new(5),
            known,
        }
    }

    #[test]
    fn a_tablet_is_read_for_once_a_minute() {
        let mut marks = LwtMarks::default();
        let claims: Vec<u64> = (0..200)
            .filter(|&second| marks.claim(wanted(Some(7)), at(second)))
            .collect();
        assert_eq!(claims, [0, 60, 120, 180]);
        let others = (0..100).filter(|&last| marks.claim(wanted(Some(last * 1000)), at(199)));
        assert!(
            (95..=100).contains(&others.count()),
            "but for shared places"
        );
    }

    #[test]
    fn unknown_tablets_are_read_for_one_at_a_time_and_so_often_a_minute() {
        let mut marks = LwtMarks::default();
        assert!(marks.claim(wanted(None), at(0)));
        assert!(!marks.claim(wanted(None), at(0)), "one is under way");
        let other = Wanted {
            table: TableRef::new(4, 1),
            ..wanted(None)
        };
        assert!(marks.claim(other, at(0)), "of another table");
        marks.finished(TABLE, true);
        let mut count = 1;
        while marks.claim(wanted(None), at(1)) {
            marks.finished(TABLE, true);
            count += 1;
        }
        assert_eq!(count, UNKNOWN_MAX);
        assert!(!marks.claim(wanted(None), at(59)));
        assert!(marks.claim(wanted(None), at(60)));
        marks.finished(TABLE, false);
        let fruitless = (0..100).filter(|_| {
            let may = marks.claim(wanted(None), at(61));
            marks.finished(TABLE, false);
            may
        });
        assert_eq!(fruitless.count(), 31, "and the one before");
        assert!(marks.claim(wanted(None), at(120)));
        // One that was dropped never says that it has ended.
        assert!(!marks.claim(wanted(None), at(120)));
        assert!(marks.claim(wanted(None), at(121)));
    }
}
