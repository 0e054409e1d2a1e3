//! Reads of a table whose columns come and go meanwhile, on nodes of which some tell ids of columns
//! and some do not: rows without columns must never be read by other columns than their own.

use core::cell::Cell;
use std::rc::Rc;

use messina_core::drive::{Prepared, QueryResult, Statement};
use messina_core::error::{EncodeFailure, Error, ErrorKind};
use messina_core::types::{ColumnType, CqlValue};
use messina_core::wire::Consistency;
use messina_sim::link::Faults;
use messina_sim::node::{Options, TabletsMode};

use crate::scene::{Scene, run_with};

const KEYSPACE: &str = "CREATE KEYSPACE ks WITH replication = \
    {'class': 'NetworkTopologyStrategy', 'replication_factor': 3}";
const TABLE: &str = "CREATE TABLE ks.t (pk bigint PRIMARY KEY, m bigint)";
const KEYS: i64 = 16;
/// Requests in flight: most read one key, some the whole table in pages.
const READERS: i64 = 64;
const PAGERS: i64 = 4;

/// A cell of these columns says where it belongs.
fn text(name: &str, pk: i64) -> String {
    format!("{name} of {pk}")
}

/// Every cell is what its column's name and the key say.
fn check(page: &QueryResult) -> usize {
    let rows = page.rows::<Vec<CqlValue>>().expect("rows");
    let names: Vec<&str> = page.columns().iter().map(|column| &*column.name).collect();
    let place = |name| names.iter().position(|known| *known == name).expect(name);
    let mut count = 0;
    for row in rows {
        let row = row.expect("a row");
        let CqlValue::BigInt(pk) = row[place("pk")] else {
            panic!("{names:?} {row:?}");
        };
        assert_eq!(
            row[place("m")],
            CqlValue::BigInt(pk + 1),
            "{names:?} {row:?}"
        );
        for ((column, name), cell) in page.columns().iter().zip(&names).zip(&row) {
            let text = text(name, pk);
            match (*name, &column.ty, cell) {
                ("pk" | "m", ColumnType::BigInt, _) | (_, _, CqlValue::Null) => {}
                (_, ColumnType::Text, CqlValue::Text(found)) => assert_eq!(*found, text),
                (_, ColumnType::Blob, CqlValue::Blob(found)) => assert_eq!(*found, text.as_bytes()),
                (_, ty, cell) => panic!("{name} {ty}: {cell:?}"),
            }
        }
        count += 1;
    }
    count
}

/// What the readers share.
#[derive(Clone, Default)]
struct Course {
    stops: Rc<Cell<bool>>,
    running: Rc<Cell<i64>>,
    reads: Rc<Cell<u64>>,
}

fn spawn_reader(scene: &Scene, course: &Course, one: &Prepared, all: &Prepared, reader: i64) {
    let (session, course) = (scene.session.clone(), course.clone());
    let (one, all) = (one.clone(), all.clone());
    course.running.set(course.running.get() + 1);
    scene.spawner.spawn(async move {
        let mut pk = reader % KEYS;
        while !course.stops.get() {
            if reader < PAGERS {
                let mut pager = session.pages(&all, ()).expect("no values");
                let mut found = 0;
                while let Some(page) = pager.next_page().await.expect("a page") {
                    found += check(&page);
                }
                assert_eq!(found, usize::try_from(KEYS).unwrap());
            } else {
                let page = session.execute(&one, (pk,)).await.expect("an answer");
                assert_eq!(check(&page), 1);
            }
            pk = (pk + 7) % KEYS;
            course.reads.set(course.reads.get() + 1);
        }
        course.running.set(course.running.get() - 1);
    });
}

/// Writes the column of all keys. The statement that was prepared for a column of this name and
/// another type takes no such values; prepared again it does.
async fn fill(scene: &Scene, name: &str, ty: &str) {
    let text = format!("UPDATE ks.t SET {name} = ? WHERE pk = ?");
    let update = scene.session.prepare(&*text).await.unwrap();
    if let Err(error) = fill_by(scene, &update, name, ty).await {
        assert_eq!(error.kind(), ErrorKind::Encode(EncodeFailure::Value));
        let update = scene.session.prepare(&*text).await.unwrap();
        fill_by(scene, &update, name, ty).await.unwrap();
    }
}

async fn fill_by(scene: &Scene, update: &Prepared, name: &str, ty: &str) -> Result<(), Error> {
    for pk in 0..KEYS {
        let text = text(name, pk);
        let value = match ty {
            "text" => CqlValue::Text(text),
            _ => CqlValue::Blob(text.into_bytes()),
        };
        scene.session.execute(update, (value, pk)).await?;
    }
    Ok(())
}

/// Columns in front of the others and behind them come, are filled, become another type, and go.
async fn alter(scene: &Scene, rounds: usize) {
    let session = &scene.session;
    for round in 0..rounds {
        let name = format!("{}{round}", ["a", "z"][round % 2]);
        for (ty, drops) in [("text", true), ("blob", round % 3 == 0)] {
            let add = format!("ALTER TABLE ks.t ADD {name} {ty}");
            session.query(add, ()).await.unwrap();
            fill(scene, &name, ty).await;
            scene.pause(2_000).await;
            if drops {
                let drop = format!("ALTER TABLE ks.t DROP {name}");
                session.query(drop, ()).await.unwrap();
                scene.pause(2_000).await;
            }
        }
    }
}

#[test]
fn rows_are_read_by_their_own_columns_while_these_come_and_go() {
    for (seed, without_ids) in [(1, vec![0]), (2, vec![0, 1])] {
        let mut options = Options::uniform(3, 2);
        options.seed = seed;
        options.nodes[1].tablets = TabletsMode::V1;
        for &node in &without_ids {
            options.nodes[node].supported_missing = vec!["SCYLLA_USE_METADATA_ID".to_owned()];
        }
        // Answers overtake each other: some are late by several changes.
        let mut faults = Faults::NONE;
        faults.jitter_micros = 3_000;
        run_with(
            options,
            faults,
            |config| config.consistency = Consistency::Quorum,
            |scene| async move {
                let session = &scene.session;
                scene.create(&[KEYSPACE, TABLE]).await;
                let insert = "INSERT INTO ks.t (pk, m) VALUES (?, ?)";
                let insert = session.prepare(insert).await.unwrap();
                for pk in 0..KEYS {
                    session.execute(&insert, (pk, pk + 1)).await.unwrap();
                }
                let one = "SELECT * FROM ks.t WHERE pk = ?";
                let one = session.prepare(one).await.unwrap();
                let all = Statement::new("SELECT * FROM ks.t").with_page_size(10);
                let all = session.prepare(all).await.unwrap();
                let course = Course::default();
                for reader in 0..READERS {
                    spawn_reader(&scene, &course, &one, &all, reader);
                }
                alter(&scene, 2).await;
                course.stops.set(true);
                while course.running.get() > 0 {
                    scene.pause(1_000).await;
                }
                let unprepared: u64 = scene.world.with_cluster(|cluster| {
                    cluster
                        .stats()
                        .nodes
                        .iter()
                        .map(|node| node.unprepared)
                        .sum()
                });
                let reads = course.reads.get();
                assert!(
                    reads > 1_000 && unprepared > 20,
                    "{reads} reads, {unprepared} lost"
                );
            },
        );
    }
}
