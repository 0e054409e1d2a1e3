//! The driver for small images over the cable, against simulated nodes on the host: found by name,
//! led to shards by ports that do not arrive as they were drawn, cut off for a while.

use core::cell::Cell;

use embassy_futures::join::join;
use embassy_futures::select::{Either, select};
use embassy_time::Timer;
use messina_core::compact::{Options as StatementOptions, Runner, Session, start};
use messina_core::config::Config;
use messina_core::error::{Error, ErrorKind};
use messina_sim::node;
use messina_sim::tcp::SimServer;

use super::*;
use crate::names::name_server;

const CLOSE_MAX: Duration = Duration::from_secs(2);
const READINGS: i32 = 30;

/// A node of two shards.
async fn one_node(shard_aware_port: Option<u16>) -> SimServer {
    let mut options = node::Options::uniform(1, 2);
    options.port = 0;
    options.shard_aware_port = shard_aware_port;
    SimServer::start(options).await.unwrap()
}

/// Runs the session beside `work`, then closes it.
async fn with_session<T: Transport>(
    (session, runner): (Session, Runner<T>),
    work: impl AsyncFnOnce(&Session) -> Result<(), Error>,
) -> Result<(), Error> {
    let work = async {
        let outcome = work(&session).await;
        outcome.and(session.close(CLOSE_MAX).await)
    };
    join(runner, work).await.1
}

async fn beside(others: impl Future, test: impl Future<Output = Result<(), Error>>) {
    match select(others, test).await {
        Either::First(_) => unreachable!("runs for ever"),
        Either::Second(outcome) => outcome.unwrap(),
    }
}

async fn write_and_read(session: &Session) -> Result<(), Error> {
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
        let row = (reading, i64::from(reading) << 33, f64::from(reading) / 4.0);
        session.execute(&insert, row).await?;
        let result = session.execute(&select, (row.0, row.1)).await?;
        assert_eq!(result.single_row::<(i32, i64, f64)>()?, row);
    }
    Ok(())
}

#[test]
fn the_first_name_that_leads_somewhere_is_taken() {
    on_cable(async |rig| {
        let server = one_node(None).await;
        let port = server.contacts()[0].port();
        let mut options = Options::default();
        options.resolve_timeout = Duration::from_millis(300);
        let (transport, pool) = transport(rig.near, options);
        let mut config = Config::mcu();
        for host in ["silent.test", "missing.test", "node.test"] {
            let host = Name::from(host);
            config.contact_points.push(Endpoint::Name { host, port });
        }
        let names = name_server(rig, &[("node.test", &[FAR])]);
        let session = start(config, transport, 1);
        let test = with_session(session, write_and_read);
        beside(join(names, relay(rig, port)), test).await;
        assert_eq!(pool.free(), 2);
        server.stop().await;
    });
}

/// The relay is a translator of addresses that gives ports of its own: SUPPORTED names other shards
/// than were wished for, and the session makes do.
#[test]
fn ports_that_are_translated_lead_to_other_shards_and_the_session_works() {
    on_cable(async |rig| {
        let server = one_node(Some(0)).await;
        let contact_point = server.contacts()[0];
        let aware = server
            .handle()
            .with(|cluster| cluster.options().shard_aware_port)
            .unwrap();
        let mut options = Options::default();
        options.steering = true;
        let (transport, pool) = transport(rig.near, options);
        let mut config = Config::mcu();
        config.contact_points.push(Endpoint::Addr(contact_point));
        config.pool.size = messina_core::config::PoolSize::PerShard(NonZeroU16::MIN);
        let session = start(config, transport, 1);
        let test = with_session(session, write_and_read);
        let relays = join(relay(rig, contact_point.port()), relay(rig, aware));
        beside(relays, test).await;
        let counts = pool.steering();
        assert!(counts.wished > 0 && counts.missed == 0, "{counts:?}");
        assert_eq!(pool.free(), 2);
        server.stop().await;
    });
}

#[test]
fn a_pulled_cable_fails_requests_in_time_and_service_returns_with_it() {
    on_cable(async |rig| {
        const DEADLINE: Duration = Duration::from_millis(500);
        let server = one_node(None).await;
        let contact_point = server.contacts()[0];
        let (transport, pool) = transport(rig.near, Options::default());
        let mut config = Config::mcu();
        config.contact_points.push(Endpoint::Addr(contact_point));
        let session = start(config, transport, 1);
        let work = async |session: &Session| {
            session.ready().await?;
            let text = "SELECT key FROM system.local WHERE key = 'local'";
            let options = StatementOptions::new().with_timeout(DEADLINE).idempotent();
            let select = session.prepare(text).await?.with(options);
            let plugged_in = Cell::new(None);
            let cable = async {
                Timer::after_millis(100).await;
                rig.cable.plug(LinkState::Down);
                rig.cable.cut(true);
                Timer::after_millis(1_500).await;
                rig.cable.cut(false);
                rig.cable.plug(LinkState::Up);
                plugged_in.set(Some(transport.clock().now()));
            };
            let load = async {
                let mut failed = 0;
                loop {
                    let begin = transport.clock().now();
                    let outcome = session.execute(&select, ()).await;
                    let took = elapsed(begin, &transport);
                    assert!(took < DEADLINE + Duration::from_millis(400), "{took:?}");
                    match outcome {
                        Ok(_) if plugged_in.get().is_some() => break,
                        Ok(_) => Timer::after_millis(5).await,
                        Err(error) => {
                            let kind = error.kind();
                            let is_true = matches!(
                                kind,
                                ErrorKind::Timeout(_) | ErrorKind::Link(_) | ErrorKind::Unreachable
                            );
                            assert!(is_true, "{error}");
                            failed += 1;
                            Timer::after_millis(20).await;
                        }
                    }
                }
                assert!(failed > 0, "nothing was noticed");
                elapsed(plugged_in.get().unwrap(), &transport)
            };
            let ((), back_after) = join(cable, load).await;
            assert!(back_after < Duration::from_secs(2), "{back_after:?}");
            Ok(())
        };
        beside(
            relay(rig, contact_point.port()),
            with_session(session, work),
        )
        .await;
        assert_eq!(pool.free(), 2);
        server.stop().await;
    });
}
