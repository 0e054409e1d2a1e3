//! Statements of a batch as the shell writes them.

use messina_core::drive::Batch;
use messina_core::error::Error;
use messina_core::wire::request::BatchKind;

use crate::finished::Finished;
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

fn take_word(input: &mut &[u8]) -> Result<u32, Error> {
    let (word, rest) = input.split_first_chunk().ok_or_else(broken_input)?;
    *input = rest;
    Ok(u32::from_le_bytes(*word))
}

/// A byte string, without the zeros behind it, which the last one need not have.
fn take_bytes<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], Error> {
    let len = usize::try_from(take_word(input)?).unwrap_or(usize::MAX);
    let (bytes, rest) = input.split_at_checked(len).ok_or_else(broken_input)?;
    let padding = len.wrapping_neg() & 3;
    *input = rest.get(padding..).unwrap_or_default();
    Ok(bytes)
}
