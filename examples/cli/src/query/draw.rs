//! Rows for people: a table or, if that is too wide for the terminal, one value a line.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use console::{measure_text_width, style};
use messina_core::types::CqlValue;

use super::execute::Executed;
use crate::value::to_text;

/// A column is not made narrower than this, nor wider than its widest value.
const COLUMN_MIN: usize = 14;

/// The rows of an execution.
pub(super) fn rows(executed: &Executed) -> String {
    let terminal = console::Term::stdout().size_checked();
    match terminal {
        Some((_, width)) if table_width_min(executed) > usize::from(width) => lines(executed),
        _ => table(executed).to_string(),
    }
}

/// What a table needs at least, its lines and spaces included.
fn table_width_min(executed: &Executed) -> usize {
    let column = |(at, (name, ty)): (usize, &(String, String))| {
        let cells = executed.rows.iter().filter_map(|row| row.get(at));
        let cells = cells.map(|value| measure_text_width(&to_text(value)));
        let header = measure_text_width(name).max(measure_text_width(ty));
        cells.max().unwrap_or(0).max(header).min(COLUMN_MIN) + 3
    };
    1 + executed
        .columns
        .iter()
        .enumerate()
        .map(column)
        .sum::<usize>()
}

fn table(executed: &Executed) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic);
    let header = executed
        .columns
        .iter()
        .map(|(name, ty)| Cell::new(format!("{name}\n{ty}")).set_alignment(CellAlignment::Center));
    table.set_header(header);
    for row in &executed.rows {
        let cell = |value: &CqlValue| {
            let cell = Cell::new(to_text(value));
            if is_number(value) {
                cell.set_alignment(CellAlignment::Right)
            } else {
                cell
            }
        };
        table.add_row(row.iter().map(cell));
    }
    table
}

/// A heading for each row, and a line for each of its values.
fn lines(executed: &Executed) -> String {
    let columns = executed.columns.iter();
    let width = |text: fn(&(String, String)) -> &String| {
        let widths = columns
            .clone()
            .map(|column| measure_text_width(text(column)));
        widths.max().unwrap_or(0)
    };
    let (names, types) = (
        width(|column| &column.0),
        width(|column| &column.1).min(TYPE_MAX),
    );
    let mut lines = Vec::new();
    for (at, row) in executed.rows.iter().enumerate() {
        lines.push(style(format!("row {}", at + 1)).bold().to_string());
        for ((name, ty), value) in executed.columns.iter().zip(row) {
            let ty = style(format!("{ty:<types$}")).dim();
            lines.push(format!("  {name:<names$}  {ty}  {}", to_text(value)));
        }
    }
    lines.join("\n")
}

/// Types longer than this push their own line only.
const TYPE_MAX: usize = 20;

const fn is_number(value: &CqlValue) -> bool {
    matches!(
        value,
        CqlValue::BigInt(_)
            | CqlValue::Counter(_)
            | CqlValue::Decimal(_)
            | CqlValue::Double(_)
            | CqlValue::Float(_)
            | CqlValue::Int(_)
            | CqlValue::SmallInt(_)
            | CqlValue::TinyInt(_)
            | CqlValue::Varint(_)
    )
}
