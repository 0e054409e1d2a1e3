//! Which contact point is tried next, and when: in an order drawn anew for each walk, each with the
//! field to itself for a moment, and after a walk that failed with a pause that doubles.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use messina_core::config::{Config, DEFAULT_PORT};
use messina_core::error::{
    ConfigProblem, Error, ErrorKind, PeerIncompatible, PeerMisbehaved, TimeoutKind,
};
use messina_core::time::Instant;

/// A contact point.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Point {
    /// As it stands in messages.
    pub(super) fn text(&self) -> String {
        let (open, close) = match self.host.contains(':') {
            true => ("[", "]"),
            false => ("", ""),
        };
        let mut text = [open, &self.host, close, ":"].concat();
        put_number(&mut text, u32::from(self.port));
        text
    }
}

/// Appends the digits of a number.
pub(super) fn put_number(text: &mut String, number: u32) {
    if number >= 10 {
        put_number(text, number / 10);
    }
    text.push(char::from_digit(number % 10, 10).unwrap_or('0'));
}

/// Reads `HOST`, `HOST:PORT` and `[V6]:PORT`, separated by commas.
pub(crate) fn parse_points(list: &str) -> Result<Vec<Point>, Error> {
    let mut points = Vec::new();
    for text in list.as_bytes().split(|byte| *byte == b',') {
        let text = core::str::from_utf8(text.trim_ascii()).unwrap_or_default();
        points.push(parse_point(text).ok_or_else(|| bad_point(text))?);
    }
    Ok(points)
}

fn parse_point(text: &str) -> Option<Point> {
    let bytes = text.as_bytes();
    let colon = |place: usize| (text.get(..place), text.get(place.saturating_add(1)..));
    let last = bytes.iter().rposition(|byte| *byte == b':');
    let is_one = last == bytes.iter().position(|byte| *byte == b':');
    let (host, port) = match last {
        Some(place) if is_one || bytes.get(place.checked_sub(1)?) == Some(&b']') => {
            let (host, port) = colon(place);
            let port = port?.parse::<u16>().ok();
            (host?, port.filter(|port| *port > 0)?)
        }
        _ => (text, DEFAULT_PORT),
    };
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let is_v6 = bare.is_some() || !is_one;
    let host = bare.unwrap_or(host);
    let is_valid = |byte: u8| match is_v6 {
        true => byte.is_ascii_hexdigit() || byte == b':' || byte == b'.',
        false => byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'),
    };
    let is_host = !host.is_empty() && host.bytes().all(is_valid);
    is_host.then(|| Point {
        host: String::from(host),
        port,
    })
}

fn bad_point(text: &str) -> Error {
    let kind = ErrorKind::Config(ConfigProblem::ContactPoint);
    Error::with_text(kind, ["\"", text, "\" is not HOST or HOST:PORT"].concat())
}

/// The walks over the contact points.
#[derive(Debug)]
pub(super) struct Contact {
    pub(super) points: Vec<Point>,
    random: u64,
    /// What is left of the walk; none after the end of one.
    left: Vec<usize>,
    causes: Vec<(usize, Error)>,
    pub(super) is_walking: bool,
    /// No contact point could be reached when they were walked last.
    pub(super) has_failed: bool,
    deadline: Instant,
    /// When the next attempt may start beside those under way.
    next_at: Instant,
    /// When a walk may begin.
    retry_at: Instant,
    failures: u32,
}

impl Contact {
    pub(super) fn new(points: Vec<Point>, seed: u64) -> Self {
        Self {
            points,
            random: seed,
            left: Vec::new(),
            causes: Vec::new(),
            is_walking: false,
            has_failed: false,
            deadline: Instant::FAR_FUTURE,
            next_at: Instant::ZERO,
            retry_at: Instant::ZERO,
            failures: 0,
        }
    }

    /// Begins a walk, if it is time for one.
    pub(super) fn begin(&mut self, now: Instant, timeout: Duration) {
        if self.is_walking || now < self.retry_at {
            return;
        }
        self.is_walking = true;
        self.deadline = now.saturating_add(timeout);
        self.next_at = now;
        self.left = (0..self.points.len()).collect();
        for end in (1..self.left.len()).rev() {
            let other = self.below(u64::try_from(end).unwrap_or(0).saturating_add(1));
            self.left.swap(end, usize::try_from(other).unwrap_or(0));
        }
    }

    /// The point to be dialed now, and until when, while others are `under_way`.
    pub(super) fn next_point(
        &mut self,
        now: Instant,
        under_way: usize,
    ) -> Option<(usize, Instant)> {
        if now >= self.deadline {
            self.left.clear();
        }
        if !self.is_walking || (under_way > 0 && now < self.next_at) {
            return None;
        }
        let point = self.left.pop()?;
        self.next_at = now.saturating_add(STAGGER);
        Some((point, self.deadline))
    }

    /// An attempt ended without having told anything of the node: it is made anew at once.
    pub(super) fn try_again(&mut self, point: usize, now: Instant) {
        self.left.push(point);
        self.next_at = now;
    }

    /// An attempt failed. A login that was refused is refused everywhere.
    pub(super) fn handle_failed(&mut self, point: usize, error: Error) {
        if is_about_credentials(&error) {
            self.causes.clear();
            self.left.clear();
        }
        self.causes.push((point, error));
    }

    /// The same after it had been adopted: the others get fresh time.
    pub(super) fn handle_adopted_failed(&mut self, point: usize, error: Error, until: Instant) {
        self.handle_failed(point, error);
        self.deadline = until;
        self.next_at = Instant::ZERO;
    }

    /// Whether the walk is over without success.
    pub(super) fn is_exhausted(&self, under_way: usize) -> bool {
        self.is_walking && self.left.is_empty() && under_way == 0
    }

    /// The walk has failed; why.
    pub(super) fn end(&mut self, config: &Config, now: Instant) -> Error {
        (self.is_walking, self.has_failed) = (false, true);
        self.rest(config, now);
        let causes = core::mem::take(&mut self.causes);
        let Some((_, first)) = causes.first() else {
            return Error::unreachable(Vec::new());
        };
        let text = |point: usize| self.points.get(point).map(Point::text).unwrap_or_default();
        if causes.iter().all(|(_, cause)| cause.kind() == first.kind()) {
            let places: Vec<String> = causes.iter().map(|(point, _)| text(*point)).collect();
            return with_place(first.clone(), places.join(", "));
        }
        let place = |(point, cause)| with_place(cause, text(point));
        Error::unreachable(causes.into_iter().map(place).collect())
    }

    /// A connection takes requests.
    pub(super) fn succeeded(&mut self) {
        (self.is_walking, self.has_failed) = (false, false);
        self.causes.clear();
    }

    /// A connection that served since then is lost.
    pub(super) fn lost(&mut self, served_since: Instant, config: &Config, now: Instant) {
        if now.saturating_since(served_since) >= PROVEN_AFTER {
            self.failures = 0;
        }
        self.rest(config, now);
    }

    /// The next walk comes after a pause: from half of the base to the maximum.
    fn rest(&mut self, config: &Config, now: Instant) {
        // By way of an instant: the library's own way multiplies 128 bits.
        let micros = |duration| Instant::ZERO.saturating_add(duration).as_micros();
        let timeouts = &config.timeouts;
        let base = micros(timeouts.reconnect_base);
        // Without a multiplication of 128 bits, too.
        let exponent = self.failures.min(base.leading_zeros());
        let whole = base.checked_shl(exponent).unwrap_or(base);
        let whole = whole.min(micros(timeouts.reconnect_max));
        let half = whole / 2;
        let jitter = self.below(whole.saturating_sub(half).saturating_add(1));
        self.failures = self.failures.saturating_add(1);
        self.retry_at = now.saturating_add(Duration::from_micros(half.saturating_add(jitter)));
    }

    /// When something is to be begun, at the latest.
    pub(super) fn next_at(&self) -> Instant {
        match (self.is_walking, self.left.is_empty()) {
            (false, _) => self.retry_at,
            (true, false) => self.next_at,
            (true, true) => Instant::FAR_FUTURE,
        }
    }

    /// A number below `bound`.
    const fn below(&mut self, bound: u64) -> u64 {
        // A step of Marsaglia's xorshift64; its only flaw is a state of 0.
        let mut word = if self.random == 0 { 1 } else { self.random };
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        self.random = word;
        match (word >> 1).checked_rem(bound) {
            Some(below) => below,
            None => 0,
        }
    }
}

/// Whether a user or a password was refused.
pub(super) fn is_about_credentials(error: &Error) -> bool {
    use messina_core::wire::response::ErrorCode::BadCredentials;
    matches!(
        error.kind(),
        ErrorKind::Server(BadCredentials)
            | ErrorKind::PeerIncompatible(
                PeerIncompatible::CredentialsMissing | PeerIncompatible::Authentication
            )
    )
}

/// Whether a handshake may have failed because it took something of the node for granted.
pub(super) fn may_be_for_assumption(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Server(_)
        | ErrorKind::PeerMisbehaved(_)
        | ErrorKind::PeerIncompatible(PeerIncompatible::OfferChanged)
        | ErrorKind::Timeout(TimeoutKind::Handshake) => !is_about_credentials(error),
        ErrorKind::Link(error) => {
            use messina_core::error::LinkErrorKind::{ClosedByPeer, Reset};
            matches!(error.kind(), ClosedByPeer | Reset)
        }
        _ => false,
    }
}

/// Names the place where the error does not have a text of its own.
fn with_place(error: Error, place: String) -> Error {
    match error.kind() {
        ErrorKind::Link(_)
        | ErrorKind::Timeout(_)
        | ErrorKind::PeerMisbehaved(PeerMisbehaved::BadHeader) => {
            Error::with_text(error.kind(), place)
        }
        _ => error,
    }
}

/// How long one attempt has the field to itself.
const STAGGER: Duration = Duration::from_millis(250);

/// How long a connection must last to count as a success.
const PROVEN_AFTER: Duration = Duration::from_secs(10);
