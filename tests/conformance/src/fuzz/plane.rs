//! The plane of the driver for small images: whatever nodes answer, tell and teach, its bounds are
//! kept and its plans name members that are there.

use bytes::BytesMut;
use messina_core::compact::plane::{Changed, Plane, PlaneLimits, Question, Route, TableKey};
use messina_core::conn::extensions::Agreed;
use messina_core::error::{Error, ErrorKind, LimitField};
use messina_core::routing::{PayloadKind, Policy, Reason, ShardMap, TabletVersion, Token};
use messina_core::wire::response::ErrorCode;
use messina_core::wire::{Consistency, Opcode, ProtocolVersion, Reader, SerialConsistency};
use uuid::Uuid;

use super::system_tables::Cluster;
use super::{Input, Target, negotiation};
use crate::golden::RESPONSES;

pub(super) const PLANE: Target = Target {
    name: "plane",
    body,
    corpus,
};

/// Limits and a policy, then operations.
fn body(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let limits = PlaneLimits {
        members: input.pick(&[3, 0, 1, 8]),
        tables: input.pick(&[2, 0, 4]),
        tablet_bytes: input.pick(&[400, 0, 39, 40, 4096]),
    };
    let mut policy = Policy::default();
    policy.preferred_dc = input.pick(&[None, Some("dc".into()), Some("x".into())]);
    policy.dc_failover = input.one_in(2);
    policy.shuffle = !input.one_in(3);
    policy.rotate_lwt = input.one_in(2);
    let mut cluster = Cluster::new();
    cluster.shards = input.pick(&[3, 0]);
    let supported = cluster.supported(0, 0);
    let Some(agreed) = negotiation::agree(ProtocolVersion::V4, &supported) else {
        return;
    };
    let mut play = Play {
        plane: Plane::with_limits(limits, policy),
        limits,
        cluster,
        agreed,
        asked: Vec::new(),
        keys: Vec::new(),
    };
    while !input.is_empty() {
        play.step(&mut input);
        play.check();
    }
}

struct Play {
    plane: Plane,
    limits: PlaneLimits,
    cluster: Cluster,
    agreed: Agreed,
    /// Questions under way, with their statements.
    asked: Vec<(Question, String)>,
    keys: Vec<TableKey>,
}

impl Play {
    fn step(&mut self, input: &mut Input<'_>) {
        match input.byte() % 12 {
            0 => self.plane.restart(&self.agreed),
            1 | 2 => self.ask(),
            3 | 4 => self.answer(input),
            5 => {
                let changed = self.plane.handle_event(input.short());
                assert!(!matches!(changed, Changed::Local(_) | Changed::Members));
            }
            6 => {
                let keyspace = input.pick(&["ks", "it's", ""]);
                let name = input.pick(&["t", "u", "t_scylla_cdc_log", "'"]);
                self.keys.extend(self.plane.table(keyspace, name));
            }
            7 => self.learn(input),
            8 | 9 => self.put_tablet(input),
            10 => self.choose(input),
            _ => match input.byte() % 6 {
                0 => self.cluster.nodes = input.byte() | 1,
                1 => self.cluster.network = input.byte() % 4,
                2 => self.cluster.has_tablets = input.one_in(2),
                3 => self.cluster.table_id = input.byte() % 3,
                4 => self.cluster.null_cell = input.below(12),
                _ => {
                    let member = u16::from(input.byte() % 9);
                    let sharding = ShardMap::new(u16::from(input.byte() % 5), 12).ok();
                    self.plane.set_sharding(member, sharding);
                    self.plane.set_up(member, input.one_in(2));
                }
            },
        }
    }

    /// What is due can be asked.
    fn ask(&mut self) {
        let mut body = BytesMut::new();
        let was_due = self.plane.is_due();
        let question = self.plane.put_question(&self.agreed, &mut body);
        assert_eq!(question.is_some(), was_due);
        if let Some(question) = question {
            let mut reader = Reader::new(&body);
            let len = reader.count("statement").expect("a length");
            let text = reader.take("statement", len as usize).expect("a statement");
            let text = core::str::from_utf8(text).expect("text");
            self.asked.push((question, text.into()));
        }
    }

    /// Rightly, wrongly, or not at all.
    fn answer(&mut self, input: &mut Input<'_>) {
        if self.asked.is_empty() {
            return;
        }
        let (question, statement) = self.asked.swap_remove(input.below(self.asked.len()));
        match input.byte() % 8 {
            0 => drop(self.plane.handle_answer(question, input.long())),
            1 => {
                let error = input.pick(&[
                    ErrorKind::Limit(LimitField::FrameLen),
                    ErrorKind::Server(ErrorCode::Invalid),
                    ErrorKind::Busy,
                ]);
                self.plane.handle_failure(question, &Error::new(error));
            }
            _ => {
                let node = input.byte() % 8;
                let answer = self.cluster.answer(node, &statement);
                if answer.opcode == Opcode::Error {
                    let error = Error::new(ErrorKind::Server(ErrorCode::Invalid));
                    self.plane.handle_failure(question, &error);
                } else {
                    drop(self.plane.handle_answer(question, answer.body.as_slice()));
                }
            }
        }
    }

    fn learn(&mut self, input: &mut Input<'_>) {
        let kind = input.pick(&[PayloadKind::V1, PayloadKind::V2]);
        let payload = input.short();
        if let Some(key) = self.keys.first() {
            self.plane.learn(*key, kind, payload);
        }
    }

    fn put_tablet(&mut self, input: &mut Input<'_>) {
        let first = i64::from(input.byte()) - 128;
        let last = first + i64::from(input.byte() % 64);
        let version = Some(TabletVersion::new(u64::from(input.byte())));
        let count = input.byte() % 20;
        let replica = |_| (Uuid::from_u128(u128::from(input.byte() % 12)), 1);
        let replicas: Vec<(Uuid, u16)> = (0..count).map(replica).collect();
        if let Some(key) = self.keys.last() {
            let version = version.filter(|version| version.bits() > 7);
            self.plane
                .put_tablet(*key, (first, last), version, &replicas);
        }
    }

    fn choose(&self, input: &mut Input<'_>) {
        let token = Some(Token::new(i64::from(input.byte()) - 128)).filter(|_| !input.one_in(5));
        let table = self.keys.get(input.below(self.keys.len() + 1)).copied();
        let route = Route {
            table,
            token,
            consistency: input.pick(&[
                Consistency::Quorum,
                Consistency::LocalOne,
                Consistency::LocalSerial,
            ]),
            serial_consistency: input.pick(&[None, Some(SerialConsistency::LocalSerial)]),
            is_lwt: input.one_in(3),
        };
        let linked = input.byte();
        let load = |member: u16, _| (linked >> (member % 8) & 1 == 1).then_some(u32::from(member));
        let entropy = u64::from(input.word());
        self.plane.probe(table, token, 7);
        let mut tried = Vec::new();
        while let (Some(candidate), _) = self.plane.choose(&route, &tried, entropy, &load) {
            assert!(self.plane.has_more(&route, &tried, &load));
            let member = self.plane.member(candidate.member).expect("it is present");
            assert!(member.is_up() || load(candidate.member, None).is_some());
            let is_known = |shard| {
                member
                    .sharding()
                    .is_some_and(|map| map.check(shard).is_some())
            };
            assert!(candidate.shard.is_none_or(|shard| is_known(shard.value())));
            assert!(!tried.contains(&candidate.member));
            assert!(candidate.reason != Reason::Leader || tried.is_empty());
            tried.push(candidate.member);
        }
        assert!(!self.plane.has_more(&route, &tried, &load));
    }

    fn check(&self) {
        let counters = self.plane.counters();
        assert!(counters.members <= usize::from(self.limits.members));
        assert!(self.plane.members().len() <= usize::from(self.limits.members));
        assert!(counters.tablet_bytes <= self.limits.tablet_bytes);
        assert!(self.plane.tables().count() <= usize::from(self.limits.tables));
        let mut tablets = 0;
        for table in self.plane.tables() {
            let mut behind = i64::MIN;
            for tablet in self.plane.tablets(table.key) {
                let (first, last) = tablet.range();
                assert!(
                    behind <= first && first < last,
                    "{behind} ({first}, {last}]"
                );
                assert!((1..=16).contains(&tablet.replicas().count()));
                behind = last;
                tablets += 1;
            }
        }
        assert_eq!(counters.tablets, tablets);
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let begin = [
        [3, 0, 4, 0, 0, 0, 0, 0],
        [1, 2, 0, 1, 1, 1, 1, 1],
        [0, 2, 3, 1, 0, 2, 0, 0],
    ];
    // Tables, then everything is read: asked and answered again and again.
    let read = [1, 3, 0, 2, 0].repeat(8);
    let used = [6, 0, 0, 6, 1, 3, 6, 0, 1];
    let tablets = [
        8, 10, 30, 9, 3, 1, 2, 3, 9, 20, 20, 0, 5, 1, 2, 9, 4, 1, 8, 100, 9, 1, 17, 1, 2, 3, 4, 5,
        6, 7, 8, 9, 10, 11, 1, 2, 3, 4, 5, 6,
    ];
    // Tokens of these tablets, and one beside them; most members are linked to.
    let plan = |token: u8, rest: [u8; 3]| [&[10, token, 1, 1][..], &rest, &[0xfe, 1, 2]].concat();
    let plans = [
        plan(25, [0, 0, 0]),
        plan(25, [1, 0, 0]),
        plan(110, [2, 1, 2]),
        plan(200, [0, 0, 0]),
    ]
    .concat();
    let change = [11, 0, 0b1011, 0, 11, 3, 2, 11, 5, 1, 3, 1, 0, 11, 4, 2];
    let mut corpus = Vec::new();
    for begin in begin {
        let all = [
            &begin[..],
            &used,
            &[0],
            &read,
            &tablets,
            &plans,
            &change,
            &[0],
            &read,
            &plans,
        ];
        corpus.push(all.concat());
    }
    // Captured events.
    for golden in RESPONSES
        .iter()
        .filter(|golden| golden.opcode == Opcode::Event)
    {
        let event = golden.bytes();
        let len = u8::try_from(event.len()).unwrap_or(u8::MAX);
        corpus.push([&begin[0][..], &used, &[0], &read, &[5, len], &event, &read].concat());
    }
    corpus
}
