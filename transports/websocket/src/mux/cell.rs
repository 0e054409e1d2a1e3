//! What the links of one tunnel share with the pump that carries it. Not generic.

use alloc::vec::Vec;
use core::task::Waker;

use messina_core::error::{LinkError, LinkErrorKind};
use messina_core::time::Instant;

use crate::sync::Lock;
use crate::tunnel::{ChannelId, Limits, Reason, Tunnel};

/// One tunnel, from the first wish for a channel until its last link is dropped.
#[derive(Debug)]
pub(super) struct Cell(Lock<State>);

#[derive(Debug)]
pub(super) struct State {
    pub(super) tunnel: Tunnel,
    pub(super) phase: Phase,
    /// When the relay has to have sent anything: it answers every `open` at once.
    pub(super) answer_due: Option<Instant>,
    /// The tasks of channels, sorted by channel.
    wakers: Vec<(ChannelId, Waker)>,
    pump: Option<Waker>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    /// The link to the relay is being opened.
    Connecting,
    Open,
    Ended(LinkError),
}

impl Cell {
    pub(super) fn new(limits: Limits) -> Self {
        Self(Lock::new(State {
            tunnel: Tunnel::client(limits),
            phase: Phase::Connecting,
            answer_due: None,
            wakers: Vec::new(),
            pump: None,
        }))
    }

    /// Changes the state on behalf of a link, then wakes whoever has to look.
    pub(super) fn with<R>(&self, action: impl FnOnce(&mut State) -> R) -> R {
        let (result, woken) = self.0.with(|state| {
            let result = action(state);
            let mut woken = state.take_changed();
            if state.tunnel.output_len() > 0 {
                woken.extend(state.pump.take());
            }
            (result, woken)
        });
        woken.into_iter().for_each(Waker::wake);
        result
    }

    /// The same on behalf of the pump, which is awake.
    pub(super) fn carry<R>(&self, action: impl FnOnce(&mut State) -> R) -> R {
        let (result, woken) = self.0.with(|state| (action(state), state.take_changed()));
        woken.into_iter().for_each(Waker::wake);
        result
    }

    /// The same for a task that goes to sleep if `action` says so: its waker is kept.
    pub(super) fn with_waker<R>(
        &self,
        id: ChannelId,
        waker: &Waker,
        action: impl FnOnce(&mut State) -> Option<R>,
    ) -> Option<R> {
        // Cloned and dropped outside the lock.
        let mut waker = Some(waker.clone());
        let mut old = None;
        self.with(|state| {
            let result = action(state);
            if result.is_none() {
                old = state.keep_waker(id, waker.take());
            }
            result
        })
    }

    /// The pump is about to look at everything.
    pub(super) fn set_pump(&self, waker: &Waker) {
        let waker = Some(waker.clone());
        let old = self
            .0
            .with(|state| core::mem::replace(&mut state.pump, waker));
        drop(old);
    }

    pub(super) fn wake_pump(&self) {
        let pump = self.0.with(|state| state.pump.take());
        if let Some(pump) = pump {
            pump.wake();
        }
    }

    /// The link to the relay is open.
    pub(super) fn handle_open(&self) {
        let woken = self.0.with(|state| {
            state.phase = Phase::Open;
            core::mem::take(&mut state.wakers)
        });
        woken.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// The link to the relay failed or ended.
    pub(super) fn handle_end(&self, error: LinkError) {
        self.carry(|state| {
            if !matches!(state.phase, Phase::Ended(_)) {
                state.phase = Phase::Ended(error);
                state.tunnel.handle_lost();
            }
        });
    }

    /// Whether new channels may be opened here.
    pub(super) fn is_usable(&self) -> bool {
        self.0
            .with(|state| !matches!(state.phase, Phase::Ended(_)) && !state.tunnel.is_draining())
    }

    /// Whether no channel is left.
    pub(super) fn is_unused(&self) -> bool {
        self.0.with(|state| state.tunnel.channel_count() == 0)
    }

    /// When the tunnel counts as dead if nothing comes.
    pub(super) fn answer_due(&self) -> Option<Instant> {
        self.0.with(|state| state.answer_due)
    }

    /// Forgets a channel and its waker.
    pub(super) fn release(&self, id: ChannelId) {
        let waker = self.with(|state| {
            state.tunnel.release(id);
            state.take_waker(id)
        });
        drop(waker);
        // It may have been the last one.
        self.wake_pump();
    }
}

impl State {
    /// The error of the link to the relay, if that has ended.
    pub(super) const fn ended(&self) -> Option<LinkError> {
        match self.phase {
            Phase::Ended(error) => Some(error),
            _ => None,
        }
    }

    /// The error that a link gets for the reason of its channel's end.
    pub(super) fn link_error(&self, reason: Reason) -> LinkError {
        match (reason, self.phase) {
            (Reason::Lost, Phase::Ended(error)) => error,
            _ => link_error(reason),
        }
    }

    fn take_changed(&mut self) -> Vec<Waker> {
        let mut woken = Vec::new();
        while let Some(id) = self.tunnel.poll_changed() {
            woken.extend(self.take_waker(id));
        }
        woken
    }

    fn take_waker(&mut self, id: ChannelId) -> Option<Waker> {
        let found = self.wakers.binary_search_by_key(&id, |entry| entry.0);
        found.ok().map(|at| self.wakers.remove(at).1)
    }

    /// Keeps the waker of a task that waits; gives back the one from before.
    fn keep_waker(&mut self, id: ChannelId, waker: Option<Waker>) -> Option<Waker> {
        let waker = waker?;
        match self.wakers.binary_search_by_key(&id, |entry| entry.0) {
            Ok(at) => {
                let entry = self.wakers.get_mut(at)?;
                Some(core::mem::replace(&mut entry.1, waker))
            }
            Err(at) => {
                self.wakers.insert(at, (id, waker));
                None
            }
        }
    }
}

/// What a reason of the relay is to core, the relay's word with it.
pub const fn link_error(reason: Reason) -> LinkError {
    let kind = match reason {
        Reason::Refused | Reason::Forbidden => LinkErrorKind::Refused,
        Reason::Unreachable => LinkErrorKind::Unreachable,
        Reason::TimedOut => LinkErrorKind::TimedOut,
        Reason::Resolve => LinkErrorKind::Resolve,
        Reason::Reset | Reason::Lost => LinkErrorKind::Reset,
        Reason::Other => LinkErrorKind::Other,
        _ => LinkErrorKind::ClosedByPeer,
    };
    LinkError::said(kind, reason.close_code(), reason.as_str())
}
