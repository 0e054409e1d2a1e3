//! What is kept of tablets: against a plain list, at the bound, and with hosts that come and go.

use super::*;
use crate::rng::SmallRng;
use crate::routing::{PayloadKind, TabletVersion, Token, VersionBlock, parse_payload};
use std::string::String;
use std::{format, vec};

type Range = (i64, i64);
type Replicas = Vec<(Uuid, u16)>;

fn plane(tablet_bytes: usize) -> (Plane, TableKey, TableKey) {
    let mut plane = Plane::with_limits(
        PlaneLimits {
            tablet_bytes,
            ..LIMITS
        },
        Policy::default(),
    );
    let keys = ["t", "u"].map(|name| plane.table("ks", name).unwrap());
    (plane, keys[0], keys[1])
}

fn replicas(hosts: &[u16]) -> Replicas {
    hosts
        .iter()
        .map(|&number| (host(number), number + 100))
        .collect()
}

fn all(plane: &Plane, table: TableKey) -> Vec<(Range, Option<u64>, Replicas)> {
    let described = plane.tablets(table).map(|tablet| {
        let version = tablet.version().map(TabletVersion::bits);
        (tablet.range(), version, tablet.replicas().collect())
    });
    described.collect()
}

fn put(plane: &mut Plane, table: TableKey, range: Range, version: u64, hosts: &[u16]) -> Learned {
    let version = Some(version)
        .filter(|&version| version > 0)
        .map(TabletVersion::new);
    plane.put_tablet(table, range, version, &replicas(hosts))
}

/// The numbers of a tablet's members, those not known as `None`.
fn found(plane: &Plane, table: TableKey, token: i64) -> Option<Vec<Option<u16>>> {
    let hit = plane.tablet_at(table, Token::new(token))?;
    let number = |replica: tablets::Replica| Some(replica.node).filter(|&node| node < 0x8000);
    Some(hit.replicas().map(number).collect())
}

fn put_members(plane: &mut Plane, hosts: &[u16]) {
    plane.cluster.begin();
    for &number in hosts {
        plane.put_member(&row(number));
    }
    plane.cluster.end();
    plane.tablets.settle(&mut plane.strangers, &plane.cluster);
}

#[test]
fn a_tablet_of_three_replicas_takes_forty_bytes() {
    // Sixty-four of them fit in three kilobytes together with all else that they need.
    let (mut plane, table, _) = plane(4 << 10);
    put_members(&mut plane, &[1, 2, 3]);
    for at in 0..64 {
        assert_eq!(
            put(&mut plane, table, (at, at + 1), 7, &[1, 2, 3]),
            Learned::Stored
        );
    }
    let counters = plane.counters();
    assert_eq!(counters.tablets, 64);
    assert!(
        (64 * 40..3 << 10).contains(&counters.tablet_bytes),
        "{counters:?}"
    );
}

#[test]
fn borders_are_shared_and_whatever_is_overlapped_goes() {
    let (mut plane, table, other) = plane(1 << 20);
    put_members(&mut plane, &[1, 2]);
    let halves = [(i64::MIN, 0), (0, i64::MAX)];
    for range in halves {
        assert_eq!(put(&mut plane, table, range, 1, &[1]), Learned::Stored);
        assert_eq!(put(&mut plane, table, range, 1, &[1]), Learned::Unchanged);
    }
    put(&mut plane, other, (-5, 5), 9, &[2]);
    assert_eq!(all(&plane, table).len(), 2);
    for token in [i64::MIN + 1, 0, 1, i64::MAX] {
        assert_eq!(found(&plane, table, token), Some(vec![Some(0)]));
    }
    // Another version, other replicas, or no version are something new.
    for (version, hosts) in [(2, [1].as_slice()), (2, &[2]), (0, &[2]), (0, &[1, 2])] {
        assert_eq!(
            put(&mut plane, table, (i64::MIN, 0), version, hosts),
            Learned::Stored
        );
        assert_eq!(
            put(&mut plane, table, (i64::MIN, 0), version, hosts),
            Learned::Unchanged
        );
    }
    put(&mut plane, table, (-100, 100), 3, &[2]);
    assert_eq!(all(&plane, table), [((-100, 100), Some(3), replicas(&[2]))]);
    assert_eq!(all(&plane, other), [((-5, 5), Some(9), replicas(&[2]))]);
    for range in [(5, 5), (6, 5), (i64::MAX, i64::MIN)] {
        assert_eq!(put(&mut plane, table, range, 3, &[2]), Learned::Refused);
    }
    assert_eq!(put(&mut plane, table, (1, 2), 3, &[]), Learned::Refused);
}

/// Random tablets of two tables, with up to eight replicas, against a list that is gone through.
#[test]
fn agrees_with_a_plain_list() {
    for seed in 0..60 {
        let mut rng = SmallRng::from_seed(seed);
        let (mut plane, first, second) = plane(1 << 20);
        put_members(&mut plane, &[1, 2, 3]);
        let mut model: Vec<(TableKey, Range, Option<u64>, Replicas)> = Vec::new();
        for _ in 0..150 {
            let table = [first, second][rng.below(2) as usize];
            let start = rng.below(1000) as i64 - 500;
            let range = (start, start + 1 + rng.below(100) as i64);
            let version = Some(rng.below(3)).filter(|&version| version > 0);
            let count = 1 + rng.below(8);
            let hosts: Vec<u16> = (0..count).map(|_| 1 + rng.below(5) as u16).collect();
            let known = (table, range, version, replicas(&hosts));
            let learned = put(&mut plane, table, range, version.unwrap_or(0), &hosts);
            assert_eq!(learned == Learned::Unchanged, model.contains(&known));
            model.retain(|(of, (from, to), ..)| *of != table || *to <= range.0 || range.1 <= *from);
            model.push(known);
            model.sort_by_key(|(table, range, ..)| (table.0, *range));
            for table in [first, second] {
                let of_table = model.iter().filter(|entry| entry.0 == table);
                let expected: Vec<_> = of_table
                    .map(|(_, range, version, hosts)| (*range, *version, hosts.clone()))
                    .collect();
                assert_eq!(all(&plane, table), expected);
            }
            let token = rng.below(1200) as i64 - 600;
            let owner = model
                .iter()
                .find(|(of, (from, to), ..)| *of == table && *from < token && token <= *to);
            let expected = owner.map(|(.., hosts)| {
                let number = |(host_id, _): &(Uuid, u16)| plane.member_by_host_id(*host_id);
                hosts.iter().map(number).collect::<Vec<_>>()
            });
            assert_eq!(found(&plane, table, token), expected);
        }
        let counters = plane.counters();
        assert_eq!(
            (counters.tablets, counters.tablets_dropped),
            (model.len(), 0)
        );
    }
}

/// Whatever the bound, it is kept, and what is looked up all the time stays.
#[test]
fn above_the_bound_the_least_used_go() {
    for records in 0..40 {
        let (mut plane, table, other) = plane(records * 40 + 39);
        put_members(&mut plane, &[1, 2, 3]);
        let mut rng = SmallRng::from_seed(records as u64);
        let (mut stored, mut refused) = (0, 0);
        for step in 0..400_i64 {
            let wide = rng.below(4) == 0;
            let hosts: &[u16] = if wide {
                &[1, 2, 3, 1, 2, 3, 1]
            } else {
                &[1, 2, 3]
            };
            let table = if rng.below(3) == 0 { other } else { table };
            let at = if step == 0 {
                0
            } else {
                10 + rng.below(200) as i64
            };
            match put(
                &mut plane,
                table,
                (at, at + 1 + rng.below(3) as i64),
                1,
                hosts,
            ) {
                Learned::Refused => refused += 1,
                _ => stored += 1,
            }
            assert!(plane.counters().tablet_bytes <= records * 40, "{records}");
            for table in [table, other] {
                for tablet in plane.tablets(table) {
                    assert!([3, 7].contains(&tablet.replicas().count()));
                }
                found(&plane, table, 1);
            }
        }
        // The first one was used at each step.
        if records > 6 {
            let is_there = [table, other].map(|table| found(&plane, table, 1).is_some());
            assert!(is_there.contains(&true), "{records}");
            assert!(refused == 0 && plane.counters().tablets_dropped > 0);
        }
        assert_eq!(stored > 0, records > 0, "{records}");
    }
}

#[test]
fn hosts_may_be_named_before_they_come_and_leave() {
    let (mut plane, table, _) = plane(1 << 20);
    put_members(&mut plane, &[1, 2, 4]);
    let hosts = [5, 1, 6, 2, 3, 4, 7];
    assert_eq!(
        put(&mut plane, table, (0, 10), 1, &hosts),
        Learned::StoredWithStranger
    );
    assert!(plane.is_due(), "who they are is to be read");
    let unknown = [None, Some(0), None, Some(1), None, Some(2), None];
    assert_eq!(found(&plane, table, 5), Some(unknown.to_vec()));
    assert_eq!(
        put(&mut plane, table, (10, 20), 1, &[3]),
        Learned::Stored,
        "it was heard of"
    );
    assert_eq!(
        put(&mut plane, table, (0, 10), 1, &hosts),
        Learned::Unchanged
    );

    put_members(&mut plane, &[1, 2, 4, 3, 5, 7]);
    let known = [Some(4), Some(0), None, Some(1), Some(3), Some(2), Some(5)];
    assert_eq!(found(&plane, table, 5), Some(known.to_vec()));
    assert_eq!(found(&plane, table, 15), Some(vec![Some(3)]));
    assert_eq!(
        put(&mut plane, table, (0, 10), 1, &hosts),
        Learned::Unchanged
    );
    assert_eq!(all(&plane, table)[0].2, replicas(&hosts));

    // Who is not named is of no matter; the tablet of one who left is wrong.
    put_members(&mut plane, &[1, 2, 4, 3, 7]);
    assert_eq!(found(&plane, table, 5), None);
    assert_eq!(found(&plane, table, 15), Some(vec![Some(3)]));
    // A place that has become free goes to another host, and nothing points there.
    put_members(&mut plane, &[1, 2, 4, 3, 7, 8]);
    assert_eq!(plane.member_by_host_id(host(8)), Some(4));
    // Hosts that no tablet names are forgotten, so that others find a place.
    assert!(plane.strangers.iter().all(Uuid::is_nil));
}

#[test]
fn hosts_that_are_too_many_stay_unknown() {
    let limits = PlaneLimits {
        members: 2,
        ..LIMITS
    };
    let mut plane = Plane::with_limits(limits, Policy::default());
    let table = plane.table("ks", "t").unwrap();
    assert_eq!(
        put(&mut plane, table, (0, 10), 1, &[1, 2, 3]),
        Learned::StoredWithStranger
    );
    let mut named = replicas(&[1, 2, 3]);
    named[2].0 = Uuid::nil();
    assert_eq!(all(&plane, table), [((0, 10), Some(1), named)]);
    put_members(&mut plane, &[3, 1, 2]);
    assert_eq!(plane.counters().members_left_out, 1);
    assert_eq!(found(&plane, table, 5), Some(vec![Some(1), None, None]));
    // The server says it again: now it is known.
    put(&mut plane, table, (0, 10), 2, &[1, 2, 3]);
    assert_eq!(found(&plane, table, 5), Some(vec![Some(1), None, Some(0)]));
}

/// Any change of a version is shown within sixteen requests, whatever happens in between.
#[test]
fn probes_go_through_all_positions() {
    let (mut plane, table, other) = plane(1 << 20);
    put_members(&mut plane, &[1]);
    let version = TabletVersion::new(0xabcd_1234_dead_beef);
    plane.put_tablet(table, (0, 10), Some(version), &replicas(&[1]));
    let probe = |plane: &Plane, table| plane.probe(Some(table), Some(Token::new(5)), 0x3a);
    let expected = [
        0x0f, 0x1e, 0x2e, 0x3b, 0x4d, 0x5a, 0x6e, 0x7d, 0x84, 0x93, 0xa2, 0xb1, 0xcd, 0xdc, 0xeb,
        0xfa,
    ];
    for turn in 0..40 {
        // Learned once more, and neighbours come and go.
        plane.put_tablet(table, (0, 10), Some(version), &replicas(&[1]));
        put(
            &mut plane,
            table,
            (turn + 10, turn + 30),
            turn as u64,
            &[1, 1, 1, 1],
        );
        assert_eq!(probe(&plane, table).byte(), expected[turn as usize % 16]);
    }
    // Without a version two requests differ; without a tablet chance decides.
    put(&mut plane, table, (0, 10), 0, &[1]);
    let two = [probe(&plane, table), probe(&plane, table)];
    assert_eq!(two, [VersionBlock::new(0, 0), VersionBlock::new(0, 1)]);
    assert_eq!(probe(&plane, other), VersionBlock::unknown(0x3a));
    for (table, token) in [
        (None, Some(Token::new(5))),
        (Some(table), None),
        (None, None),
    ] {
        assert_eq!(plane.probe(table, token, 7), VersionBlock::unknown(7));
    }
}

const RANGE: &str = "00000008bfffffffffffffff00000008ffffffffffffffff";
const ITEM_A: &str = "0000001c000000100102030405060708090a0b0c0d0e0f100000000400000003";
const ITEM_B: &str = "0000001c00000010a1b2c3d4e5f647898abcdef0123456780000000400000000";

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digits).collect()
}

/// Says of these bytes what the parser of servers says.
fn check(kind: PayloadKind, value: &[u8]) -> bool {
    let mut listed = Vec::new();
    let ours = payload::parse(kind, value, &mut |host_id, shard| {
        listed.push((host_id, shard))
    });
    listed.truncate(tablets::REPLICAS_MAX);
    let theirs = parse_payload(kind, value).ok();
    assert_eq!(ours.is_some(), theirs.is_some(), "{kind:?} {value:02x?}");
    if let (Some(ours), Some(theirs)) = (&ours, &theirs) {
        let range = (theirs.first_exclusive(), theirs.last_inclusive());
        assert_eq!(*ours, (range, theirs.version()));
        let named = theirs
            .replicas()
            .iter()
            .map(|replica| (replica.host_id, replica.shard));
        let named: Replicas = named.take(tablets::REPLICAS_MAX).collect();
        assert_eq!(listed.as_slice(), named);
    }
    ours.is_some()
}

#[test]
fn payloads_are_read_as_servers_read_them() {
    let two = format!("{RANGE}0000004400000002{ITEM_B}{ITEM_A}");
    let many = |count: usize| -> String {
        let len = 4 + 32 * count;
        format!("{RANGE}{len:08x}{count:08x}{}", ITEM_A.repeat(count))
    };
    let version = "00000008a3a6be5f3d498142";
    for (kind, tail) in [(PayloadKind::V1, ""), (PayloadKind::V2, version)] {
        let whole = bytes(&format!("{two}{tail}"));
        assert!(check(kind, &whole));
        // Every prefix, every byte changed in several ways, and a tail.
        for at in 0..whole.len() {
            assert!(!check(kind, &whole[..at]));
            for change in [1, 0x7f, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[at] ^= change;
                check(kind, &changed);
            }
        }
        assert!(!check(kind, &[whole, vec![0]].concat()));
        for (count, is_good) in [
            (0, false),
            (16, true),
            (17, true),
            (255, true),
            (256, false),
        ] {
            assert_eq!(
                check(kind, &bytes(&format!("{}{tail}", many(count)))),
                is_good,
                "{count}"
            );
        }
        let huge = format!("{RANGE}000000247fffffff{ITEM_A}{tail}");
        assert!(!check(kind, &bytes(&huge)));
    }
    let (mut plane, table, _) = plane(1 << 20);
    assert_eq!(
        plane.learn(table, PayloadKind::V1, &bytes(&two)),
        Learned::StoredWithStranger
    );
    assert_eq!(
        plane.learn(table, PayloadKind::V1, &bytes(&two)),
        Learned::Unchanged
    );
    assert_eq!(
        plane.learn(table, PayloadKind::V2, &bytes(&two)),
        Learned::Refused
    );
    let with_version = bytes(&format!("{two}{version}"));
    assert_eq!(
        plane.learn(table, PayloadKind::V2, &with_version),
        Learned::Stored
    );
    let tablet = plane.tablets(table).next().unwrap();
    assert_eq!(
        tablet.version(),
        Some(TabletVersion::new(0xa3a6_be5f_3d49_8142))
    );
    assert!(!tablet.is_used());
}

/// What was saved member by member and tablet by tablet is the same plane again.
#[test]
fn what_was_saved_is_restored() {
    let (mut plane, table, other) = plane(1 << 20);
    put_members(&mut plane, &[3, 1, 2]);
    put(&mut plane, table, (0, 10), 5, &[3, 1, 9, 2]);
    put(&mut plane, other, (-7, 7), 0, &[2]);
    let mut again = Plane::with_limits(LIMITS, Policy::default());
    for member in plane.members().iter().filter(|member| member.is_present()) {
        let (dc, rack) = member.place();
        again.put_member(&MemberRow {
            host_id: member.host_id(),
            address: member.address(),
            broadcast: member.broadcast(),
            dc: plane.name(dc),
            rack: plane.name(rack),
            has_tokens: true,
        });
    }
    for known in plane.tables() {
        let key = again.table(known.keyspace, known.name).unwrap();
        for tablet in plane.tablets(known.key) {
            let replicas: Replicas = tablet.replicas().collect();
            again.put_tablet(key, tablet.range(), tablet.version(), &replicas);
        }
    }
    for key in [table, other] {
        assert_eq!(all(&again, key), all(&plane, key));
    }
    assert_eq!(
        found(&again, table, 5),
        Some(vec![Some(0), Some(1), None, Some(2)])
    );
}
