//! The link that the cluster is read over: events are registered for, and what the plane wants to
//! know is asked, one question at a time.

use core::time::Duration;

use bytes::BytesMut;

use super::answer;
use super::machine::Machine;
use super::plane::{Changed, Question};
use crate::conn::{Answer, RequestHead, SlotKey};
use crate::error::{Error, ErrorKind};
use crate::time::Instant;
use crate::wire::Opcode;
use crate::wire::request::{Register, RequestBody as _};

#[derive(Debug)]
pub(super) struct Control {
    link: Option<u32>,
    stage: Stage,
    /// No question is asked before.
    ask_at: Instant,
    /// The link had no room for the question that is due; when it has, something has come.
    is_blocked: bool,
    /// When the nodes are read again, whatever events say.
    refresh_at: Instant,
}

#[derive(Debug)]
enum Stage {
    ToRegister,
    Registering(SlotKey),
    Resting,
    Asked(SlotKey, Question),
}

impl Control {
    pub(super) const fn new() -> Self {
        Self {
            link: None,
            stage: Stage::ToRegister,
            ask_at: Instant::ZERO,
            is_blocked: false,
            refresh_at: Instant::FAR_FUTURE,
        }
    }

    pub(super) fn handle_lost(&mut self, link: u32) {
        if self.link == Some(link) {
            *self = Self::new();
        }
    }

    const fn may_ask(&self) -> bool {
        matches!(self.stage, Stage::Resting)
    }

    /// What is asked over this link now.
    pub(super) fn asked(&self, link: u32) -> Option<SlotKey> {
        match self.stage {
            Stage::Registering(key) | Stage::Asked(key, _) if self.link == Some(link) => Some(key),
            _ => None,
        }
    }
}

impl Machine {
    /// Goes on with what is to be known of the cluster; whether that makes another pass worth it.
    #[inline(never)]
    pub(super) fn advance_control(&mut self) -> bool {
        if self.control.link.is_none() {
            self.choose_control(None);
        }
        let mut has_changed = false;
        let mut control = None;
        for at in 0..self.links.len() {
            let Some(link) = self.links.get_mut(at) else {
                break;
            };
            let is_control = self.control.link == Some(link.number);
            if is_control {
                control = Some(at);
            }
            let events = core::mem::take(&mut link.events);
            for body in events.iter().filter(|_| is_control) {
                has_changed = true;
                self.handle_event(body.as_slice());
            }
        }
        let Some(link) = control.and_then(|at| self.links.get_mut(at)) else {
            return has_changed;
        };
        let (now, timeout) = (self.now, self.config.timeouts.control);
        let give_up_at = || now.saturating_add(timeout);
        match self.control.stage {
            Stage::ToRegister => {
                let register = Register { events: &EVENTS };
                let head = RequestHead::new(Opcode::Register);
                let mut body = BytesMut::new();
                let written = register.put(self.config.protocol.first(), &mut body);
                if written.is_ok()
                    && let Ok(key) = link.submit(CONTROL, give_up_at(), head, &[&body])
                {
                    self.control.stage = Stage::Registering(key);
                }
            }
            Stage::Resting => {
                if self.now >= self.control.refresh_at {
                    self.control.refresh_at = Instant::FAR_FUTURE;
                    self.plane.read_again();
                    self.plane.forgive();
                }
                if self.now >= self.control.ask_at && self.plane.is_due() {
                    let agreed = link.agreed_with_room();
                    self.control.is_blocked = agreed.is_none();
                    let head = RequestHead::new(Opcode::Query);
                    let mut body = BytesMut::new();
                    if let Some(agreed) = agreed
                        && let Some(question) = self.plane.put_question(&agreed, &mut body)
                        && let Ok(key) = link.submit(CONTROL, give_up_at(), head, &[&body])
                    {
                        self.control.stage = Stage::Asked(key, question);
                    }
                }
            }
            Stage::Registering(_) | Stage::Asked(..) => {}
        }
        has_changed
    }

    fn handle_event(&mut self, body: &[u8]) {
        let was_due = self.plane.is_due();
        let changed = self.plane.handle_event(body);
        if let Changed::Status(member, true) = changed
            && let Some(member) = self.plane.member_mut(member)
        {
            // It need not be waited for.
            member.trouble.until = Instant::ZERO;
        }
        // Nodes tell of each other before they know it themselves. The schema does not wait.
        let is_of_schema = body
            .get(2..)
            .is_some_and(|kind| kind.starts_with(b"SCHEMA"));
        if !was_due && !is_of_schema {
            self.control.ask_at = self.now.saturating_add(EVENT_PAUSE);
        }
    }

    /// When there is something to be asked, at the latest.
    pub(super) fn control_next_at(&self) -> Instant {
        let is_waited_for = self.control.may_ask() && !self.control.is_blocked;
        let due = match is_waited_for && self.plane.is_due() {
            true => self.control.ask_at,
            false => Instant::FAR_FUTURE,
        };
        due.min(self.control.refresh_at)
    }

    /// The node has answered.
    #[inline(never)]
    pub(super) fn handle_control(&mut self, at: usize, outcome: Result<Answer, Error>) {
        match (
            core::mem::replace(&mut self.control.stage, Stage::Resting),
            outcome,
        ) {
            (Stage::Asked(_, question), Ok(answer)) => {
                let read = answer::message(&answer)
                    .and_then(|body| self.plane.handle_answer(question, body));
                match read {
                    Ok(changed) => self.handle_read(at, changed),
                    Err(_) => self.move_control(),
                }
            }
            (Stage::Asked(_, question), Err(error)) => {
                self.has_read = true;
                let gets_along = self.plane.handle_failure(question, &error);
                self.control.ask_at = self.now.saturating_add(EVENT_PAUSE);
                if !gets_along && !is_passing(&error) {
                    self.move_control();
                }
            }
            // A node without events, a proxy perhaps, is read again from time to time.
            (_, Err(error)) if !matches!(error.kind(), ErrorKind::Server(_)) => {
                self.move_control();
            }
            _ => {}
        }
    }

    fn handle_read(&mut self, at: usize, changed: Changed) {
        match changed {
            Changed::Local(member) => {
                if let Some(link) = self.links.get_mut(at) {
                    link.member = member;
                }
            }
            Changed::Members => {
                self.has_read = true;
                let pause = self.config.timeouts.refresh_interval;
                self.control.refresh_at = self.now.saturating_add(pause);
                for at in 0..self.links.len() {
                    self.place_link(at);
                }
            }
            Changed::Status(..) | Changed::Nothing => {}
        }
        self.place_link(at);
    }

    fn choose_control(&mut self, but: Option<u32>) {
        let mut links = self.links.iter();
        if let Some(link) = links.find(|link| link.serves() && Some(link.number) != but)
            && let Some(agreed) = &link.agreed
        {
            self.control.link = Some(link.number);
            self.plane.restart(agreed);
        }
    }

    /// Another link may do better; if there is none, the same later.
    fn move_control(&mut self) {
        self.has_read = true;
        let held = self.control.link;
        self.control = Control::new();
        self.control.ask_at = self.now.saturating_add(EVENT_PAUSE);
        self.choose_control(held);
    }
}

/// Whether the same node may be asked again.
fn is_passing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Timeout(_))
}

/// The caller of our own questions; no request has that number.
pub(super) const CONTROL: u32 = u32::MAX - 1;

const EVENTS: [&str; 3] = ["TOPOLOGY_CHANGE", "STATUS_CHANGE", "SCHEMA_CHANGE"];

/// From an event to the question for what it was about.
const EVENT_PAUSE: Duration = Duration::from_secs(1);
