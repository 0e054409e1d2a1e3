//! `mode=soak`: `count` requests, writes and reads in turn, with a new session every 1,000. What lives
//! on the heap afterwards is what lived before.

use embassy_time::Instant;
use messina_core::drive::Transport;

use super::plant::{Readings, make_table};
use super::{Failure, Plant};
use crate::board::heap;
use crate::println;

/// Requests of one session.
const REQUESTS: u32 = 1_000;

/// Runs the scenario.
pub async fn run<T: Transport + Copy>(plant: Plant<T>) -> Result<(), Failure> {
    let parameters = plant.board.parameters;
    let count = parameters.count;
    let (begin, live) = (Instant::now(), heap::usage().live_bytes);
    let mut done = 0;
    while done < count {
        plant
            .run(
                |_| (),
                async |session| {
                    if done == 0 {
                        make_table(session, parameters.nodes).await?;
                    }
                    let readings = Readings::prepare(session).await?;
                    for number in 0..REQUESTS / 2 {
                        readings.write(session, number).await?;
                        readings.check(session, number).await?;
                    }
                    Ok(())
                },
            )
            .await?;
        done += REQUESTS;
        if heap::usage().live_bytes != live {
            return Err(Failure::Found("a session left something on the heap"));
        }
    }
    println!("requests {done}");
    println!("sessions {}", done / REQUESTS);
    println!("soak_us {}", begin.elapsed().as_micros());
    println!("soak_live_before {live}");
    Ok(())
}
