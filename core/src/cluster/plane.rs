//! The control plane that a session's configuration asks for, under one interface.

use alloc::vec::Vec;

#[cfg(any(test, feature = "topology"))]
use super::engine::Engine;
use super::prepared::PreparedStatement;
use super::single::Single;
use super::{Input, Output, Status};
use crate::config::Config;
#[cfg(any(test, feature = "topology"))]
use crate::config::Routing;
use crate::routing::{TabletStore, View};
use crate::sync::Shared;
use crate::target::{Security, SteeringKind};
use crate::time::Instant;

/// The control plane of a session.
#[derive(Debug)]
#[cfg_attr(
    any(test, feature = "topology"),
    expect(
        clippy::large_enum_variant,
        reason = "there is one for a session, and it stays where it is"
    )
)]
pub(crate) enum ControlPlane {
    #[cfg(any(test, feature = "topology"))]
    Full(Engine),
    Single(Single),
}

/// Does the same with whichever it is.
macro_rules! each {
    ($plane:expr, $inner:ident => $action:expr) => {
        match $plane {
            #[cfg(any(test, feature = "topology"))]
            ControlPlane::Full($inner) => $action,
            ControlPlane::Single($inner) => $action,
        }
    };
}

impl ControlPlane {
    /// Begins to reach the contact points at once. A warm start is of no use any more afterwards.
    pub(crate) fn new(
        config: Shared<Config>,
        steering: SteeringKind,
        security: Security,
        seed: u64,
        now: Instant,
        warm_start: Option<super::WarmStart>,
    ) -> Self {
        #[cfg(any(test, feature = "topology"))]
        if config.routing == Routing::Full {
            let engine = Engine::with_warm_start(config, steering, security, seed, now, warm_start);
            return Self::Full(engine);
        }
        let _ = (steering, security);
        Self::Single(Single::new(config, seed, now, warm_start.as_ref()))
    }

    pub(crate) fn handle(&mut self, now: Instant, input: Input) {
        each!(self, plane => plane.handle(now, input));
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        each!(self, plane => plane.handle_timeout(now));
    }

    pub(crate) fn poll(&mut self) -> Option<Output> {
        each!(self, plane => plane.poll())
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        each!(self, plane => plane.poll_timeout())
    }

    pub(crate) fn view(&self) -> Shared<View> {
        each!(self, plane => plane.view())
    }

    pub(crate) fn tablets(&self) -> TabletStore {
        each!(self, plane => plane.tablets())
    }

    pub(crate) fn status(&self) -> Status {
        each!(self, plane => plane.status())
    }

    pub(crate) fn take_statements(&mut self) -> Vec<Shared<PreparedStatement>> {
        each!(self, plane => plane.take_statements())
    }

    /// Whether the session lives on what an earlier one knew of the schema.
    pub(crate) fn is_warm(&self) -> bool {
        match self {
            #[cfg(any(test, feature = "topology"))]
            Self::Full(engine) => engine.is_warm(),
            // It never learns of the schema, so nothing comes in place of that.
            Self::Single(_) => true,
        }
    }
}
