//! `mode=absurd`: a node gives answers of lengths that this memory does not have: 64 KiB, which are
//! skipped, then some that no memory has, or that are none. The request fails, at once where nothing
//! can be skipped; nothing is set aside for its answer; and the next ones are served.

use embassy_time::{Duration, Instant, Timer};
use messina_core::compact::Session;
use messina_core::drive::Transport;
use messina_core::error::{ErrorKind, LimitField, PeerMisbehaved};

use super::plant::{Readings, make_table};
use super::{Failure, Plant};
use crate::board::heap;
use crate::console::ask;
use crate::println;

/// What the node is to announce, and what is said of it.
const LENGTHS: [(&str, ErrorKind); 5] = [
    ("absurd 00010001", TOO_LONG),
    ("absurd 10000001", TOO_LONG),
    ("absurd 7fffffff", TOO_LONG),
    ("absurd 80000000", NO_LENGTH),
    ("absurd ffffffff", NO_LENGTH),
];
const TOO_LONG: ErrorKind = ErrorKind::Limit(LimitField::FrameLen);
const NO_LENGTH: ErrorKind = ErrorKind::PeerMisbehaved(PeerMisbehaved::BadHeader);

/// Within this there is service again.
const RECOVERY_MAX: Duration = Duration::from_secs(5);

/// Runs the scenario.
pub async fn run<T: Transport + Copy>(plant: Plant<T>) -> Result<(), Failure> {
    plant
        .run(
            |_| (),
            async |session| work(session, plant.board.parameters.nodes).await,
        )
        .await
}

async fn work(session: &Session, nodes: u8) -> Result<(), Failure> {
    make_table(session, nodes).await?;
    let readings = Readings::prepare(session).await?;
    // Not to be repeated, so that its error is seen.
    let text = "INSERT INTO plant.readings (sensor, at, celsius) VALUES (?, ?, ?)";
    let insert = session.prepare(text).await?;
    readings.write(session, 0).await?;
    readings.check(session, 0).await?;
    let (mut failed_us, mut service_us, mut bytes) = (0, 0, 0);
    for (announce, expected) in LENGTHS {
        ask(announce).await;
        heap::restart_peak();
        let (before, begin) = (heap::usage().live_bytes, Instant::now());
        let outcome = session.execute(&insert, (1_i32, 1_i64, 1.5_f64)).await;
        failed_us = failed_us.max(begin.elapsed().as_micros());
        bytes = bytes.max(heap::usage().peak_bytes - before);
        match outcome {
            Err(error) if error.kind() == expected => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Err(Failure::Found("an absurd answer was believed")),
        }
        let begin = Instant::now();
        while readings.check(session, 0).await.is_err() {
            if begin.elapsed() > RECOVERY_MAX {
                return Err(Failure::Found("no service behind an absurd answer"));
            }
            Timer::after_millis(10).await;
        }
        service_us = service_us.max(begin.elapsed().as_micros());
    }
    println!("absurd_failed_us {failed_us}");
    println!("absurd_service_us {service_us}");
    println!("absurd_heap_bytes {bytes}");
    Ok(())
}
