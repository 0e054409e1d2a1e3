//! Answers and events as servers send them, written by hand or captured, and what becomes of them.

use super::*;
use crate::cluster::tests::answers::{self, Cell, bytes, inet, int, text, texts, uuid};
use crate::conn::Answer;
use crate::conn::extensions::{Agreed, Offer, TabletsRouting};
use crate::error::{Error, ErrorKind, LimitField};
use crate::routing::{Partitioner, PayloadKind, Token};
use crate::wire::response::{ErrorCode, Supported};
use crate::wire::{ProtocolVersion, Reader};
use ::bytes::BytesMut;
use core::net::IpAddr;
use std::string::String;

fn agreed(is_scylla: bool) -> Agreed {
    let body: &[u8] = if is_scylla {
        b"\x00\x01\x00\x12TABLETS_ROUTING_V1\x00\x01\x00\x00"
    } else {
        b"\x00\x00"
    };
    let offer = Offer::parse(&Supported::parse(&mut Reader::new(body)).unwrap());
    assert_eq!(offer.is_scylla, is_scylla);
    Agreed {
        version: ProtocolVersion::V4,
        tablets: TabletsRouting::V1,
        metadata_id: false,
        compression: None,
        is_authenticated: false,
        offer,
    }
}

fn new() -> Plane {
    let mut plane = Plane::with_limits(LIMITS, Policy::default());
    plane.restart(&agreed(true));
    plane
}

/// The next question: its statement, and what stands behind it in the body.
fn ask_of(plane: &mut Plane, is_scylla: bool) -> Option<(Question, String, Vec<u8>)> {
    let mut body = BytesMut::new();
    let question = plane.put_question(&agreed(is_scylla), &mut body)?;
    let statement = answers::statement(&body);
    let tail = body[4 + statement.len()..].to_vec();
    Some((question, statement, tail))
}

fn ask(plane: &mut Plane) -> (Question, String) {
    let (question, statement, _) = ask_of(plane, true).unwrap();
    (question, statement)
}

fn rows(columns: &[&str], cells: &[Vec<Cell>]) -> Vec<u8> {
    page(columns, cells, None)
}

fn page(columns: &[&str], cells: &[Vec<Cell>], paging: Option<&[u8]>) -> Vec<u8> {
    let Answer { body, .. } = answers::rows(columns, cells, paging);
    body.as_slice().to_vec()
}

const LOCAL: [&str; 7] = [
    "host_id",
    "data_center",
    "rack",
    "rpc_address",
    "broadcast_address",
    "partitioner",
    "tokens",
];
const PEERS: [&str; 6] = [
    "host_id",
    "data_center",
    "rack",
    "rpc_address",
    "peer",
    "tokens",
];

fn local(number: u16, rpc: &str, broadcast: &str) -> Vec<u8> {
    let class = text("org.apache.cassandra.dht.Murmur3Partitioner");
    let tokens = texts(2, &["-7", "100"]);
    let (rpc, broadcast) = (inet(rpc), inet(broadcast));
    let id = uuid(u128::from(number));
    rows(
        &LOCAL,
        &[[id, text("a"), text("r"), rpc, broadcast, class, tokens].to_vec()],
    )
}

fn peer(number: u16, address: &str) -> Vec<Cell> {
    let tokens = texts(1, &["50"]);
    let id = uuid(u128::from(number));
    [
        id,
        text("a"),
        text("r"),
        inet(address),
        inet(address),
        tokens,
    ]
    .to_vec()
}

/// Reads the nodes: the first is asked.
fn read(plane: &mut Plane, numbers: &[u16]) {
    let (question, _) = ask(plane);
    let body = local(numbers[0], "10.0.0.1", "10.0.0.1");
    assert!(matches!(
        plane.handle_answer(question, &body),
        Ok(Changed::Local(Some(_)))
    ));
    let (question, _) = ask(plane);
    let peers: Vec<_> = numbers[1..]
        .iter()
        .map(|&number| peer(number, &std::format!("10.0.0.{number}")))
        .collect();
    assert_eq!(
        plane.handle_answer(question, &rows(&PEERS, &peers)),
        Ok(Changed::Members)
    );
}

fn present(plane: &Plane) -> Vec<u16> {
    let present = plane.members().iter().filter(|member| member.is_present());
    present
        .map(|member| member.host_id().as_u128() as u16)
        .collect()
}

#[test]
fn nodes_are_read_page_by_page() {
    let mut plane = new();
    assert!(plane.is_due());
    let (question, statement, tail) = ask_of(&mut plane, true).unwrap();
    assert_eq!(
        statement,
        "SELECT host_id,data_center,rack,rpc_address,broadcast_address,partitioner,tokens FROM \
         system.local WHERE key='local'"
    );
    assert_eq!(tail, bytes("0001 00"));
    assert!(ask_of(&mut plane, true).is_none(), "peers come behind");
    let body = local(1, "0.0.0.0", "10.0.0.1");
    assert_eq!(
        plane.handle_answer(question, &body),
        Ok(Changed::Local(Some(0)))
    );
    let own: IpAddr = [10, 0, 0, 1].into();
    assert_eq!(plane.members()[0].address(), Some(own));

    let (question, statement, tail) = ask_of(&mut plane, true).unwrap();
    assert_eq!(
        statement,
        "SELECT host_id,data_center,rack,rpc_address,peer,tokens FROM system.peers"
    );
    assert_eq!(tail, bytes("0001 04 00000020"));
    let first = page(&PEERS, &[peer(2, "10.0.0.2")], Some(b"s"));
    assert_eq!(plane.handle_answer(question, &first), Ok(Changed::Nothing));
    let (question, _, tail) = ask_of(&mut plane, true).unwrap();
    assert_eq!(tail, bytes("0001 0c 00000020 00000001 73"));
    // The second is the node that was asked, under another address.
    let second = rows(&PEERS, &[peer(3, "fe80::3"), peer(1, "10.0.0.0")]);
    assert_eq!(plane.handle_answer(question, &second), Ok(Changed::Members));
    assert_eq!(present(&plane), [1, 2, 3]);
    assert_eq!(plane.members()[0].address(), Some(own));
    assert!(!plane.is_due());
}

/// One normal node and one that is joining, as ScyllaDB sends them; and rows that lack something.
#[test]
fn rows_that_are_no_nodes_are_passed_over() {
    let mut plane = new();
    let (question, _) = ask(&mut plane);
    plane
        .handle_answer(question, &local(1, "::", "10.0.0.1"))
        .unwrap();
    let (question, _) = ask(&mut plane);
    let captured = bytes(
        "00000002 00000001 00000004 0006 73797374656d 0005 7065657273 0004 70656572 0010 0007 686f73745f6964 000c
         000b 7270635f61646472657373 0010 0006 746f6b656e73 0022 000d 00000002
         00000004 7f000002 00000010 0102030405060708090a0b0c0d0e0f10 00000004 7f000002 00000010 00000002 00000002 2d31 00000002 3737
         00000004 7f000003 00000010 a1b2c3d4e5f647898abcdef012345678 ffffffff ffffffff",
    );
    // Neither data centre nor rack was asked for there.
    assert_eq!(
        plane.handle_answer(question, &captured),
        Ok(Changed::Members)
    );
    assert_eq!(present(&plane), [1]);
    for lacking in 0..5 {
        let mut cells = peer(2, "10.0.0.2");
        cells[lacking] = None;
        plane.read_again();
        let (question, _) = ask(&mut plane);
        plane
            .handle_answer(question, &local(1, "::", "10.0.0.1"))
            .unwrap();
        let (question, _) = ask(&mut plane);
        plane
            .handle_answer(question, &rows(&PEERS, &[cells]))
            .unwrap();
        // Of the two addresses one is enough.
        let is_node = [3, 4].contains(&lacking);
        assert_eq!(present(&plane).len(), 1 + usize::from(is_node), "{lacking}");
    }
    // Columns of other types, or none at all.
    for (columns, cells) in [
        (
            &PEERS[..],
            [int(1), int(1), int(1), int(1), int(1), int(1)].to_vec(),
        ),
        (&PEERS[..0], Vec::new()),
    ] {
        plane.restart(&agreed(true));
        let (question, _) = ask(&mut plane);
        plane
            .handle_answer(question, &local(1, "::", "10.0.0.1"))
            .unwrap();
        let (question, _) = ask(&mut plane);
        let cells = if cells.is_empty() {
            Vec::new()
        } else {
            [cells].to_vec()
        };
        assert_eq!(
            plane.handle_answer(question, &rows(columns, &cells)),
            Ok(Changed::Members)
        );
        assert_eq!(present(&plane), [1]);
    }
}

#[test]
fn a_node_that_does_not_tell_who_it_is_is_an_error() {
    for body in [
        rows(&LOCAL, &[]),
        rows(&["host_id"], &[[int(1)].to_vec()]),
        bytes("00000001"),
    ] {
        let mut plane = new();
        let (question, _) = ask(&mut plane);
        assert!(plane.handle_answer(question, &body).is_err());
        // Whoever gets the role next asks anew.
        plane.restart(&agreed(true));
        assert_eq!(ask(&mut plane).1, ask(&mut new()).1);
    }
}

#[test]
fn members_keep_their_number_and_places_are_used_again() {
    let mut plane = new();
    read(&mut plane, &[1, 2, 3]);
    plane.read_again();
    read(&mut plane, &[3, 1]);
    assert_eq!(present(&plane), [1, 3]);
    assert!(plane.member(1).is_none());
    plane.read_again();
    read(&mut plane, &[1, 9, 3, 2]);
    assert_eq!(present(&plane), [1, 9, 3, 2]);
}

#[test]
fn members_beyond_the_limit_are_left_out_and_counted() {
    let mut plane = Plane::with_limits(
        PlaneLimits {
            members: 3,
            ..LIMITS
        },
        Policy::default(),
    );
    plane.restart(&agreed(true));
    read(&mut plane, &[1, 2, 3, 4, 5]);
    assert_eq!(present(&plane), [1, 2, 3]);
    assert_eq!(plane.counters().members_left_out, 2);
    assert!(!plane.is_due());
    // A place becomes free in this reading, so there is another one.
    plane.read_again();
    read(&mut plane, &[1, 3, 4, 5]);
    assert_eq!(present(&plane), [1, 3]);
    assert!(plane.is_due());
    read(&mut plane, &[1, 3, 4, 5]);
    assert_eq!(present(&plane), [1, 4, 3]);
    assert_eq!(plane.counters().members_left_out, 1);
    assert!(!plane.is_due());
}

#[test]
fn of_two_rows_with_one_host_id_the_lower_address_counts() {
    for addresses in [["10.0.0.2", "10.0.0.7"], ["10.0.0.7", "10.0.0.2"]] {
        let mut plane = new();
        let (question, _) = ask(&mut plane);
        plane
            .handle_answer(question, &local(1, "10.0.0.1", "10.0.0.1"))
            .unwrap();
        let (question, _) = ask(&mut plane);
        let peers = addresses.map(|address| peer(2, address));
        plane
            .handle_answer(question, &rows(&PEERS, &peers))
            .unwrap();
        let expected: IpAddr = [10, 0, 0, 2].into();
        assert_eq!(plane.members()[1].address(), Some(expected));
        assert_eq!(present(&plane), [1, 2]);
    }
}

#[test]
fn answers_that_are_too_long_are_asked_for_in_smaller_pieces() {
    let too_long = Error::new(ErrorKind::Limit(LimitField::FrameLen));
    let mut plane = new();
    let (question, _) = ask(&mut plane);
    plane
        .handle_answer(question, &local(1, "10.0.0.1", "10.0.0.1"))
        .unwrap();
    let mut sizes = Vec::new();
    for _ in 0..6 {
        let (question, statement, tail) = ask_of(&mut plane, true).unwrap();
        assert!(statement.contains("tokens"));
        sizes.push(tail[6]);
        assert!(plane.handle_failure(question, &too_long));
    }
    assert_eq!(sizes, [32, 16, 8, 4, 2, 1]);
    // Then without tokens, the node itself too.
    let (question, statement, _) = ask_of(&mut plane, true).unwrap();
    assert!(statement.contains("system.local") && !statement.contains("tokens"));
    plane
        .handle_answer(question, &local(1, "10.0.0.1", "10.0.0.1"))
        .unwrap();
    let (question, statement, _) = ask_of(&mut plane, true).unwrap();
    assert!(statement.contains("system.peers") && !statement.contains("tokens"));
    assert!(!plane.handle_failure(question, &too_long));
}

#[test]
fn keyspaces_and_tables_are_read_when_they_are_used() {
    let mut plane = new();
    read(&mut plane, &[1]);
    let tables =
        ["sensors", "o'clock", "ec_scylla_cdc_log"].map(|name| plane.table("it's", name).unwrap());
    assert_eq!(plane.table("it's", "sensors"), Some(tables[0]));
    assert_eq!(plane.partitioner(tables[1]), Some(Partitioner::Murmur3));
    assert_eq!(plane.partitioner(tables[2]), Some(Partitioner::Cdc));
    let mut asked = Vec::new();
    while let Some((_, statement, tail)) = ask_of(&mut plane, true) {
        assert_eq!(tail, bytes("0001 00"));
        asked.push(statement);
    }
    let of_tables =
        "SELECT id FROM system_schema.tables WHERE keyspace_name='it''s' AND table_name=";
    assert_eq!(
        asked,
        [
            "SELECT * FROM system_schema.scylla_keyspaces WHERE keyspace_name='it''s'",
            "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name='it''s'",
            &std::format!("{of_tables}'sensors'"),
            &std::format!("{of_tables}'o''clock'"),
            &std::format!("{of_tables}'ec_scylla_cdc_log'"),
        ]
    );
    assert!(!plane.is_due());
}

/// Answers to the question about a keyspace: the capture of one that is eventually consistent and
/// one that is strongly so, cut in two; and others.
#[test]
fn what_a_keyspace_is_for_routing() {
    let head = "00000002 00000001 00000003 000d 73797374656d5f736368656d61 0010 7363796c6c615f6b6579737061636573
         000d 6b657973706163655f6e616d65 000d 000b 636f6e73697374656e6379 000d 000f 696e697469616c5f7461626c657473 0009 00000001";
    let captured = |cells: &str| bytes(&std::format!("{head} {cells}"));
    let columns = ["keyspace_name", "initial_tablets"];
    let cases = [
        (
            captured("00000002 6563 ffffffff 00000004 00000000"),
            KeyspaceKind::Tablets,
        ),
        (
            captured("00000002 7363 00000006 676c6f62616c 00000004 00000000"),
            KeyspaceKind::StrongTablets,
        ),
        (
            captured("00000002 6563 ffffffff ffffffff"),
            KeyspaceKind::Vnodes,
        ),
        // Older versions have no column for the consistency.
        (
            rows(&columns, &[[text("ks"), int(0)].to_vec()]),
            KeyspaceKind::Tablets,
        ),
        (rows(&columns, &[]), KeyspaceKind::Vnodes),
    ];
    for (body, expected) in cases {
        let mut plane = new();
        read(&mut plane, &[1]);
        plane.table("ks", "t");
        let (question, _) = ask(&mut plane);
        assert_eq!(plane.tables().next().unwrap().kind, KeyspaceKind::Unknown);
        assert_eq!(plane.handle_answer(question, &body), Ok(Changed::Nothing));
        assert_eq!(plane.tables().next().unwrap().kind, expected);
    }
}

/// Apache Cassandra has no such table, and ScyllaDB may lose it.
#[test]
fn without_the_table_of_keyspaces_there_are_no_tablets() {
    let mut plane = Plane::with_limits(LIMITS, Policy::default());
    plane.restart(&agreed(false));
    let (question, _, _) = ask_of(&mut plane, false).unwrap();
    plane
        .handle_answer(question, &local(1, "10.0.0.1", "10.0.0.1"))
        .unwrap();
    let (question, _, _) = ask_of(&mut plane, false).unwrap();
    plane
        .handle_answer(question, &rows(&PEERS, &[peer(2, "10.0.0.2")]))
        .unwrap();
    let table = plane.table("ks", "t").unwrap();
    let (question, statement, _) = ask_of(&mut plane, false).unwrap();
    assert!(statement.contains("replication"), "{statement}");
    assert!(!plane.is_due() && ask_of(&mut plane, false).is_none());
    assert_eq!(plane.tables().next().unwrap().kind, KeyspaceKind::Vnodes);
    let class = "org.apache.cassandra.locator.SimpleStrategy";
    let options = texts(2, &["class", class, "replication_factor", "2"]);
    let body = rows(&["replication"], &[[options].to_vec()]);
    plane.handle_answer(question, &body).unwrap();
    assert_eq!(plane.keyspaces[0].strategy, ring::Strategy::Simple(2));
    // Tokens -7 and 100 are the first node's, 50 is the second's.
    let mut located = planning::Located::default();
    plane.locate_on_ring(table, Token::new(0), &mut located);
    assert_eq!(located.replicas, [(1, None), (0, None)]);

    let mut plane = new();
    read(&mut plane, &[1]);
    let table = plane.table("ks", "t").unwrap();
    plane.put_tablet(table, (0, 10), None, &[(host(1), 0)]);
    let (question, _) = ask(&mut plane);
    let invalid = Error::new(ErrorKind::Server(ErrorCode::Invalid));
    let failed = Error::new(ErrorKind::Server(ErrorCode::Server));
    assert!(!plane.handle_failure(question, &failed));
    let (question, statement) = ask(&mut plane);
    assert!(statement.contains("scylla_keyspaces"));
    assert!(plane.handle_failure(question, &invalid));
    assert_eq!(plane.tables().next().unwrap().kind, KeyspaceKind::Vnodes);
    assert_eq!(plane.tablets(table).count(), 0);
}

fn id_of(plane: &mut Plane, id: Option<u128>) {
    while plane.is_due() {
        let (question, statement) = ask(plane);
        let cells: Vec<Vec<Cell>> = id.map(|id| [uuid(id)].to_vec()).into_iter().collect();
        if statement.contains("SELECT id") {
            plane
                .handle_answer(question, &rows(&["id"], &cells))
                .unwrap();
        } else if statement.contains("scylla_keyspaces") {
            let body = rows(&["initial_tablets"], &[[int(0)].to_vec()]);
            plane.handle_answer(question, &body).unwrap();
        } else if statement.contains("replication") {
            plane
                .handle_answer(question, &rows(&["replication"], &[]))
                .unwrap();
        } else if statement.contains("local") {
            plane
                .handle_answer(question, &local(1, "10.0.0.1", "10.0.0.1"))
                .unwrap();
        } else {
            plane.handle_answer(question, &rows(&PEERS, &[])).unwrap();
        }
    }
}

const CREATED: &str = "000d 534348454d415f4348414e4745 0007 43524541544544";
const UPDATED: &str = "000d 534348454d415f4348414e4745 0007 55504441544544";
const DROPPED: &str = "000d 534348454d415f4348414e4745 0007 44524f50504544";

/// What becomes of a tablet of table `t` of keyspace `ks` whose id was 1.
#[test]
fn tablets_go_with_their_table() {
    let table = "0005 5441424c45 0002 6b73 0001 74";
    let other = "0005 5441424c45 0002 6b73 0001 75";
    let keyspace = "0008 4b45595350414345 0002 6b73";
    let ty = "0004 54595045 0002 6b73 0001 74";
    let cases: [(&str, &str, Option<u128>, usize, usize); 9] = [
        // Event, tablets right behind it, and when the id was read.
        (CREATED, table, Some(1), 1, 1),
        (CREATED, table, Some(2), 1, 0),
        (UPDATED, table, Some(1), 1, 1),
        (UPDATED, other, Some(1), 1, 1),
        (DROPPED, table, None, 0, 0),
        (DROPPED, other, Some(1), 1, 1),
        (UPDATED, keyspace, Some(1), 0, 0),
        (DROPPED, keyspace, None, 0, 0),
        (DROPPED, ty, Some(1), 1, 1),
    ];
    for (change, target, id, behind, later) in cases {
        let mut plane = new();
        let key = plane.table("ks", "t").unwrap();
        id_of(&mut plane, Some(1));
        plane.put_tablet(key, (0, 10), None, &[(host(1), 0)]);
        id_of(&mut plane, Some(1));
        let event = bytes(&std::format!("{change} {target}"));
        assert_eq!(plane.handle_event(&event), Changed::Nothing);
        assert_eq!(plane.tablets(key).count(), behind, "{change} {target}");
        id_of(&mut plane, id);
        assert_eq!(plane.tablets(key).count(), later, "{change} {target}");
        for len in 0..event.len() {
            plane.handle_event(&event[..len]);
        }
    }
    // Nobody told: the next control link finds out. Views have no id, so they begin anew.
    for (before, after, kept) in [
        (Some(1), Some(1), 1),
        (Some(1), Some(2), 0),
        (Some(1), None, 0),
        (None, None, 0),
    ] {
        let mut plane = new();
        let key = plane.table("ks", "t").unwrap();
        plane.put_tablet(key, (0, 10), None, &[(host(1), 0)]);
        id_of(&mut plane, Some(1));
        assert_eq!(
            plane.tablets(key).count(),
            1,
            "learned before the id was read"
        );
        plane.tables[0].id = before.map(Uuid::from_u128);
        plane.restart(&agreed(true));
        id_of(&mut plane, after);
        assert_eq!(plane.tablets(key).count(), kept);
    }
}

#[test]
fn events_tell_who_is_up_and_what_to_read() {
    let mut plane = new();
    read(&mut plane, &[1, 2]);
    // NEW_NODE 127.0.0.2:9042, and DOWN [2001:db8::1]:19042, as captured.
    let new_node = "000f 544f504f4c4f47595f4348414e4745 0008 4e45575f4e4f4445 04 7f000002 00002352";
    assert_eq!(plane.handle_event(&bytes(new_node)), Changed::Nothing);
    read(&mut plane, &[1, 2]);
    assert!(!plane.is_due());
    let down = "000d 5354415455535f4348414e4745 0004 444f574e";
    let up = "000d 5354415455535f4348414e4745 0002 5550";
    let nobody = "10 20010db8000000000000000000000001 00004a62";
    assert_eq!(
        plane.handle_event(&bytes(&std::format!("{down} {nobody}"))),
        Changed::Nothing
    );
    assert!(plane.is_due(), "somebody is not known");
    read(&mut plane, &[1, 2]);
    for (change, is_up) in [(down, false), (up, true), (down, false)] {
        let event = bytes(&std::format!("{change} 04 0a000002 00002352"));
        assert_eq!(plane.handle_event(&event), Changed::Status(1, is_up));
        assert_eq!(plane.member(1).unwrap().is_up(), is_up);
    }
    // A reading says nothing about that, another control link does.
    read(&mut plane, &[1, 2]);
    assert!(!plane.member(1).unwrap().is_up());
    plane.restart(&agreed(true));
    assert!(plane.member(1).unwrap().is_up());
    for hex in ["", "0000", "0003 616263", "000d 5354415455535f4348414e4745"] {
        assert_eq!(plane.handle_event(&bytes(hex)), Changed::Nothing);
    }
}

#[test]
fn what_happens_during_a_reading_is_read_behind_it() {
    let mut plane = new();
    let (question, _) = ask(&mut plane);
    plane.read_again();
    plane
        .handle_answer(question, &local(1, "10.0.0.1", "10.0.0.1"))
        .unwrap();
    let (question, _) = ask(&mut plane);
    plane.handle_answer(question, &rows(&PEERS, &[])).unwrap();
    assert!(plane.is_due());
    read(&mut plane, &[1]);
    assert!(!plane.is_due());
    // Answers to an earlier control link say nothing.
    plane.read_again();
    let (question, _) = ask(&mut plane);
    plane.restart(&agreed(true));
    let body = local(7, "10.0.0.1", "10.0.0.1");
    assert_eq!(plane.handle_answer(question, &body), Ok(Changed::Nothing));
    assert!(plane.handle_failure(question, &Error::new(ErrorKind::Busy)));
    assert_eq!(present(&plane), [1]);
    read(&mut plane, &[1]);
}

/// Whatever becomes of the bytes, nothing panics, and no bound is broken.
#[test]
fn broken_answers_are_errors_or_less() {
    let good = rows(&PEERS, &[peer(2, "10.0.0.2"), peer(3, "10.0.0.3")]);
    for at in 0..good.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut body = good.clone();
            body[at] = value;
            for body in [&body[..], &body[..at]] {
                let mut plane = new();
                let (question, _) = ask(&mut plane);
                plane
                    .handle_answer(question, &local(1, "10.0.0.1", "10.0.0.1"))
                    .unwrap();
                let (question, _) = ask(&mut plane);
                let _any = plane.handle_answer(question, body);
                assert!(present(&plane).len() <= 3);
            }
        }
    }
}

/// Other partitioners have tokens that we cannot compute.
#[test]
fn a_foreign_partitioner_leaves_tables_without_tokens() {
    let mut plane = new();
    let table = plane.table("ks", "t").unwrap();
    let (question, _) = ask(&mut plane);
    let row = [
        uuid(1),
        text("a"),
        text("r"),
        inet("10.0.0.1"),
        inet("10.0.0.1"),
        text("org.apache.cassandra.dht.RandomPartitioner"),
        texts(1, &["170141183460469231731687303715884105727"]),
    ];
    plane
        .handle_answer(question, &rows(&LOCAL, &[row.to_vec()]))
        .unwrap();
    assert_eq!(plane.partitioner(table), None);
    assert_eq!(plane.learn(table, PayloadKind::V1, b"?"), Learned::Refused);
}

#[test]
fn tables_beyond_the_limit_are_counted() {
    let mut plane = Plane::with_limits(
        PlaneLimits {
            tables: 2,
            ..LIMITS
        },
        Policy::default(),
    );
    let first = plane.table("a", "t").unwrap();
    assert!(plane.table("b", "t").is_some_and(|second| second != first));
    assert_eq!(plane.table("a", "u"), None);
    assert_eq!(plane.table("c", "t"), None);
    assert_eq!(plane.table("a", "t"), Some(first));
    assert_eq!(plane.counters().tables_left_out, 2);
    assert_eq!(plane.keyspaces.len(), 2);
}
