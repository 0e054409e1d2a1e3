//! The whole driver over the cable: a session in one task, without spawning, against a simulated
//! node on the host's loopback.

use embassy_futures::join::join;
use embassy_futures::select::{Either, select};
use messina_core::config::Config;
use messina_core::drive::{Endpoint, Session, start};
use messina_core::error::Error;
use messina_embassy::Options;
use messina_sim::node;
use messina_sim::tcp::SimServer;

use crate::cable::on_cable;
use crate::one_task::Runner;
use crate::relay::relay;
use crate::{seed, transport};

const READINGS: i32 = 20;

#[test]
fn a_session_in_one_task_writes_and_reads_rows() {
    on_cable(async |rig| {
        let mut options = node::Options::default();
        options.nodes.truncate(1);
        options.port = 0;
        options.shard_aware_port = None;
        let server = SimServer::start(options).await.unwrap();
        let contact_point = server.contacts()[0];

        let (transport, pool) = transport(rig.near, Options::default());
        let mut config = Config::mcu();
        config.contact_points.push(Endpoint::Addr(contact_point));
        let (session, driver) = start(config, transport, &mut seed(0)).unwrap();
        let runner = Runner::new(driver, 2);
        let work = async {
            let outcome = work(&session).await;
            session.close().await;
            outcome
        };
        let session_ends = join(runner, work);
        match select(relay(rig, contact_point.port()), session_ends).await {
            Either::First(()) => unreachable!("the relay runs for ever"),
            Either::Second(((), outcome)) => outcome.unwrap(),
        }
        assert_eq!(pool.free(), 2);
        server.stop().await;
    });
}

async fn work(session: &Session) -> Result<(), Error> {
    session.ready().await?;
    for text in [
        "CREATE KEYSPACE plant WITH replication = \
         {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}",
        "CREATE TABLE plant.readings (sensor int, at bigint, celsius double, \
         PRIMARY KEY (sensor, at))",
    ] {
        session.query(text, ()).await?;
    }
    let insert = "INSERT INTO plant.readings (sensor, at, celsius) VALUES (?, ?, ?)";
    let insert = session.prepare(insert).await?;
    let select = "SELECT sensor, at, celsius FROM plant.readings WHERE sensor = ? AND at = ?";
    let select = session.prepare(select).await?;
    for reading in 0..READINGS {
        let row = (
            reading % 3,
            i64::from(reading) << 33,
            f64::from(reading) / 4.0,
        );
        session.execute(&insert, row).await?;
        let result = session.execute(&select, (row.0, row.1)).await?;
        assert_eq!(result.single_row::<(i32, i64, f64)>()?, row);
    }
    let nothing = session.execute(&select, (99_i32, 0_i64)).await?;
    assert_eq!(nothing.row_count(), 0);
    Ok(())
}
