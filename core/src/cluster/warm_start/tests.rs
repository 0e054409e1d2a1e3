//! What a blob keeps, and that nothing else can be made of one.

use std::boxed::Box;
use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

use uuid::Uuid;

use super::codec::{FRAME_LEN, fnv1a, seal, unseal};
use super::columns::{parse_columns, put_columns};
use super::known::Known;
use super::{Features, Sources, WarmStart, save};
use crate::cluster::prepared::PreparedStatement;
use crate::cluster::tests::answers;
use crate::cluster::tests::world::{World, config, node};
use crate::cluster::{Engine, learn};
use crate::config::Config;
use crate::conn::extensions::{Agreed, Offer};
use crate::rng::SmallRng;
use crate::routing::{
    LearnedReplica, LearnedTablet, Load, NodeIdx, Policy, RouteRequest, ShardIdx, Table,
    TabletVersion, Token, plan,
};
use crate::sync::Shared;
use crate::target::{Security, SteeringKind};
use crate::time::Instant;
use crate::types::{ColumnSpec, ColumnType, UdtType, VectorType};
use crate::wire::response::{Prepared, TYPE_DEPTH_MAX};
use crate::wire::{Consistency, Reader, Sink};

const SELECT: &str = "SELECT v FROM ks.t WHERE pk = ?";

/// A session's knowledge.
struct Saved {
    engine: Engine,
    statements: Vec<Shared<PreparedStatement>>,
    config: Config,
}

impl Saved {
    fn save(&self, bytes_max: usize) -> Vec<u8> {
        let view = self.engine.view();
        let offer = Offer {
            lwt_mask: Some(1 << 31),
            tablets_v1: true,
            ..Offer::default()
        };
        let offers: Vec<(NodeIdx, Offer)> = view
            .topology()
            .nodes()
            .take(2)
            .map(|node| (node.idx(), offer))
            .collect();
        let sources = Sources {
            config: &self.config,
            view: &view,
            status: &self.engine.status(),
            statements: &self.statements,
            offers: &offers,
        };
        save(&sources, bytes_max)
    }

    /// A session that begins with this.
    fn restored(blob: &[u8]) -> Self {
        let config = config("10.0.0.1");
        let mut engine = Engine::with_warm_start(
            Shared::new(config.clone()),
            SteeringKind::ExactPort,
            Security::Plain,
            1,
            Instant::from_micros(1),
            Some(WarmStart::new(blob.to_vec())),
        );
        let statements = engine.take_statements();
        Self {
            engine,
            statements,
            config,
        }
    }
}

/// PREPARED as the protocol has it: an id, one key marker `pk bigint`, and a column `v text` under a
/// metadata id; then the flag of a conditional statement.
fn statement(text: &str, is_lwt: bool) -> Shared<PreparedStatement> {
    let flags = if is_lwt { "80000001" } else { "00000001" };
    let body = answers::bytes(&format!(
        "0002 abcd 0001 77 {flags} 00000001 00000001 0000 0002 6b73 0001 74 0002 706b 0002 \
         00000001 00000001 0002 6b73 0001 74 0001 76 000d"
    ));
    let agreed = Agreed {
        version: crate::wire::ProtocolVersion::V4,
        tablets: crate::conn::extensions::TabletsRouting::V2,
        metadata_id: true,
        compression: None,
        is_authenticated: false,
        offer: Offer {
            lwt_mask: Some(1 << 31),
            ..Offer::default()
        },
    };
    let body = Prepared::parse(&agreed.dialect(), &mut Reader::new(&body)).unwrap();
    Shared::new(PreparedStatement::parse(text, &body, &agreed).unwrap())
}

fn tablet(first: i64, last: i64, version: Option<u64>, hosts: &[u128]) -> LearnedTablet {
    let replica = |&host: &u128| LearnedReplica {
        host_id: Uuid::from_u128(host),
        shard: 3,
    };
    let replicas = hosts.iter().map(replica).collect();
    LearnedTablet::new(first, last, version.map(TabletVersion::new), replicas).unwrap()
}

fn saved() -> Saved {
    let mut world = World::new(vec![node(1), node(2), node(3)], config("10.0.0.1"));
    world.run_secs(2);
    let view = world.engine.view();
    let table = view.table_by_name("ks", "t").unwrap().handle();
    for learned in [
        tablet(i64::MIN, -5, Some(0xabcd_1234_dead_beef), &[2, 1, 3]),
        tablet(-5, 100, None, &[3]),
        tablet(1000, i64::MAX, Some(7), &[1, 2]),
    ] {
        assert!(learn(&world.engine.tablets(), &view, table, Ok(learned)).is_none());
    }
    // A host that nobody knows: such a tablet stays out of the blob.
    let unknown = tablet(200, 300, None, &[9]);
    let _ = learn(&world.engine.tablets(), &view, table, Ok(unknown));
    let insert = "INSERT INTO ks.t (pk) VALUES (?) IF NOT EXISTS";
    Saved {
        engine: world.engine,
        statements: vec![statement(SELECT, false), statement(insert, true)],
        config: config("10.0.0.1"),
    }
}

#[test]
fn what_is_saved_is_known_again_and_saved_again_the_same() {
    let before = saved();
    let blob = before.save(usize::MAX);
    let after = Saved::restored(&blob);
    let (old, new) = (before.engine.view(), after.engine.view());
    assert_eq!(new.topology().len(), 3);
    for node in old.topology().nodes() {
        let known = new.topology().node_by_host_id(node.host_id()).unwrap();
        let known = new.topology().node(known).unwrap();
        assert_eq!(
            (known.address(), known.tokens(), known.shard_map()),
            (node.address(), node.tokens(), node.shard_map())
        );
    }
    let handle = new.table_by_name("ks", "t").unwrap().handle();
    let tablets = new.tablets(handle);
    let versions: Vec<_> = tablets
        .iter()
        .map(|(tablet, _)| (tablet.last_inclusive(), tablet.version()))
        .collect();
    let version = |bits| Some(TabletVersion::new(bits));
    assert_eq!(
        versions,
        [
            (-5, version(0xabcd_1234_dead_beef)),
            (100, None),
            (i64::MAX, version(7))
        ]
    );
    let hosts = tablets[0]
        .0
        .replicas()
        .iter()
        .map(|replica| replica.host_id);
    assert_eq!(hosts.collect::<Vec<_>>(), [2, 1, 3].map(Uuid::from_u128));
    assert!(new.tablet(handle, Token::new(250)).is_none());

    assert_eq!(after.statements.len(), 2);
    for (one, is_lwt) in after.statements.iter().zip([true, false]) {
        assert_eq!((one.id(), one.is_lwt()), (&[0xab, 0xcd][..], is_lwt));
        assert_eq!((one.key_indexes(), one.markers().len()), (&[0][..], 1));
        assert_eq!(one.markers()[0].ty, ColumnType::BigInt);
        let result = one.result();
        assert_eq!(result.metadata_id.as_deref(), Some(&b"w"[..]));
        assert_eq!(result.columns.columns()[0].ty, ColumnType::Text);
        assert_eq!(one.table(&new), Some(handle));
    }
    assert_eq!(after.save(usize::MAX), blob);
}

/// Each bit of each byte, each end.
#[test]
fn no_damage_passes_the_checksum() {
    let blob = saved().save(usize::MAX);
    let config = config("10.0.0.1");
    assert!(Known::read(&blob, &config).is_some());
    for end in 0..blob.len() {
        assert!(unseal(&blob[..end]).is_none(), "{end}");
    }
    let mut damaged = blob.clone();
    damaged.push(0);
    assert!(unseal(&damaged).is_none());
    damaged.pop();
    for place in 0..blob.len() {
        for bit in 0..8 {
            damaged[place] ^= 1 << bit;
            assert!(unseal(&damaged).is_none(), "byte {place}, bit {bit}");
            damaged[place] ^= 1 << bit;
        }
    }
    assert_eq!(damaged, blob);
}

/// The same under a right checksum: read or refused, and what is read can be begun with.
#[test]
fn a_forged_blob_is_read_or_refused() {
    let blob = saved().save(usize::MAX);
    let config = config("10.0.0.1");
    let mut body = unseal(&blob).unwrap().to_vec();
    for end in 0..body.len() {
        let cut = seal(&body[..end]).unwrap();
        assert!(Known::read(&cut, &config).is_none(), "{end}");
    }
    let mut read = 0;
    for place in 0..body.len() {
        for change in [0x01, 0x80, 0xff] {
            body[place] ^= change;
            let forged = seal(&body).unwrap();
            read += usize::from(Known::read(&forged, &config).is_some());
            let begun = Saved::restored(&forged);
            assert!(begun.engine.view().topology().len() <= 3);
            body[place] ^= change;
        }
    }
    assert!(read > 0, "names and numbers can be any");
}

#[test]
fn random_bytes_are_read_or_refused() {
    let mut rng = SmallRng::from_seed(5);
    let config = config("10.0.0.1");
    for _ in 0..20_000 {
        let len = rng.below(80);
        // Small numbers get further than large ones.
        let body: Vec<u8> = (0..len)
            .map(|_| match rng.below(4) {
                0 => rng.next_u64() as u8,
                _ => rng.below(5) as u8,
            })
            .collect();
        assert!(Known::read(&seal(&body).unwrap(), &config).is_none());
        assert!(Known::read(&body, &config).is_none());
    }
}

#[test]
fn a_blob_keeps_its_bound_and_drops_statements_and_tablets_first() {
    let saved = saved();
    let whole = saved.save(usize::MAX);
    let config = config("10.0.0.1");
    let mut statements = 0;
    for bytes_max in 0..=whole.len() + 1 {
        let blob = saved.save(bytes_max);
        assert!(blob.len() <= bytes_max);
        if blob.is_empty() {
            assert_eq!(statements, 0, "less fits where more room is: {bytes_max}");
            continue;
        }
        let known = Known::read(&blob, &config).unwrap();
        assert_eq!(known.nodes.len(), 3);
        statements = statements.max(known.statements.len());
        if known.statements.len() == 1 {
            // The one used last.
            assert_eq!(known.statements[0].text(), SELECT);
        }
    }
    assert_eq!(saved.save(whole.len()), whole);
}

/// Of three tablets the one that a request was routed by stays, when there is room for one.
#[test]
fn tablets_used_of_late_stay() {
    let mut saved = saved();
    saved.statements.clear();
    let view = saved.engine.view();
    let request = RouteRequest {
        table: view.table_by_name("ks", "t").map(Table::handle),
        token: Some(Token::new(50)),
        consistency: Consistency::One,
        is_lwt: false,
        serial_consistency: None,
    };
    let _ = plan(&view, &request, &Policy::default(), &Idle, 0, 0);
    let config = config("10.0.0.1");
    let mut kept = Vec::new();
    for bytes_max in 0..=saved.save(usize::MAX).len() {
        if let Some(known) = Known::read(&saved.save(bytes_max), &config) {
            let tablets = known.tablets.iter().flat_map(|(_, tablets)| tablets);
            kept.push(
                tablets
                    .map(LearnedTablet::last_inclusive)
                    .collect::<Vec<_>>(),
            );
        }
    }
    kept.dedup();
    assert_eq!(kept[..2], [vec![], vec![100]]);
    assert_eq!(kept.last(), Some(&vec![-5, 100, i64::MAX]));
}

/// All connections are there and idle.
struct Idle;

impl Load for Idle {
    fn in_flight(&self, _: NodeIdx, _: Option<ShardIdx>) -> u32 {
        0
    }

    fn is_connected(&self, _: NodeIdx) -> bool {
        true
    }
}

#[test]
fn statements_count_only_in_the_keyspace_they_were_prepared_in() {
    let blob = saved().save(usize::MAX);
    let mut config = config("10.0.0.1");
    config.keyspace = Some(String::from("ks"));
    let known = Known::read(&blob, &config).unwrap();
    assert!(known.statements.is_empty());
    assert_eq!(known.tablets.len(), 1);
    config.protocol = crate::wire::ProtocolVersion::V3.into();
    assert!(Known::read(&blob, &config).is_none());
}

/// Two columns of each type that there is, alone and in each other.
#[test]
fn columns_of_all_types_are_kept() {
    let mut types: Vec<ColumnType> = (0..=0x40).map(ColumnType::from_number).collect();
    types.push(ColumnType::Custom(Shared::from("a.Class")));
    for inner in types.clone() {
        let shared = Shared::new(inner.clone());
        types.push(ColumnType::List(Shared::clone(&shared)));
        types.push(ColumnType::Set(shared));
        types.push(ColumnType::Map(Shared::new((
            inner.clone(),
            ColumnType::Int,
        ))));
        types.push(ColumnType::Tuple(Shared::from(vec![inner.clone(); 3])));
        types.push(ColumnType::Vector(Shared::new(VectorType {
            element: inner.clone(),
            dimension: u32::MAX,
        })));
        types.push(ColumnType::Udt(Shared::new(UdtType {
            keyspace: "ks".into(),
            name: "u".into(),
            fields: vec![(Box::from("a"), inner)].into_boxed_slice(),
        })));
    }
    types.push(ColumnType::Tuple(Shared::from(Vec::new())));
    let columns: Vec<ColumnSpec> = (0..)
        .zip(types)
        .map(|(n, ty)| ColumnSpec {
            keyspace: Shared::from("ks"),
            // Runs of a few columns share a table.
            table: Shared::from(format!("t{}", n / 5)),
            name: format!("c{n}").into(),
            ty,
        })
        .collect();
    let mut out = Vec::new();
    put_columns(&mut out, &columns).unwrap();
    let mut reader = Reader::new(&out);
    assert_eq!(parse_columns(&mut reader).unwrap(), columns);
    assert!(reader.is_empty());
}

#[test]
fn types_nested_too_deeply_are_refused() {
    for (depth, is_fine) in [(TYPE_DEPTH_MAX, true), (TYPE_DEPTH_MAX + 1, false)] {
        let mut out = Vec::from([2, 0, 1, b'k', 0, 1, b't', 0, 1, b'c']);
        // Lists, as in the protocol, around an int.
        out.extend(vec![0x20; depth - 1]);
        out.extend([9, 0]);
        let columns = parse_columns(&mut Reader::new(&out));
        assert_eq!(columns.is_ok(), is_fine, "{depth}");
    }
}

/// FNV-1a's published values.
#[test]
fn the_checksum_is_the_published_one() {
    assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
    assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    assert_eq!(seal(b"x").unwrap().len(), FRAME_LEN + 1);
}

#[test]
fn features_survive_as_an_offer() {
    for bits in 0..64 {
        assert_eq!(Features::of(&Features(bits).offer()), Features(bits));
    }
}

/// A frame that promises four gigabytes holds what it holds.
#[test]
fn lengths_are_not_believed() {
    let mut blob = Vec::from(*b"MSNW\0\x01");
    blob.put_bits(u32::MAX);
    let checksum = fnv1a(&blob);
    blob.put(&checksum.to_be_bytes());
    assert!(unseal(&blob).is_none());
}
