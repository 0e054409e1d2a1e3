//! Shows the gateway on the host, with nothing plugged in: starts a simulated cluster of three nodes,
//! pulls the link, cuts the power in the middle of a write to flash, boots a board that does not know
//! the time, lets batches be sent twice, and compares the table with what was measured.
//!
//! `cargo run -p embassy-gateway [SEED]`. Time is virtual, so it takes no time; the same seed gives
//! the same run.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "printing is the point")]

use core::time::Duration;
use std::process::ExitCode;

use embassy_gateway::host::{Board, Chip, Cut, Cycle, Fate, Link, Scene, Tear};

fn main() -> ExitCode {
    let seed = std::env::args().nth(1).map_or(Ok(1), |seed| seed.parse());
    let Ok(seed) = seed else {
        println!("usage: embassy-gateway [SEED]");
        return ExitCode::from(2);
    };
    match Scene::play(seed, show) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("the simulation did not end: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn show(scene: Scene) -> bool {
    let chip = Chip::new(PAGES);
    println!("boot  link                         taken  to flash  written  batches  again  left");
    for (number, (link, board)) in (1..).zip(boots()) {
        scene.set_link(link);
        if link == Link::Flaky {
            scene.set_link(Link::Up);
            scene.flap(Duration::from_secs(2), 4);
        }
        let before = scene.model().taken.len();
        let cycle = scene.power_cycle(&chip, board).await;
        let taken = scene.model().taken.len() - before;
        print_cycle(number, link, taken, &cycle);
        // Longer than any change of the link that is still to come.
        scene.pause(Duration::from_secs(20)).await;
    }
    let model = scene.model();
    let stats = chip.stats();
    println!();
    println!(
        "flash           {} writes, {} pages erased",
        stats.writes, stats.erasures
    );
    println!("taken           {} readings", model.taken.len());
    println!(
        "lost in RAM     {} when the power went",
        model.count(Fate::Lost)
    );
    println!(
        "half in flash   {} when the power went",
        model.count(Fate::Open)
    );
    println!("kept in flash   {}", model.kept());
    match scene.compare().await {
        Ok(rows) => {
            println!("rows            {rows}, each with its own time and timestamp");
            println!("table           equals the model");
            true
        }
        Err(differs) => {
            println!("table           differs from the model: {differs}");
            false
        }
    }
}

/// What happens to the board: how its link is, how much it measures, when its power goes.
fn boots() -> [(Link, Board); 6] {
    let cut = |operation, tear| Some(Cut { operation, tear });
    let board = Board::new(40);
    let clockless = Board {
        clock_after: None,
        ..board
    };
    [
        (Link::Up, board),
        (
            Link::Down,
            Board {
                cut: cut(61, Tear::Half),
                ..board
            },
        ),
        (
            Link::Down,
            Board {
                cut: cut(40, Tear::Bits),
                ..clockless
            },
        ),
        (
            Link::Down,
            Board {
                readings: 12,
                drains: false,
                ..clockless
            },
        ),
        (
            Link::Flaky,
            Board {
                cut: cut(380, Tear::All),
                readings: 160,
                every: Duration::from_millis(150),
                ..board
            },
        ),
        (Link::Up, clockless),
    ]
}

fn print_cycle(number: u32, link: Link, taken: usize, cycle: &Cycle) {
    let link = match link {
        Link::Up => "up",
        Link::Down => "down",
        _ => "breaks",
    };
    let end = match cycle.was_cut {
        true => format!("cut in operation {}", cycle.operations),
        false => String::new(),
    };
    let (stored, gateway, left) = (cycle.store.stored, &cycle.gateway, cycle.left);
    let (written, batches, again) = (gateway.written, gateway.batches, gateway.failed);
    println!(
        "{number:>4}  {link:<7}{end:<21} {taken:>5} {stored:>9} {written:>8} {batches:>8} {again:>6} {left:>5}"
    );
}

/// Eight kilobytes: room for two hundred readings.
const PAGES: usize = 32;
