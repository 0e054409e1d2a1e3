//! The same firmware on other processors: run where QEMU has a board with the network chip, else compiled. RISC-V, for
//! which there is none, replays the recorded traces, see [`traces`](crate::traces).

use super::emulator::Emulation;
use super::figures::{Bar, Figures};
use super::images::Images;
use super::scenarios;
use crate::command::Outcome;
use crate::context::Context;

/// A processor: its target, the machine that runs it, and what its flash is called.
struct Processor {
    target: &'static str,
    machine: Option<&'static str>,
    flash: &'static str,
}

const PROCESSORS: [Processor; 3] = [
    // A Cortex-M3.
    Processor {
        target: "thumbv7m-none-eabi",
        machine: Some("mps2-an385"),
        flash: "flash_driver_thumbv7m_bytes",
    },
    // The instructions of a Cortex-M0+, which the Cortex-M3 has too: no compare-and-swap.
    Processor {
        target: "thumbv6m-none-eabi",
        machine: Some("mps2-an385"),
        flash: "flash_driver_thumbv6m_bytes",
    },
    // A Cortex-M33.
    Processor {
        target: "thumbv8m.main-none-eabihf",
        machine: None,
        flash: "",
    },
];

/// Writes and reads on each of them; `images` are those of the Cortex-M4, which run on a Cortex-M7 as they are.
pub(super) fn run(context: &Context, images: &Images, figures: &mut Figures) -> Outcome {
    read_and_write(context, images, "mps2-an500")?;
    for processor in PROCESSORS {
        let names: &[&str] = match processor.machine {
            Some(_) => &["base", "card"],
            None => &["card"],
        };
        let images = Images::build_card(context, processor.target, names)?;
        let (Some(images), Some(machine)) = (images, processor.machine) else {
            continue;
        };
        let base = scenarios::without_driver(context, &images.path("base"), Some(machine))?;
        let base = base.number("flash_bytes")?;
        let card = read_and_write(context, &images, machine)?;
        figures.exact(
            processor.flash,
            card.saturating_sub(base),
            Bar::LowerIsBetter,
        );
    }
    Ok(())
}

/// Runs the readings and tells the flash of the image.
fn read_and_write(context: &Context, images: &Images, machine: &str) -> Outcome<u64> {
    let card = images.path("card");
    let mut readings = Emulation::new(&card, ["mode=readings", "count=200"].map(str::to_owned));
    readings.machine = machine.to_owned();
    let (printed, _cluster) = scenarios::on_three(context, readings)?;
    printed.number("flash_bytes")
}
