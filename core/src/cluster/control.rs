//! The control role: which connection asks and hears events, and when it reads again.
//!
//! Events are hints: addresses in them are not where clients connect, and they repeat. So they
//! only make a reading due, a little later, merged with all that come until then; between two
//! readings of the same kind passes at least a second. A question that fails moves the role to
//! another connection, with back-off, so that one bad node costs one timeout.

use core::time::Duration;

use super::ConnectionId;
use super::client_routes::CAN_FOLLOW;
use super::discovery::{Discovery, Scope};
use super::reconnect::Backoff;
use crate::rng::SmallRng;
use crate::routing::NodeIdx;
use crate::time::Instant;
use crate::wire::response::EventKind;

/// The control role.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) role: Role,
    pub(super) discovery: Option<Discovery>,
    pub(super) backoff: Backoff,
    /// The node that failed last: another one is preferred.
    pub(super) avoid: Option<NodeIdx>,
    /// When the role was taken up.
    pub(super) since: Instant,
    topology: Schedule,
    schema: Schedule,
    routes: Schedule,
    refresh_interval: Duration,
    periodic_at: Instant,
}

/// Who has the role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Nobody, since then.
    Vacant(Instant),
    /// A connection that is being registered for events.
    Registering(ConnectionId),
    /// This connection.
    Held(ConnectionId),
}

/// When one kind of reading is due.
#[derive(Clone, Copy, Debug, Default)]
struct Schedule {
    due_at: Option<Instant>,
    not_before: Option<Instant>,
}

impl Control {
    pub(super) fn new(
        now: Instant,
        reconnect_base: Duration,
        reconnect_max: Duration,
        refresh_interval: Duration,
    ) -> Self {
        Self {
            role: Role::Vacant(now),
            discovery: None,
            backoff: Backoff::new(reconnect_base, reconnect_max),
            avoid: None,
            since: now,
            topology: Schedule::default(),
            schema: Schedule::default(),
            routes: Schedule::default(),
            refresh_interval,
            periodic_at: Instant::FAR_FUTURE,
        }
    }

    /// The connection that has the role, or is about to.
    pub(super) const fn connection(&self) -> Option<ConnectionId> {
        match self.role {
            Role::Vacant(_) => None,
            Role::Registering(id) | Role::Held(id) => Some(id),
        }
    }

    /// The connection that questions can go to.
    pub(super) const fn held(&self) -> Option<ConnectionId> {
        match self.role {
            Role::Held(id) => Some(id),
            Role::Vacant(_) | Role::Registering(_) => None,
        }
    }

    /// Something may have changed: read soon, together with what else changes until then.
    pub(super) fn note_change(&mut self, scope: Scope, now: Instant, rng: &mut SmallRng) {
        let jitter = Duration::from_micros(rng.below(DEBOUNCE_JITTER_US));
        let at = now.saturating_add(DEBOUNCE.saturating_add(jitter));
        if scope.topology {
            self.topology.note(at);
        }
        if scope.schema {
            self.schema.note(at);
        }
        if scope.routes && CAN_FOLLOW {
            self.routes.note(at);
        }
    }

    /// Whether something is known to have changed, or is waited for.
    pub(super) fn is_noted(&self) -> bool {
        self.topology.due_at.is_some() || self.schema.due_at.is_some()
    }

    /// Somebody waits for it: read as soon as the role is held and free.
    pub(super) fn demand(&mut self, scope: Scope, now: Instant) {
        for schedule in self.schedules(scope) {
            *schedule = Schedule {
                due_at: Some(now),
                not_before: None,
            };
        }
    }

    /// What is to be read now, if anything; marks it as begun.
    pub(super) fn begin_due(&mut self, now: Instant) -> Option<Scope> {
        let periodic = now >= self.periodic_at;
        let topology = self.topology.is_due(now) || periodic;
        let scope = Scope {
            topology,
            schema: self.schema.is_due(now) || periodic,
            routes: topology || (CAN_FOLLOW && self.routes.is_due(now)),
        };
        if scope == Scope::default() {
            return None;
        }
        if periodic {
            // Should it fail, whoever abandons it makes it due again in a way that waits.
            self.periodic_at = now.saturating_add(self.refresh_interval);
        }
        for schedule in self.schedules(scope) {
            schedule.due_at = None;
        }
        Some(scope)
    }

    pub(super) fn read_ended(&mut self, scope: Scope, now: Instant) {
        for schedule in self.schedules(scope) {
            schedule.not_before = Some(now.saturating_add(SPACING));
        }
        if scope == Scope::ALL || self.periodic_at == Instant::FAR_FUTURE {
            self.periodic_at = now.saturating_add(self.refresh_interval);
        }
    }

    pub(super) fn next_at(&self, consider: &mut dyn FnMut(Option<Instant>)) {
        if self.held().is_some() && self.discovery.is_none() {
            consider(self.topology.due());
            consider(self.schema.due());
            if CAN_FOLLOW {
                consider(self.routes.due());
            }
            consider(Some(self.periodic_at).filter(|at| *at != Instant::FAR_FUTURE));
        }
        if matches!(self.role, Role::Vacant(_)) {
            consider(self.backoff.retry_at());
        }
    }

    fn schedules(&mut self, scope: Scope) -> impl Iterator<Item = &mut Schedule> {
        let all = [
            scope.topology.then_some(&mut self.topology),
            scope.schema.then_some(&mut self.schema),
            (scope.routes && CAN_FOLLOW).then_some(&mut self.routes),
        ];
        all.into_iter().flatten()
    }
}

impl Schedule {
    /// The first to note it sets the time; later ones ride along.
    fn note(&mut self, at: Instant) {
        self.due_at.get_or_insert(at);
    }

    fn due(&self) -> Option<Instant> {
        let due_at = self.due_at?;
        Some(self.not_before.map_or(due_at, |at| at.max(due_at)))
    }

    fn is_due(&self, now: Instant) -> bool {
        self.due().is_some_and(|at| at <= now)
    }
}

/// What the control connection registers for.
pub(super) const EVENTS: &[&str] = &[
    EventKind::TopologyChange.name(),
    EventKind::StatusChange.name(),
    EventKind::SchemaChange.name(),
];

/// What it registers for besides if client routes are followed.
pub(super) const ROUTE_EVENTS: &[&str] = &[EventKind::ClientRoutesChange.name()];

/// From an event to the reading it causes, at least; and what is added at most.
const DEBOUNCE: Duration = Duration::from_millis(200);
const DEBOUNCE_JITTER_US: u64 = 300_000;
/// Between two readings of the same kind.
const SPACING: Duration = Duration::from_secs(1);
