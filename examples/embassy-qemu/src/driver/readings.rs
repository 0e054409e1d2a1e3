//! `mode=readings`: readings written and read back with prepared statements, which the size card
//! counts; with what one request takes, warm.

use messina_core::compact::Session;
use messina_core::drive::Transport;

use super::plant::{Readings, Step};
use super::{Failure, Plant};
use crate::board::executor::busy_ticks;
use crate::board::heap;
use crate::parameters::Parameters;
use crate::println;

/// Rounds before the figures are taken: all tablets are known by then.
const WARM_UP_MAX: u32 = 200;

/// Statements beside the two that are executed: eight are held.
const OTHERS: u8 = 6;

/// Runs the scenario on a table that is there.
pub async fn run<T: Transport + Copy>(plant: Plant<T>, fail: fn(Failure) -> !) -> ! {
    let busy = busy_ticks();
    plant
        .run_on(fail, async |session| {
            let session = session?;
            println!("ready_busy_ticks {}", busy_ticks().wrapping_sub(busy));
            work(session, plant.board.parameters).await
        })
        .await
}

async fn work(session: &Session, parameters: &Parameters) -> Result<(), Failure> {
    let count = parameters.count;
    let readings = Readings::prepare_beside(session, OTHERS).await?;
    for part in PARTS {
        let calls = heap::usage().calls;
        let count = if part.name == WARM_UP {
            count.min(WARM_UP_MAX)
        } else {
            count
        };
        for number in 0..count {
            for step in part.steps {
                readings.take(session, number, *step).await?;
            }
        }
        println!("{}_heap_calls {}", part.name, heap::usage().calls - calls);
    }
    println!("rows {count}");
    Ok(())
}

/// A part of the run. They go through one loop, so that a write and a read stand once in the image.
struct Part {
    name: &'static str,
    steps: &'static [Step],
}

const WARM_UP: &str = "warm_up";

const PARTS: [Part; 3] = [
    Part {
        name: WARM_UP,
        steps: &[Step::Write, Step::Check],
    },
    Part {
        name: "write",
        steps: &[Step::Write],
    },
    Part {
        name: "read",
        steps: &[Step::Check],
    },
];
