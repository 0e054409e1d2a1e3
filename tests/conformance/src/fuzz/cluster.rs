//! The control plane among nodes that answer well, badly, late or not at all.
//!
//! The body keeps to the contract of whoever drives the engine: a connection is told to be open or
//! failed once, closed once, and a question that was asked may be answered at any time after it.

use core::num::NonZeroU16;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use messina_core::Shared;
use messina_core::cluster::{
    Assignment, ConnectionId, Engine, Input as Happened, LookupId, Output, QuestionId, SettleId,
    learn,
};
use messina_core::config::{Config, PoolSize};
use messina_core::conn::{Answer, Body};
use messina_core::error::{Error, ErrorKind, LinkError, LinkErrorKind, TimeoutKind};
use messina_core::routing::{PayloadKind, View, parse_payload};
use messina_core::target::{Endpoint, Resolved, Security, Steering, SteeringKind, Target as Place};
use messina_core::time::Instant;
use messina_core::wire::{Opcode, ProtocolVersion};

use super::system_tables::{Cluster, answer, error};
use super::{Input, Target, negotiation};
use crate::golden::{RESPONSES, by_name};

pub(super) const CLUSTER: Target = Target {
    name: "cluster",
    body,
    corpus,
};

const VERSION: ProtocolVersion = ProtocolVersion::V4;

/// Settings, then what happens until the bytes end, then the end of the session.
fn body(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut play = Play::new(&mut input);
    while !input.is_empty() {
        play.step(&mut input);
    }
    play.happen(Happened::Shutdown);
    assert!(
        play.dialing.is_empty() && play.open.is_empty(),
        "left behind"
    );
    assert!(play.settles.is_empty(), "somebody still waits");
    assert_eq!(play.engine.poll_timeout(), None);
}

struct Play {
    engine: Engine,
    now: Instant,
    cluster: Cluster,
    connecting_max: usize,
    lookups: BTreeSet<LookupId>,
    dialing: BTreeMap<ConnectionId, Place>,
    /// Open connections and the node at their other end.
    open: BTreeMap<ConnectionId, u8>,
    questions: BTreeMap<QuestionId, Question>,
    settles: BTreeSet<SettleId>,
    assigned: Vec<Assignment>,
    view: Shared<View>,
    last_settle: u32,
    last_connection: Option<ConnectionId>,
    last_question: Option<QuestionId>,
    is_ready: bool,
    is_over: bool,
}

#[derive(Clone, Debug)]
struct Question {
    node: u8,
    opcode: Opcode,
    body: Vec<u8>,
}

impl Question {
    fn answer(&self, cluster: &Cluster) -> Answer {
        match self.opcode {
            Opcode::Register => answer(Opcode::Ready, &[]),
            _ => cluster.answer(self.node, &statement(&self.body)),
        }
    }
}

impl Play {
    fn new(input: &mut Input<'_>) -> Self {
        let mut config = Config::server();
        let points = [
            "10.0.0.1,10.0.0.2",
            "db.example",
            "db.example,10.0.0.0:9042",
        ];
        let points = input.pick(&points);
        config.add_contact_points(points).expect("good addresses");
        config.keyspace = input.one_in(2).then(|| "ks".into());
        config.limits.connecting = input.pick(&[64, 1, 3]);
        config.limits.nodes = input.pick(&[100, 2]);
        if input.one_in(4) {
            config.pool.size = PoolSize::PerHost(NonZeroU16::MIN);
        }
        let connecting_max = config.limits.connecting;
        let steering = input.pick(&[
            SteeringKind::ExactPort,
            SteeringKind::None,
            SteeringKind::BestEffortShard,
        ]);
        let now = Instant::from_micros(1_000_000);
        let seed = u64::from(input.byte());
        let config = Shared::new(config);
        let engine = Engine::new(config, steering, Security::Plain, seed, now);
        let mut play = Self {
            view: engine.view(),
            engine,
            now,
            cluster: Cluster::new(),
            connecting_max,
            lookups: BTreeSet::new(),
            dialing: BTreeMap::new(),
            open: BTreeMap::new(),
            questions: BTreeMap::new(),
            settles: BTreeSet::new(),
            assigned: Vec::new(),
            last_settle: 0,
            last_connection: None,
            last_question: None,
            is_ready: false,
            is_over: false,
        };
        play.take_outputs();
        play
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.byte() % 24 {
            0..=9 => self.go_well(input),
            10 => self.time_is_due(),
            11 => self.time(input),
            12 => self.fail_connect(input),
            13 => self.close(input),
            14 | 15 => self.answer_badly(input),
            16 => self.event(input),
            17 => self.learn(input),
            18 => {
                self.last_settle += 1;
                let id = SettleId(self.last_settle);
                self.settles.insert(id);
                self.happen(Happened::Settle { id });
            }
            19 | 20 => self.change(input),
            21 => self.strange(input),
            22 => assert!(self.engine.status().nodes.len() <= 100),
            _ if input.byte() > 250 => self.happen(Happened::Shutdown),
            _ => self.time_is_due(),
        }
    }

    /// The first thing that is under way ends as it should; if there is none, time passes.
    fn go_well(&mut self, input: &mut Input<'_>) {
        if let Some(id) = self.lookups.pop_first() {
            let addresses = [1, 2, 0].map(|node| self.cluster.address(node).into());
            let result = Ok(Resolved::Addrs(addresses.into_iter().collect()));
            self.happen(Happened::Resolved { id, result });
        } else if let Some((id, place)) = self.dialing.pop_first() {
            self.connected(id, &place, input);
        } else if let Some((id, question)) = self.questions.pop_first() {
            let answer = Ok(question.answer(&self.cluster));
            self.happen(Happened::Answered { id, answer });
        } else {
            self.time_is_due();
        }
    }

    fn connected(&mut self, id: ConnectionId, place: &Place, input: &mut Input<'_>) {
        let by_address = match place.endpoint {
            Endpoint::Addr(address) => match address.ip() {
                core::net::IpAddr::V4(ip) => ip.octets()[3] % 8,
                core::net::IpAddr::V6(_) => 0,
            },
            _ => 0,
        };
        let (node, wanders) = match input.byte() {
            250.. => (input.byte() % 8, true),
            200.. => (by_address, true),
            _ => (by_address, false),
        };
        let shards = self.cluster.shards.max(1);
        let shard = match place.steering {
            _ if wanders => u16::from(input.byte()),
            Steering::Port(port) => port.get() % shards,
            Steering::Shard { shard, of } => {
                assert!(shard < of.get(), "a wish for shard {shard} of {of}");
                shard
            }
            _ => u16::try_from(id.0 % u32::from(shards)).expect("a remainder"),
        };
        let supported = self.cluster.supported(node, shard);
        let agreed = negotiation::agree(VERSION, &supported).expect("a plain handshake");
        self.open.insert(id, node);
        let source_port = None;
        self.happen(Happened::Connected {
            id,
            agreed,
            source_port,
        });
    }

    fn time_is_due(&mut self) {
        if let Some(at) = self.engine.poll_timeout() {
            self.now = at;
            self.pass();
        }
    }

    fn time(&mut self, input: &mut Input<'_>) {
        let micros = u64::from(input.word()) << input.below(24);
        self.now = self.now.saturating_add(Duration::from_micros(micros));
        self.pass();
    }

    fn pass(&mut self) {
        let before = self.live();
        self.engine.handle_timeout(self.now);
        self.settled_down(before);
    }

    fn fail_connect(&mut self, input: &mut Input<'_>) {
        if self.lookups.len() > input.below(2) {
            let id = self.lookups.pop_last().expect("not empty");
            let result = input.pick(&[
                Err(LinkError::new(LinkErrorKind::Resolve)),
                Ok(Resolved::KeepName),
                Ok(Resolved::Addrs([].into_iter().collect())),
            ]);
            return self.happen(Happened::Resolved { id, result });
        }
        let ids: Vec<ConnectionId> = self.dialing.keys().copied().collect();
        if !ids.is_empty() {
            let id = input.pick(&ids);
            self.dialing.remove(&id);
            let error = failure(input);
            self.happen(Happened::ConnectFailed { id, error });
        }
    }

    fn close(&mut self, input: &mut Input<'_>) {
        if let Some(id) = self.any_open(input) {
            self.open.remove(&id);
            let error = failure(input);
            self.happen(Happened::Closed { id, error });
        }
    }

    fn answer_badly(&mut self, input: &mut Input<'_>) {
        let ids: Vec<QuestionId> = self.questions.keys().copied().collect();
        if ids.is_empty() {
            return;
        }
        let id = input.pick(&ids);
        let question = self.questions.remove(&id).expect("a key");
        let answer = match input.byte() % 4 {
            0 => Err(failure(input)),
            1 => Ok(answer(input.pick(&Opcode::ALL), input.long())),
            2 => {
                let golden = input.pick(RESPONSES);
                Ok(answer(golden.opcode, &golden.bytes()))
            }
            _ => {
                let mut bent = self.cluster.clone();
                (bent.null_cell, bent.long_cell) = (input.below(10), input.below(20));
                Ok(question.answer(&bent))
            }
        };
        self.happen(Happened::Answered { id, answer });
    }

    fn event(&mut self, input: &mut Input<'_>) {
        let Some(id) = self.any_open(input) else {
            return;
        };
        let names = [
            "new node",
            "node down",
            "table updated",
            "keyspace created",
            "client routes",
        ];
        let body = match input.byte() % 3 {
            0 => by_name(input.pick(&names)).bytes(),
            1 => {
                let change = input.pick(&["UP", "DOWN"]);
                let len = u8::try_from(change.len()).expect("short");
                let mut body = b"\x00\x0dSTATUS_CHANGE\x00".to_vec();
                body.push(len);
                body.extend(change.as_bytes());
                body.push(4);
                body.extend(self.cluster.address(input.byte() % 8));
                body.extend([0, 0, 0x23, 0x52]);
                body
            }
            _ => input.short().to_vec(),
        };
        let body = Body::from_slice(&body);
        self.happen(Happened::Event { id, body });
    }

    fn learn(&mut self, input: &mut Input<'_>) {
        let handles: Vec<_> = self.view.tables().map(|table| table.handle()).collect();
        if handles.is_empty() {
            return;
        }
        let table = input.pick(&handles);
        let kind = match input.one_in(4) {
            true => PayloadKind::V1,
            false => PayloadKind::V2,
        };
        let golden = &by_name("void with tablet routing, version 2").bytes()[26..166];
        let payload = match input.byte() % 2 {
            0 => golden,
            _ => input.short(),
        };
        let read = parse_payload(kind, payload);
        if let Some(news) = learn(&self.engine.tablets(), &self.view, table, read) {
            self.happen(Happened::Tablet(news));
        }
    }

    /// The cluster becomes another one.
    fn change(&mut self, input: &mut Input<'_>) {
        match input.byte() % 6 {
            0 => self.cluster.nodes = input.byte(),
            1 => self.cluster.network = input.byte() % 3,
            2 => self.cluster.shards = input.pick(&[0, 1, 2, 5, 300]),
            3 => self.cluster.has_tablets = !self.cluster.has_tablets,
            4 => self.cluster.table_id = input.byte(),
            _ => self.cluster.schema_version = input.byte(),
        }
    }

    /// What concerns nobody, or nobody any more.
    fn strange(&mut self, input: &mut Input<'_>) {
        let number = 1_000_000 + u32::from(input.byte());
        let id = ConnectionId(number);
        let error = failure(input);
        self.happen(match input.byte() % 5 {
            0 => Happened::ConnectFailed { id, error },
            1 => Happened::Closed { id, error },
            2 => Happened::Event {
                id,
                body: Body::from_slice(&[]),
            },
            3 => Happened::Answered {
                id: QuestionId(number),
                answer: Err(error),
            },
            _ => Happened::Resolved {
                id: LookupId(number),
                result: Ok(Resolved::KeepName),
            },
        });
    }

    fn happen(&mut self, happened: Happened) {
        let is_end = matches!(happened, Happened::Shutdown);
        let before = self.live();
        self.engine.handle(self.now, happened);
        self.is_over |= is_end;
        self.settled_down(before);
    }

    fn live(&self) -> usize {
        self.dialing.len() + self.open.len() + self.settles.len()
    }

    /// Takes the outputs; they are few, and nothing is left to do at this time.
    fn settled_down(&mut self, live_before: usize) {
        let count = self.take_outputs();
        // A close and a question for each connection, a new one for each that may be dialed, and
        // some for readings and warnings.
        let count_max = 2 * live_before + 2 * self.connecting_max + 300;
        assert!(count <= count_max, "{count} outputs of one input");
        let timeout = self.engine.poll_timeout();
        assert!(timeout.is_none_or(|at| at > self.now), "time stands still");
        let assigned = self.assigned.iter().flat_map(|node| &node.connections);
        for (id, _) in assigned {
            assert!(
                self.is_over || self.open.contains_key(id),
                "{id:?} is not open"
            );
        }
        assert!(
            self.dialing.len() <= self.connecting_max,
            "{} connects at once",
            self.dialing.len()
        );
        self.engine.handle_timeout(self.now);
        let more: Vec<Output> = core::iter::from_fn(|| self.engine.poll()).collect();
        assert!(more.is_empty(), "a second walk finds more to do: {more:?}");
    }

    fn take_outputs(&mut self) -> usize {
        let mut count = 0;
        while let Some(output) = self.engine.poll() {
            count += 1;
            self.take(output);
        }
        count
    }

    fn take(&mut self, output: Output) {
        match output {
            Output::Resolve { id, .. } => assert!(self.lookups.insert(id)),
            Output::Connect { id, target, .. } => {
                assert!(Some(id) > self.last_connection, "{id:?} again");
                assert!(!self.is_over && target.deadline > self.now);
                self.last_connection = Some(id);
                self.dialing.insert(id, target);
            }
            Output::Close { id, .. } => {
                let assigned = self.assigned.iter().flat_map(|node| &node.connections);
                let is_assigned = assigned.into_iter().any(|(other, _)| *other == id);
                assert!(
                    self.is_over || !is_assigned,
                    "{id:?} closed while it is assigned"
                );
                let was_there = self.dialing.remove(&id).is_some();
                assert!(
                    was_there || self.open.remove(&id).is_some(),
                    "{id:?} closed twice"
                );
            }
            Output::Ask {
                id,
                on,
                opcode,
                body,
            } => {
                assert!(Some(id) > self.last_question, "{id:?} again");
                self.last_question = Some(id);
                let node = *self.open.get(&on).expect("asked where nobody listens");
                let question = Question { node, opcode, body };
                self.questions.insert(id, question);
            }
            Output::Publish(view) => self.view = view,
            Output::Assign(assigned) => self.assigned = assigned,
            Output::Ready => {
                assert!(!self.is_ready, "ready twice");
                self.is_ready = true;
            }
            Output::Failed(error) => {
                assert!(!self.is_ready && !self.is_over, "failed late: {error}");
                self.is_over = true;
            }
            Output::Settled { id, .. } => assert!(self.settles.remove(&id), "settled twice"),
            Output::Warning(text) => assert!(!text.is_empty()),
            other => panic!("unknown output {other:?}"),
        }
    }

    fn any_open(&self, input: &mut Input<'_>) -> Option<ConnectionId> {
        let ids: Vec<ConnectionId> = self.open.keys().copied().collect();
        (!ids.is_empty()).then(|| input.pick(&ids))
    }
}

fn failure(input: &mut Input<'_>) -> Error {
    match input.byte() % 8 {
        0 => LinkError::CLOSED_BY_PEER.into(),
        1 => LinkError::PORT_IN_USE.into(),
        2 => LinkError::new(LinkErrorKind::Refused).into(),
        3 => Error::new(ErrorKind::Timeout(TimeoutKind::Connect)),
        4 => Error::new(ErrorKind::Timeout(TimeoutKind::Request)),
        5 => Error::new(ErrorKind::Busy),
        6 => from_server(0x2200),
        _ => from_server(0x0100),
    }
}

fn from_server(code: u32) -> Error {
    use messina_core::wire::response::ServerError;
    use messina_core::wire::{Dialect, Reader};
    let answer = error(code, "no");
    let mut reader = Reader::new(answer.body.as_slice());
    let parsed = ServerError::parse(&Dialect::plain(VERSION), &mut reader);
    Error::from_server(parsed.expect("a code and a text"))
}

/// The statement of a QUERY body: a long string in front.
fn statement(body: &[u8]) -> String {
    let (len, rest) = body.split_first_chunk::<4>().expect("a length");
    let len = usize::try_from(u32::from_be_bytes(*len)).expect("short");
    String::from_utf8(rest[..len].to_vec()).expect("text")
}

/// Sessions that come up, then something else in between.
fn corpus() -> Vec<Vec<u8>> {
    let settings: [[u8; 7]; 6] = [
        [0, 0, 0, 0, 0, 0, 1],
        [1, 1, 0, 0, 0, 0, 2],
        [2, 0, 1, 0, 0, 1, 3],
        [0, 1, 2, 0, 0, 2, 4],
        [0, 0, 0, 1, 0, 0, 5],
        [0, 1, 0, 0, 3, 0, 6],
    ];
    let well = [0; 40];
    let lost = [13, 0, 0, 12, 0, 2, 12, 0, 3, 10, 12, 0, 0];
    let grown = [19, 0, 0xff, 16, 0, 0, 0, 10, 10];
    let moved = [19, 1, 1, 13, 0, 0, 13, 0, 0, 10, 10];
    let resharded = [19, 2, 3, 13, 0, 0, 13, 1, 0];
    let settle = [18, 0, 0, 0, 0, 20, 5, 7, 18, 10];
    let learned = [17, 0, 0, 0, 20, 4, 9, 16, 0, 0, 2, 17, 0, 0, 0];
    let bad = [14, 0, 3, 2, 3, 10, 15, 0, 0, 4, 10, 14, 0, 1, 8, 0, 2, 1, 1];
    let away = [
        19, 0, 0b1, 16, 0, 1, 1, 1, 10, 10, 22, 11, 1, 0, 15, 21, 5, 0, 3,
    ];
    let ended = [18, 23, 255, 18, 0];
    let mut corpus = Vec::new();
    for settings in settings {
        let parts: [&[u8]; 11] = [
            &lost, &grown, &moved, &resharded, &settle, &learned, &bad, &away, &settle, &lost,
            &ended,
        ];
        let mut all = [&settings[..], &well].concat();
        for part in parts {
            all.extend(part);
            all.extend(well);
        }
        corpus.push(all);
        for part in [&grown[..], &resharded, &bad] {
            corpus.push([&settings[..], &well, part, &well].concat());
        }
        corpus.push([&settings[..], &bad, &well].concat());
    }
    corpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_all_goes_well_the_session_comes_up() {
        for settings in [
            [0, 0, 0, 0, 0, 0, 1],
            [1, 1, 0, 0, 0, 0, 2],
            [0, 1, 2, 0, 0, 2, 4],
        ] {
            let mut play = Play::new(&mut Input::new(&settings));
            for _ in 0..60 {
                play.go_well(&mut Input::new(&[]));
            }
            assert!(play.is_ready, "{settings:?}");
            assert_eq!(play.view.topology().len(), 3);
            assert_eq!(play.view.tables().count(), 1);
            let connections = play.assigned.iter().map(|node| node.connections.len());
            assert_eq!(connections.collect::<Vec<_>>(), [3, 3, 3]);
        }
    }
}
