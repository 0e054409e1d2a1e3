//! Statements of a batch as the shell writes them.

use messina_core::drive::Batch;
use messina_core::error::Error;
use messina_core::wire::request::BatchKind;

use crate::finished::Finished;
use crate::input::{take_bytes, take_word};
use crate::outbox::NONE;
use crate::settings::broken_input;
use crate::values::BoundValues;

/// Reads a batch; see [`message`](crate::message) for how it is laid out.
pub(crate) fn take_batch(
    kind: BatchKind,
    mut input: &[u8],
    finished: &Finished,
) -> Result<Batch, Error> {
    let mut batch = Batch::new(kind);
    while !input.is_empty() {
        let statement = take_word(&mut input)?;
        let count = u16::try_from(take_word(&mut input)?).map_err(|_| broken_input())?;
        let bytes = take_bytes(&mut input)?;
        if statement == NONE {
            let text = core::str::from_utf8(bytes).map_err(|_| broken_input())?;
            batch.push_text(text)?;
        } else {
            let prepared = finished.statement(statement)?;
            batch.push(&prepared, BoundValues { count, bytes })?;
        }
    }
    Ok(batch)
}
