//! `mode=page`: one page of 1 MiB through a window of 2 KiB: all rows right, and the heap as it was.

use messina_core::compact::{Options, Session};
use messina_core::drive::Transport;

use super::plant::make_table;
use super::{Failure, Plant};
use crate::board::heap;
use crate::echo::pattern;
use crate::parameters::Parameters;
use crate::println;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS plant.archive (day int, number int, block blob, \
     PRIMARY KEY (day, number))";
const BLOCK_BYTES: usize = 240;

/// Runs the scenario.
pub async fn run<T: Transport + Copy>(plant: Plant<T>) -> Result<(), Failure> {
    plant
        .run(
            |_| (),
            async |session| work(session, plant.board.parameters).await,
        )
        .await
}

async fn work(session: &Session, parameters: &Parameters) -> Result<(), Failure> {
    let count = parameters.count;
    make_table(session, parameters.nodes).await?;
    session.query(TABLE, ()).await?;
    let insert = "INSERT INTO plant.archive (day, number, block) VALUES (1, ?, ?)";
    let insert = session.prepare(insert).await?;
    let mut block = [0; BLOCK_BYTES];
    for number in 0..count {
        fill(&mut block, number);
        session
            .execute(&insert, (number as i32, &block[..]))
            .await?;
    }
    let select = "SELECT number, block FROM plant.archive WHERE day = 1";
    let whole = Options::new().with_page_size(count as i32);
    let select = session.prepare(select).await?.with(whole);
    heap::restart_peak();
    let before = heap::usage().live_bytes;
    let mut page = session.stream(&select, ());
    let mut expected = 0;
    while let Some(row) = page.next_raw().await {
        let row = row?;
        let mut cells = row.cells();
        fill(&mut block, expected);
        let number = cells.next().flatten();
        let found = cells.next().flatten();
        if number != Some(&expected.to_be_bytes()[..]) || found != Some(&block[..]) {
            return Err(Failure::Found("a row came back changed"));
        }
        expected += 1;
    }
    println!("page_rows {expected}");
    println!("page_bytes {}", expected as usize * (BLOCK_BYTES + 12));
    println!("page_heap_bytes {}", heap::usage().peak_bytes - before);
    if expected == count {
        Ok(())
    } else {
        Err(Failure::Found("rows are missing"))
    }
}

fn fill(block: &mut [u8; BLOCK_BYTES], number: u32) {
    for (byte, at) in block.iter_mut().zip(number.wrapping_mul(256)..) {
        *byte = pattern(at);
    }
}
