//! `mode=cost`: INSERTs one by one, then rows in one page, each with the ticks of the counter in which
//! the processor worked. Run with `-icount shift=3` a tick is five instructions.
//!
//! What a row costs is all that the processor did from the request to the end of its page, above what
//! it did for an echo of as many bytes through windows of the same sizes, with as many sockets: each
//! segment's way up, the copy out of the socket, the reader's wakes, and the row itself. In a page of a
//! thousand rows the request, which the INSERTs weigh, is a small part of that, as it is where many
//! rows are read. The far end sends as much as the window takes, here as there, so both have the same
//! segments; how long either waits for them does not count, as long as nobody works while waiting.

use messina_core::compact::{Options, Prepared, Session};
use messina_core::drive::Transport;

use super::plant::{Readings, make_table};
use super::{Failure, Plant};
use crate::board::executor::busy_ticks;
use crate::console::ask;
use crate::parameters::Parameters;
use crate::println;

/// Rows of one page.
const ROWS: u32 = 1_000;

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
    let readings = Readings::prepare(session).await?;
    for number in 0..200 {
        readings.write(session, number).await?;
    }
    ask("stats insert_begin").await;
    let busy = busy_ticks();
    for number in 0..count {
        readings.write(session, number).await?;
    }
    println!("insert_busy_ticks {}", busy_ticks().wrapping_sub(busy));
    ask("stats insert_end").await;

    let text = "INSERT INTO plant.readings (sensor, at, celsius) VALUES (?, ?, ?)";
    let insert = session.prepare(text).await?;
    for number in 0..ROWS {
        let row = (-1_i32, i64::from(number), whole(i64::from(number)));
        session.execute(&insert, row).await?;
    }
    let text = "SELECT sensor, at, celsius FROM plant.readings WHERE sensor = ?";
    let whole = Options::new().with_page_size(ROWS as i32);
    let select = session.prepare(text).await?.with(whole);
    read_page(session, &select).await?;
    ask("stats rows_begin").await;
    let busy = busy_ticks();
    for _ in 0..PAGES {
        read_page(session, &select).await?;
    }
    println!("rows_busy_ticks {}", busy_ticks().wrapping_sub(busy));
    println!("pages {PAGES}");
    println!("page_rows {ROWS}");
    ask("stats rows_end").await;
    Ok(())
}

const PAGES: u32 = 20;

/// Of a page: rows, and their numbers with the bits of their last cells.
const SUMS: (u32, u64) = {
    let (mut at, mut sum) = (0, 0_u64);
    while at < ROWS as i64 {
        sum = sum.wrapping_add(at as u64);
        sum = sum.wrapping_add(whole(at).to_bits());
        at += 1;
    }
    (ROWS, sum)
};

/// A number that no arithmetic is needed for, which the processor lacks.
const fn whole(number: i64) -> f64 {
    f64::from_bits(0x4030_0000_0000_0000 | number as u64)
}

async fn read_page(session: &Session, select: &Prepared) -> Result<(), Failure> {
    let mut page = session.stream(select, (-1_i32,));
    // Sums, so that little is weighed but the reading: each row has its number twice.
    let (mut rows, mut sum) = (0_u32, 0_u64);
    while let Some(row) = page.next::<(i32, i64, f64)>().await {
        let (sensor, at, celsius) = row?;
        rows = rows.wrapping_sub(sensor as u32);
        sum = sum.wrapping_add(at as u64).wrapping_add(celsius.to_bits());
    }
    if (rows, sum) == SUMS {
        Ok(())
    } else {
        Err(Failure::Found("rows are missing, or have changed"))
    }
}
