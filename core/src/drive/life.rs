//! How far a session has come, and who waits for it to come further.
//!
//! A caller that waits holds one place, by [`Watch`] or [`Settling`], and gives it back when it is
//! dropped; so what is kept here is bounded by the callers that live.

use alloc::vec::Vec;
use core::task::{Context, Poll, Waker};

use crate::cluster::SettleId;
use crate::error::Error;
use crate::sync::{Mutex, assert_unlocked};

/// The life of a session.
#[derive(Debug)]
pub(crate) struct Life {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stage: Stage,
    settle_next: u32,
    /// Schema waits of living callers; once they have ended, whether all nodes agreed.
    settling: Vec<(SettleId, Option<bool>)>,
    /// One waker for each living [`Watch`] that waits.
    waiting: Vec<(u64, Waker)>,
    watch_next: u64,
}

#[derive(Clone, Debug)]
enum Stage {
    Starting,
    Ready,
    Over(Error),
}

impl Life {
    pub(super) fn new() -> Self {
        let state = State {
            stage: Stage::Starting,
            settle_next: 0,
            settling: Vec::new(),
            waiting: Vec::new(),
            watch_next: 0,
        };
        Self {
            state: Mutex::new(state),
        }
    }

    pub(super) fn set_ready(&self) {
        self.change(|state| {
            if matches!(state.stage, Stage::Starting) {
                state.stage = Stage::Ready;
            }
        });
    }

    pub(super) fn set_over(&self, error: Error) {
        self.change(|state| {
            if !matches!(state.stage, Stage::Over(_)) {
                state.stage = Stage::Over(error);
            }
        });
    }

    pub(super) fn set_settled(&self, id: SettleId, agreed: bool) {
        self.change(|state| {
            // A caller that gave up has taken its place away.
            let place = state
                .settling
                .iter_mut()
                .find(|(settling, _)| *settling == id);
            if let Some((_, outcome)) = place {
                *outcome = Some(agreed);
            }
        });
    }

    /// A place for one wait for the schema; the caller tells the control plane its id.
    pub(super) fn settle(&self) -> Result<Settling<'_>, Error> {
        let id = self.state.with(|state| {
            if let Stage::Over(error) = &state.stage {
                return Err(error.clone());
            }
            state.settle_next = state.settle_next.wrapping_add(1);
            let id = SettleId(state.settle_next);
            state.settling.push((id, None));
            Ok(id)
        });
        let id = id.map_err(|_| poisoned())??;
        let watch = self.watch();
        Ok(Settling { watch, id })
    }

    /// Watches how far the session has come.
    pub(crate) const fn watch(&self) -> Watch<'_> {
        Watch {
            life: self,
            place: None,
        }
    }

    /// Why the session cannot be used, if it cannot.
    pub(crate) fn over(&self) -> Option<Error> {
        let outcome = self.state.with(|state| match &state.stage {
            Stage::Starting | Stage::Ready => None,
            Stage::Over(error) => Some(error.clone()),
        });
        outcome.unwrap_or_else(|_| Some(poisoned()))
    }

    /// Callers that wait, and those of them that wait for the schema.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        let counts = |state: &mut State| (state.waiting.len(), state.settling.len());
        self.state.with(counts).unwrap()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let outcome = self.state.with(|state| {
            change(state);
            core::mem::take(&mut state.waiting)
        });
        if let Ok(waiting) = outcome {
            assert_unlocked();
            waiting.into_iter().for_each(|(_, waker)| waker.wake());
        }
    }
}

/// A caller that waits for the session to come further. Dropping it forgets its waker.
pub(crate) struct Watch<'a> {
    life: &'a Life,
    place: Option<u64>,
}

impl Watch<'_> {
    /// Whether the session can be used.
    pub(crate) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.poll(cx, |state| match &state.stage {
            Stage::Starting => None,
            Stage::Ready => Some(Ok(())),
            Stage::Over(error) => Some(Err(error.clone())),
        })
    }

    /// Whether the session has ended.
    pub(crate) fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.poll(cx, |state| match &state.stage {
            Stage::Starting | Stage::Ready => None,
            Stage::Over(_) => Some(Ok(())),
        })
    }

    fn poll<R>(
        &mut self,
        cx: &mut Context<'_>,
        look: impl FnOnce(&mut State) -> Option<Result<R, Error>>,
    ) -> Poll<Result<R, Error>> {
        let (waker, held) = (cx.waker().clone(), self.place);
        let outcome = self.life.state.with(|state| {
            if let Some(outcome) = look(state) {
                return (Poll::Ready(outcome), held, Some(waker));
            }
            let place = held.unwrap_or(state.watch_next);
            if held.is_none() {
                state.watch_next = state.watch_next.wrapping_add(1);
            }
            let unused = match state.waiting.iter_mut().find(|(id, _)| *id == place) {
                Some((_, held)) => Some(core::mem::replace(held, waker)),
                None => {
                    state.waiting.push((place, waker));
                    None
                }
            };
            (Poll::Pending, Some(place), unused)
        });
        match outcome {
            Ok((poll, place, _unused)) => {
                self.place = place;
                poll
            }
            Err(_) => Poll::Ready(Err(poisoned())),
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let unused = self.life.state.with(|state| {
            let found = state.waiting.iter().position(|(id, _)| *id == place)?;
            Some(state.waiting.swap_remove(found))
        });
        drop(unused);
    }
}

/// A caller that waits for the schema to settle. Dropping it takes its place away.
pub(crate) struct Settling<'a> {
    watch: Watch<'a>,
    id: SettleId,
}

impl Settling<'_> {
    pub(super) const fn id(&self) -> SettleId {
        self.id
    }

    /// Whether all nodes agreed on the schema.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, Error>> {
        let id = self.id;
        self.watch.poll(cx, |state| {
            if let Stage::Over(error) = &state.stage {
                return Some(Err(error.clone()));
            }
            let mut places = state.settling.iter();
            places.find(|(settling, _)| *settling == id)?.1.map(Ok)
        })
    }
}

impl Drop for Settling<'_> {
    fn drop(&mut self) {
        let id = self.id;
        let _ = self.watch.life.state.with(|state| {
            state.settling.retain(|(settling, _)| *settling != id);
        });
    }
}

fn poisoned() -> Error {
    Error::bug("a session's lock is poisoned")
}
