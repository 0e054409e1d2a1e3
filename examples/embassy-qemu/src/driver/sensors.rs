//! `mode=sensors`: readings written and read back while the cluster changes: a tablet moves, a leader
//! changes, a node is killed and comes back, the cable is pulled.
//!
//! The events are asked for on the console; whoever answers also looks, on the cluster's side, where the
//! requests of each phase went.

use embassy_time::{Duration, Instant, Timer};
use messina_core::compact::Session;
use messina_core::drive::Transport;
use messina_core::error::Error;

use super::plant::{Readings, make_table};
use super::{Failure, Plant};
use crate::console::ask;
use crate::parameters::Parameters;
use crate::println;

/// Within this the service must be there again after a node or the cable went.
const RECOVERY_MAX: Duration = Duration::from_secs(20);

/// Runs the scenario.
pub async fn run<T: Transport + Copy>(plant: Plant<T>) -> Result<(), Failure> {
    let begin = Instant::now();
    plant
        .run(
            |_| (),
            async |session| {
                println!("ready_us {}", begin.elapsed().as_micros());
                work(session, plant.board.parameters).await
            },
        )
        .await
}

async fn work(session: &Session, parameters: &Parameters) -> Result<(), Failure> {
    let count = parameters.count;
    make_table(session, parameters.nodes).await?;
    let readings = Readings::prepare(session).await?;
    let begin = Instant::now();
    for number in 0..count {
        readings.write(session, number).await?;
    }
    println!("writes_us {}", begin.elapsed().as_micros());
    ask("stats learned").await;
    check_all(&readings, session, count).await?;
    println!("rows {count}");
    ask("stats settled").await;

    ask("move_tablet").await;
    check_all(&readings, session, count).await?;
    ask("stats told_of_move").await;
    check_all(&readings, session, count).await?;
    ask("stats moved").await;

    ask("set_leader").await;
    check_all(&readings, session, count).await?;
    ask("stats told_of_leader").await;
    check_all(&readings, session, count).await?;
    ask("stats led").await;

    ask("kill").await;
    recover("killed", &readings, session).await?;
    check_all(&readings, session, count).await?;
    println!("rows_without_a_node {count}");
    ask("start").await;

    ask("cable_off").await;
    Timer::after_secs(1).await;
    ask("cable_on").await;
    recover("cable", &readings, session).await?;
    check_all(&readings, session, count).await?;
    println!("rows_after_the_cable {count}");
    Ok(())
}

async fn check_all(readings: &Readings, session: &Session, count: u32) -> Result<(), Failure> {
    for number in 0..count {
        readings.check(session, number).await?;
    }
    Ok(())
}

/// Writes until a write of each of some sensors went through, and prints how long that took and how
/// many failed on the way.
async fn recover(what: &str, readings: &Readings, session: &Session) -> Result<(), Failure> {
    let begin = Instant::now();
    let (mut number, mut errors) = (0, 0_u32);
    while number < 100 {
        let outcome: Result<(), Error> = readings.write(session, number).await;
        match outcome {
            Ok(()) => number += 1,
            Err(error) if begin.elapsed() > RECOVERY_MAX => return Err(error.into()),
            Err(_) => {
                errors += 1;
                Timer::after_millis(10).await;
            }
        }
    }
    println!("{what}_recovered_us {}", begin.elapsed().as_micros());
    println!("{what}_errors {errors}");
    Ok(())
}
