//! Results as the shell is told of them.

use messina_core::drive::QueryResult;
use messina_core::error::Error;
use messina_core::routing::ShardIdx;
use messina_core::types::{ColumnSpec, DecodeRow, ResultMetadata, RowError};
use messina_core::wire::response::RawRow;

use crate::message::{Effect, ResultBits};
use crate::outbox::{NONE, Outbox, word};
use crate::type_text::type_text;

/// Columns that the shell was told for a statement.
pub(crate) type ToldColumns = Option<ResultMetadata>;

impl Outbox {
    /// A result with everything that the shell keeps of it.
    pub(crate) fn put_result(
        &mut self,
        request: u32,
        statement: Option<(u32, &mut ToldColumns)>,
        result: &QueryResult,
    ) -> Result<(), Error> {
        let len = self.len();
        let written = self.try_put_result(request, statement, result);
        if written.is_err() {
            self.truncate(len);
        }
        written
    }

    fn try_put_result(
        &mut self,
        request: u32,
        statement: Option<(u32, &mut ToldColumns)>,
        result: &QueryResult,
    ) -> Result<(), Error> {
        let info = result.info();
        let applied = result.applied();
        let number = statement.as_ref().map_or(NONE, |(number, _)| *number);
        let columns = result.metadata().filter(|columns| match statement {
            Some((_, told)) => tell_anew(told, columns),
            None => true,
        });
        let paging_state = result.paging_state();
        let bit = |is_set: bool, bit: u32| if is_set { bit } else { 0 };
        let bits = u32::from(info.attempts)
            | bit(result.is_rows(), ResultBits::ROWS)
            | bit(columns.is_some(), ResultBits::COLUMNS)
            | bit(paging_state.is_some(), ResultBits::PAGING)
            | bit(!result.warnings().is_empty(), ResultBits::WARNINGS)
            | bit(applied.is_some(), ResultBits::CONDITIONAL)
            | bit(applied == Some(true), ResultBits::APPLIED)
            | bit(result.tracing_id().is_some(), ResultBits::TRACED);
        self.put(Effect::Result, request);
        self.put_word(bits);
        self.put_word(u32::from(info.node.value()));
        self.put_maybe(info.shard.map(ShardIdx::value));
        self.put_word(number);
        if let Some(columns) = columns {
            self.put_columns(columns.columns());
        }
        if let Some(state) = paging_state {
            self.put_bytes(state.as_bytes());
        }
        if !result.warnings().is_empty() {
            self.put_word(word(result.warnings().len()));
            for warning in result.warnings() {
                self.put_text(warning);
            }
        }
        if let Some(id) = result.tracing_id() {
            self.put_bytes(id.as_bytes());
        }
        if result.is_rows() {
            self.put_rows(result)?;
        }
        Ok(())
    }

    /// The cells are not looked at: the shell walks them when it makes a value.
    fn put_rows(&mut self, result: &QueryResult) -> Result<(), Error> {
        // Core refuses rows that the body cannot hold, by this.
        result.rows::<Cells>()?;
        self.put_word(word(result.row_count()));
        self.put_bytes(result.raw_cells());
        Ok(())
    }

    pub(crate) fn put_columns(&mut self, columns: &[ColumnSpec]) {
        self.put_word(word(columns.len()));
        for column in columns {
            self.put_text(&column.name);
            self.put_text(&type_text(&column.ty));
        }
    }
}

/// Whether the columns are others than those told before; they count as told then.
fn tell_anew(told: &mut ToldColumns, columns: &ResultMetadata) -> bool {
    let is_told = told.as_ref().is_some_and(|told| {
        core::ptr::eq(told.columns(), columns.columns()) || told.columns() == columns.columns()
    });
    if !is_told {
        *told = Some(columns.clone());
    }
    !is_told
}

/// Rows that stay what they are.
struct Cells;

impl<'a> DecodeRow<'a> for Cells {
    fn check_columns(_: &[ColumnSpec]) -> Result<(), RowError> {
        Ok(())
    }

    fn decode_row(_: &[ColumnSpec], _: RawRow<'a>) -> Result<Self, RowError> {
        Ok(Self)
    }
}
