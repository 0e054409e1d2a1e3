//! Replays a trace through the whole driver for small images: contact points, handshakes, links to members
//! and shards, what is read of the cluster, requests with all that is done for them.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::num::NonZeroU16;
use core::time::Duration;

use bytes::BytesMut;
use messina_core::Shared;
use messina_core::compact::{BatchPart, Done, Host, Machine, NONE, RequestOptions, Statement};
use messina_core::config::{Config, PoolSize, Routing};
use messina_core::conn::auth::{Authenticator, PlainAuthenticator};
use messina_core::conn::extensions::TabletsRouting;
use messina_core::conn::framer::FrameLimits;
use messina_core::error::{Error, LinkError, LinkErrorKind};
use messina_core::target::{Endpoint, Steering, SteeringKind, Target};
use messina_core::time::{Instant, UnixMicros};
use messina_core::wire::request::BatchKind;
use messina_core::wire::{EncodedValues, FrameHeader};

use crate::answer;
use crate::log::{Hex, Log, Operation};
use crate::step::{Cell, Options, Step, number, values};

/// The machine, and what stands around it.
#[derive(Debug)]
pub struct Player {
    now: Instant,
    /// What 0 on the clock is in the world.
    wall: Option<i64>,
    seed: u64,
    /// Until it starts.
    config: Option<Box<Config>>,
    machine: Option<Machine>,
    desk: Desk,
    /// Bytes that the network takes yet, and how many of them at once.
    window: usize,
    piece: usize,
    told_deadline: Instant,
}

/// Beneath and above the machine.
#[derive(Debug)]
struct Desk {
    steering: SteeringKind,
    /// Requests of the machine, by the numbers of the trace.
    labels: BTreeMap<u32, u32>,
    statements: BTreeMap<u32, u32>,
    idempotent: BTreeMap<u32, bool>,
    has_room: bool,
    lines: Log,
}

impl Player {
    /// A driver that is set as its presets `server` or `mcu` say.
    #[must_use]
    pub fn new(words: &[&str]) -> Self {
        let mut config = match words.first() {
            Some(&"mcu") => Config::mcu(),
            _ => Config::server(),
        };
        config.routing = match words.get(1) {
            Some(&"single") => Routing::Single,
            _ => Routing::Full,
        };
        Self {
            now: Instant::ZERO,
            wall: None,
            seed: 1,
            config: Some(Box::new(config)),
            machine: None,
            desk: Desk {
                steering: SteeringKind::None,
                labels: BTreeMap::new(),
                statements: BTreeMap::new(),
                idempotent: BTreeMap::new(),
                has_room: true,
                lines: Log::new(),
            },
            window: usize::MAX,
            piece: usize::MAX,
            told_deadline: Instant::FAR_FUTURE,
        }
    }

    /// Takes a step and does all that follows from it.
    pub fn apply(&mut self, step: &Step<'_>, log: &mut Log) {
        if let Step::Setting(name, words) = step {
            if self.set(name, words).is_none() {
                log.line(format_args!("setting {name} cannot be read"));
            }
            return;
        }
        if let Step::Start(label) = step
            && let Some(config) = self.config.take()
        {
            let machine = self.machine.insert(Machine::new(*config, self.seed));
            let number = machine.start();
            self.desk.labels.insert(number, *label);
        }
        let Some(mut machine) = self.machine.take() else {
            log.line(format_args!("not started"));
            return;
        };
        self.desk.lines = core::mem::take(log);
        machine.set_time(self.now, self.wall());
        self.step(step, &mut machine);
        self.run(&mut machine);
        *log = core::mem::take(&mut self.desk.lines);
        self.machine = Some(machine);
    }

    fn wall(&self) -> Option<UnixMicros> {
        let now = i64::try_from(self.now.as_micros()).ok()?;
        Some(UnixMicros(self.wall?.checked_add(now)?))
    }

    fn set(&mut self, name: &str, words: &[&str]) -> Option<()> {
        let config = self.config.as_mut()?;
        match (name, words) {
            ("contact", [list]) => config.add_contact_points(list).ok()?,
            ("use", [keyspace]) => config.keyspace = Some((*keyspace).into()),
            ("login", [user, password]) => {
                let plain = PlainAuthenticator::new(*user, *password);
                let plain: Box<dyn Authenticator> = Box::new(plain);
                config.authenticator = Some(Shared::from(plain));
            }
            ("tablets", [newest]) => {
                config.tablets_max = match *newest {
                    "off" => TabletsRouting::Off,
                    "v1" => TabletsRouting::V1,
                    _ => TabletsRouting::V2,
                };
            }
            ("early", []) => config.early_requests = true,
            ("prefer", [dc, rack]) => {
                let place = |name: &str| (name != "-").then(|| Box::from(name));
                config.policy.preferred_dc = place(dc);
                config.policy.preferred_rack = place(rack);
            }
            ("frame-max", [len]) => config.limits.frame = FrameLimits::new(len.parse().ok()?, 0),
            ("in-flight", [count]) => config.limits.connection.in_flight = count.parse().ok()?,
            ("waiting", [count]) => config.limits.connection.waiting = count.parse().ok()?,
            ("pool", [each, count]) => {
                let count: NonZeroU16 = count.parse().ok()?;
                config.pool.size = match *each {
                    "shard" => PoolSize::PerShard(count),
                    _ => PoolSize::PerHost(count),
                };
            }
            ("steering", [kind]) => {
                self.desk.steering = match *kind {
                    "port" => SteeringKind::ExactPort,
                    "shard" => SteeringKind::BestEffortShard,
                    _ => SteeringKind::None,
                };
            }
            ("seed", [seed]) => self.seed = number(Some(seed)).ok()?,
            ("wall", [micros]) => self.wall = Some(micros.parse().ok()?),
            _ => return None,
        }
        Some(())
    }

    fn step(&mut self, step: &Step<'_>, machine: &mut Machine) {
        let desk = &mut self.desk;
        match step {
            Step::At(micros) => {
                self.now = Instant::from_micros(*micros);
                desk.lines.line(format_args!("at {micros}"));
            }
            Step::Open(link) => machine.handle_opened(*link),
            Step::Bytes(link, bytes) => match machine.input(*link) {
                Some(input) => input.extend_from_slice(bytes),
                None => desk.lines.line(format_args!("no link {link}")),
            },
            Step::End(link, why) => machine.handle_ended(*link, link_error(why)),
            Step::Prepare(label, text) => desk.begun(*label, true, machine.prepare(text)),
            Step::Query(label, options, text) => {
                let number = with(options, |options| {
                    machine.query(text, messina_core::wire::Values::EMPTY, options)
                });
                desk.begun(*label, options.is_idempotent, number);
            }
            Step::Execute(label, statement, options, cells) => {
                let Ok(values) = values(cells) else {
                    desk.lines.line(format_args!("{label} cannot be written"));
                    return;
                };
                let statement = desk.statements.get(statement).copied().unwrap_or(NONE);
                let number = with(options, |options| {
                    machine.execute(statement, values.values(), options)
                });
                desk.begun(*label, options.is_idempotent, number);
            }
            Step::Batch(label, kind, options, parts) => {
                let number = desk.batch(machine, *kind, options, parts);
                desk.begun(*label, options.is_idempotent, number);
            }
            Step::Cancel(label) => {
                let mut labels = desk.labels.iter();
                if let Some((&number, _)) = labels.find(|(_, known)| *known == label) {
                    desk.labels.remove(&number);
                    machine.cancel(number);
                }
            }
            Step::Release(statement) => {
                if let Some(number) = desk.statements.remove(statement) {
                    machine.release(number);
                }
            }
            Step::Close(label) => {
                let number = machine.close();
                desk.begun(*label, false, number);
            }
            Step::Room(has_room) => desk.has_room = *has_room,
            Step::Takes(count) => self.window = *count,
            Step::Pieces(count) => self.piece = *count,
            Step::Status => desk.put_status(machine),
            Step::Start(_) => {}
            other => desk.lines.line(format_args!("not for this: {other:?}")),
        }
    }

    /// Runs it until nothing more comes out, with what the network takes of it taken.
    fn run(&mut self, machine: &mut Machine) {
        let mut deadline = self.now;
        for _ in 0..RUNS_MAX {
            deadline = machine.run(self.now, self.wall(), &mut self.desk);
            let mut written: Vec<(u32, Vec<u8>)> = Vec::new();
            machine.write(&mut |link, bytes| {
                let len = bytes.len().min(self.piece).min(self.window);
                let Some(bytes) = bytes.get(..len).filter(|bytes| !bytes.is_empty()) else {
                    return 0;
                };
                if self.window < usize::MAX {
                    self.window -= len;
                }
                match written.last_mut().filter(|(last, _)| *last == link) {
                    Some((_, before)) => before.extend_from_slice(bytes),
                    None => written.push((link, bytes.to_vec())),
                }
                len
            });
            for (link, bytes) in &written {
                self.desk.lines.written(*link, bytes);
            }
            if deadline > self.now && written.is_empty() {
                break;
            }
        }
        if deadline <= self.now {
            self.desk.lines.line(format_args!("never rests"));
        }
        if deadline != self.told_deadline {
            self.told_deadline = deadline;
            self.desk.lines.next(deadline);
        }
    }
}

impl Desk {
    fn begun(&mut self, label: u32, is_idempotent: bool, number: u32) {
        self.labels.insert(number, label);
        self.idempotent.insert(label, is_idempotent);
    }

    fn batch(
        &self,
        machine: &mut Machine,
        kind: u8,
        options: &Options,
        parts: &[(u32, Vec<Cell>)],
    ) -> u32 {
        let encoded: Vec<(u32, EncodedValues<BytesMut>)> = parts
            .iter()
            .filter_map(|(statement, cells)| Some((*statement, values(cells).ok()?)))
            .collect();
        let parts: Vec<BatchPart<'_>> = encoded
            .iter()
            .map(|(statement, values)| {
                let statement = self.statements.get(statement).copied().unwrap_or(NONE);
                BatchPart::Statement(statement, values.values())
            })
            .collect();
        let kind = match kind {
            0 => BatchKind::Logged,
            1 => BatchKind::Unlogged,
            _ => BatchKind::Counter,
        };
        with(options, |options| machine.batch(kind, &parts, options))
    }

    fn put_status(&mut self, machine: &Machine) {
        let plane = machine.plane();
        for member in plane.members() {
            let (host, address, shards) = (member.host_id(), member.address(), member.sharding());
            let (is_present, is_up, is_local) =
                (member.is_present(), member.is_up(), member.is_local());
            self.lines.line(format_args!(
                "member {host} {address:?} {shards:?} present {is_present} up {is_up} local {is_local}"
            ));
        }
        for table in plane.tables() {
            let (keyspace, name, kind) = (table.keyspace, table.name, table.kind);
            self.lines
                .line(format_args!("table {keyspace}.{name} {kind:?}"));
            for tablet in plane.tablets(table.key) {
                let (first, last) = tablet.range();
                let version = tablet.version().map(|version| version.bits());
                self.lines
                    .line(format_args!("  ({first}, {last}] {version:x?}"));
                for (host, shard) in tablet.replicas() {
                    self.lines.line(format_args!("    {host} {shard}"));
                }
            }
        }
        for link in machine.links() {
            let (number, place, member, shard) = (link.link, link.place, link.member, link.shard);
            let (serves, in_use) = (link.serves, link.in_use);
            self.lines.line(format_args!(
                "link {number} {place} member {member:?} shard {shard:?} serves {serves} in use {in_use}"
            ));
        }
        let counters = plane.counters();
        let (degraded, dropped) = (counters.degraded, counters.tablets_dropped);
        self.lines
            .line(format_args!("degraded {degraded}, dropped {dropped}"));
    }
}

impl Host for Desk {
    fn connect(&mut self, link: u32, target: Target) {
        let (place, port, shard) = match (&target.endpoint, target.steering) {
            (place, Steering::Port(port)) => (place, Some(port.get()), None),
            (place, Steering::Shard { shard, of }) => (place, None, Some((shard, of.get()))),
            (place, _) => (place, None, None),
        };
        let deadline = target.deadline.as_micros();
        self.lines.line(format_args!(
            "connect {link} {place} port {port:?} shard {shard:?} until {deadline}"
        ));
        self.lines.operation(Operation::Connect {
            link,
            place: place.clone(),
            port,
            shard,
        });
    }

    fn abort(&mut self, link: u32) {
        self.lines.line(format_args!("abort {link}"));
        self.lines.operation(Operation::End { link });
    }

    fn close(&mut self, link: u32) {
        self.lines.line(format_args!("close {link}"));
        self.lines.operation(Operation::End { link });
    }

    fn steering(&self) -> SteeringKind {
        self.steering
    }

    fn node(&mut self, node: u16, place: &dyn Fn() -> Endpoint) {
        let place = place();
        self.lines.line(format_args!("node {node} is {place}"));
    }

    fn done(&mut self, request: u32, outcome: Result<Done<'_>, Error>) {
        let Some(label) = self.labels.remove(&request) else {
            self.lines
                .line(format_args!("request {request} is nobody's"));
            return;
        };
        match outcome {
            Ok(Done::Session) => self.lines.line(format_args!("{label} done")),
            Ok(Done::Prepared(number, statement)) => {
                self.statements.insert(label, number);
                self.put_statement(label, statement);
            }
            Ok(Done::Answer(answered)) => {
                let is_streamed = answered.answer.body.as_slice().is_empty();
                let text = match is_streamed {
                    true => "that was all".into(),
                    false => answer::text(&answered.answer, answered.agreed),
                };
                let (node, attempts) = (answered.node, answered.attempts);
                let shard = answered.agreed.shard().map(|shard| shard.value());
                self.lines.line(format_args!(
                    "{label} by node {node} shard {shard:?} attempts {attempts}: {text}"
                ));
            }
            Err(error) => {
                let is_idempotent = self.idempotent.get(&label).copied().unwrap_or(false);
                let (node, shard, attempt) = (error.node(), error.shard(), error.attempt());
                let text = answer::error(&error, is_idempotent);
                self.lines.line(format_args!(
                    "{label} failed by node {node:?} shard {shard:?} attempt {attempt}: {text}"
                ));
                for cause in error.causes() {
                    let text = answer::error(cause, is_idempotent);
                    self.lines.line(format_args!("  because {text}"));
                }
            }
        }
    }

    fn begin(&mut self, request: u32, header: &FrameHeader) -> bool {
        let label = self.labels.get(&request).copied();
        let len = header.body_len;
        self.lines
            .line(format_args!("{label:?} begins, {len} bytes"));
        true
    }

    fn has_room(&mut self, _request: u32) -> bool {
        self.has_room
    }

    fn piece(&mut self, request: u32, bytes: BytesMut) {
        let label = self.labels.get(&request).copied();
        self.lines
            .line(format_args!("{label:?} piece {}", Hex(&bytes)));
    }
}

impl Desk {
    fn put_statement(&mut self, label: u32, statement: &Statement) {
        let (markers, is_lwt) = (statement.marker_count(), statement.is_lwt());
        let is_routed = statement.is_token_aware();
        let text = match statement.prepared() {
            Ok(prepared) => answer::prepared(&prepared),
            Err(_) => "unreadable".into(),
        };
        self.lines.line(format_args!(
            "{label} prepared, {markers} markers, conditional {is_lwt}, routed {is_routed}: {text}"
        ));
    }
}

fn with(options: &Options, begin: impl FnOnce(&RequestOptions<'_>) -> u32) -> u32 {
    begin(&RequestOptions {
        consistency: Some(options.consistency),
        serial_consistency: options.serial.and_then(|level| level.as_serial()),
        page_size: options.page,
        paging_state: options.state.as_deref(),
        timestamp: None,
        timeout: Some(Duration::from_micros(options.timeout)),
        is_idempotent: options.is_idempotent,
        is_traced: options.is_traced,
        is_streamed: options.is_streamed,
    })
}

/// A link's end by the word of a trace.
pub(crate) fn link_error(why: &str) -> LinkError {
    LinkError::new(match why {
        "reset" => LinkErrorKind::Reset,
        "closed" => LinkErrorKind::ClosedByPeer,
        "refused" => LinkErrorKind::Refused,
        _ => LinkErrorKind::TimedOut,
    })
}

/// Runs of one step.
const RUNS_MAX: usize = 400;
