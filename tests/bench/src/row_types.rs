//! Instructions of one row bound and read: a struct that derives its traits beside a tuple of the same
//! fields.
//!
//! No server and no session: rows lie in memory, so that the figures are the same in each run and a
//! difference of a few instructions is seen. A struct may take five in a hundred more than a tuple;
//! one whose columns stand in another order is printed and not judged, for no tuple can read it.

use core::hint::black_box;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use comfy_table::Table;
use messina_core::wire::ValuesBuilder;
use messina_core::wire::response::RowsContent;
use messina_tokio::types::{ColumnSpec, ColumnType, DecodeRow, EncodeRow, MarkerOrder};

use crate::load::instructions;
use crate::workload::NOTE;

/// A row of the readings that the other figures are of.
#[derive(Debug, DecodeRow, EncodeRow)]
struct Reading<'a> {
    station: i64,
    at: i32,
    depth: f64,
    note: &'a str,
}

type Fields<'a> = (i64, i32, f64, &'a str);

/// What is done with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    BindTuple,
    BindStruct,
    ReadTuple,
    ReadStruct,
    ReadStructTurned,
}

const WORKS: [(&str, Work); 5] = [
    ("bind-tuple", Work::BindTuple),
    ("bind-struct", Work::BindStruct),
    ("read-tuple", Work::ReadTuple),
    ("read-struct", Work::ReadStruct),
    ("read-struct-turned", Work::ReadStructTurned),
];

/// Rows of the two runs whose difference is divided.
const FEWER: u32 = 1000;
const MORE: u32 = 3000;

/// How much more a struct may take.
const TOLERANCE: f64 = 0.05;

/// Counts, prints, and fails where a struct takes too much.
pub fn run(program: &Path, mut out: impl Write) -> Result<()> {
    let mut table = Table::new();
    table.set_header(["one row", "instructions"]);
    let mut counted = [0.0; WORKS.len()];
    for ((name, _), counted) in WORKS.iter().zip(&mut counted) {
        let count = |rows: u32| instructions(program, &["rows", name, &rows.to_string()]);
        let (fewer, more) = (count(FEWER)?, count(MORE)?);
        *counted = more.saturating_sub(fewer) as f64 / f64::from(MORE - FEWER);
        table.add_row([(*name).to_owned(), format!("{counted:.1}")]);
    }
    writeln!(out, "{table}")?;
    let [bind_tuple, bind_struct, read_tuple, read_struct, _] = counted;
    for (what, tuple, structure) in [
        ("bound", bind_tuple, bind_struct),
        ("read", read_tuple, read_struct),
    ] {
        ensure!(
            structure <= tuple * (1.0 + TOLERANCE),
            "a struct is {what} with {structure:.1} instructions, a tuple with {tuple:.1}"
        );
    }
    Ok(())
}

/// The child's side: `work rows`.
pub fn main(arguments: &[String]) -> Result<()> {
    let [work, rows] = arguments else {
        bail!("rows takes two arguments");
    };
    let known = WORKS.iter().find(|(name, _)| name == work);
    let (_, work) = known.context("no such work")?;
    let rows: u32 = rows.parse()?;
    match work {
        Work::BindTuple => bind(rows, fields),
        Work::BindStruct => bind(rows, |number| {
            let (station, at, depth, note) = fields(number);
            Reading {
                station,
                at,
                depth,
                note,
            }
        }),
        Work::ReadTuple => read::<Fields<'_>>(&cells(rows, false)?, rows, false, |row| row.1),
        Work::ReadStruct => read::<Reading<'_>>(&cells(rows, false)?, rows, false, of_reading),
        Work::ReadStructTurned => read::<Reading<'_>>(&cells(rows, true)?, rows, true, of_reading),
    }
}

/// One of the fields, so that it counts as used; the others are looked at too.
fn of_reading(row: Reading<'_>) -> i32 {
    black_box((row.station, row.depth, row.note));
    row.at
}

fn fields(number: u32) -> Fields<'static> {
    let depth = f64::from(number);
    (number.into(), number.cast_signed(), depth, NOTE)
}

fn columns(is_turned: bool) -> Vec<ColumnSpec> {
    let column = |name: &str, ty| ColumnSpec {
        keyspace: "bench".into(),
        table: "readings".into(),
        name: name.into(),
        ty,
    };
    let mut columns = vec![
        column("station", ColumnType::BigInt),
        column("at", ColumnType::Int),
        column("depth", ColumnType::Double),
        column("note", ColumnType::Text),
    ];
    if is_turned {
        columns.reverse();
    }
    columns
}

/// Rows as they come: cells have the layout of bound values.
fn cells(rows: u32, is_turned: bool) -> Result<Vec<u8>> {
    let (columns, mut cells) = (columns(is_turned), Vec::new());
    for number in 0..rows {
        let (station, at, depth, note) = fields(number);
        let mut values = ValuesBuilder::new(&mut cells);
        match is_turned {
            false => (station, at, depth, note).encode_row(&columns, &mut values)?,
            true => (note, depth, at, station).encode_row(&columns, &mut values)?,
        }
    }
    Ok(cells)
}

fn read<'a, R: DecodeRow<'a>>(
    cells: &'a [u8],
    rows: u32,
    is_turned: bool,
    at: fn(R) -> i32,
) -> Result<()> {
    let columns = columns(is_turned);
    let layout = R::check_columns(&columns)?;
    let content = RowsContent::new(4, rows, cells)?;
    let sum = measured_window(|| {
        let mut sum = 0_i64;
        for row in content {
            sum += i64::from(at(R::decode_row(&layout, &columns, row?)?));
        }
        Ok(sum)
    })?;
    ensure!(
        sum == i64::from(rows) * i64::from(rows - 1) / 2,
        "{sum} is another sum"
    );
    Ok(())
}

fn bind<R: EncodeRow>(rows: u32, row: fn(u32) -> R) -> Result<()> {
    let columns = columns(false);
    let order = R::NAMES
        .map(|names| MarkerOrder::of(names, &columns))
        .transpose()?;
    let mut bytes = Vec::with_capacity(4096);
    measured_window(|| {
        for number in 0..rows {
            bytes.clear();
            let mut values = ValuesBuilder::new(&mut bytes);
            let row = black_box(row(number));
            match &order {
                Some(order) => row.encode_ordered(order, &columns, &mut values)?,
                None => row.encode_row(&columns, &mut values)?,
            }
        }
        Ok(())
    })
}

/// Callgrind finds this function by its name.
#[inline(never)]
fn measured_window<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    run()
}
