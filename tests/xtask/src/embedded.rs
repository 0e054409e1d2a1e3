//! The firmware: `examples/embassy-qemu` built for several processors, run in QEMU against simulated clusters on
//! loopback, and its figures held to their budgets.

mod cluster;
mod echo_server;
mod emulator;
mod encrypted;
mod figures;
mod images;
mod liar;
mod processors;
mod scenarios;

use std::path::Path;

use crate::command::{Failure, Outcome};
use crate::context::Context;
use crate::system;
use cluster::Cluster;
use emulator::Emulation;
use figures::Figures;
use images::{Images, MANIFEST};

const CORTEX_M4F: &str = "thumbv7em-none-eabihf";

type Scenario = fn(&Context, &Path, &mut Figures) -> Outcome;

/// By the names of `--only`.
const SCENARIOS: &[(&str, Scenario)] = &[
    ("cost", scenarios::cost),
    ("pipeline", scenarios::pipeline),
    ("page", scenarios::page),
    ("sensors", scenarios::sensors),
    ("cable", scenarios::cable),
    ("absurd", scenarios::absurd),
    ("soak", scenarios::soak),
];

/// What `--only` takes.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ["card", "gateway", "processors", "tls"]
        .into_iter()
        .chain(SCENARIOS.iter().map(|(name, _)| *name))
}

pub(crate) fn run(context: &Context) -> Outcome {
    context.require(&[MANIFEST])?;
    images::lint(context, CORTEX_M4F)?;
    let small = Images::build_card(context, CORTEX_M4F, &["base", "card"])?;
    let images = Images::build(context, CORTEX_M4F, &["absurd", "fw", "gateway"])?;
    let (Some(small), Some(images)) = (small, images) else {
        return Ok(());
    };
    if !system::need(context, system::QEMU_ARM, "firmware in QEMU")? {
        return Ok(());
    }
    Cluster::build(context)?;
    let mut figures = Figures::default();
    let [base, card] = ["base", "card"].map(|name| small.path(name));
    let firmware = images.path("fw");
    if is_wanted(context, "card") {
        size_card(context, &base, &card, &mut figures)?;
    }
    for (name, scenario) in SCENARIOS {
        if is_wanted(context, name) {
            scenario(context, &firmware, &mut figures)?;
        }
    }
    if is_wanted(context, "gateway") {
        scenarios::gateway(context, &images.path("gateway"), &mut figures)?;
    }
    if is_wanted(context, "processors") {
        processors::run(context, &small, &mut figures)?;
    }
    if is_wanted(context, "tls") {
        let Some(images) = Images::build_tls(context, CORTEX_M4F)? else {
            return Ok(());
        };
        let plain = Emulation::new(&card, ["mode=boot".to_owned()]).run_alone(context)?;
        let plain = plain.number("flash_bytes")?;
        encrypted::run(context, &images.path("tls"), plain, &mut figures)?;
    }
    figures.judge(context)
}

fn is_wanted(context: &Context, name: &str) -> bool {
    let only = context.options.scenario.as_deref();
    only.is_none_or(|only| only == name)
}

/// What `cargo run` in the firmware's folder does: the sensors, unless the words say otherwise, against a simulated
/// cluster of three, unless they name a port.
pub(crate) fn board(context: &Context) -> Outcome {
    let Some(board) = &context.options.board else {
        return Err(Failure::new("no image was named"));
    };
    if !system::need(context, system::QEMU_ARM, "firmware in QEMU")? {
        return Ok(());
    }
    let has = |key: &str| board.words.iter().any(|word| word.starts_with(key));
    let mut emulation = Emulation::new(&board.image, board.words.iter().cloned());
    if !has("mode=") {
        emulation.words.push("mode=sensors".to_owned());
    }
    if let Some(machine) = board
        .words
        .iter()
        .find_map(|word| word.strip_prefix("machine="))
    {
        emulation.machine = format!("mps2-{machine}");
    }
    let is_alone = ["mode=boot", "mode=hello", "mode=echo", "port="]
        .iter()
        .any(|key| has(key));
    let printed = if is_alone {
        emulation.run_alone(context)?
    } else {
        Cluster::build(context)?;
        scenarios::on_three(context, emulation)?.0
    };
    let flash = printed.number("flash_bytes")?;
    println!("{} KiB of flash", flash.div_ceil(1024));
    Ok(())
}

/// What the driver takes, as it is built usually and as small as can be.
fn size_card(context: &Context, base: &Path, card: &Path, figures: &mut Figures) -> Outcome {
    scenarios::size_card(context, base, card, figures)?;
    if let Some(images) = Images::build_smallest(context, CORTEX_M4F, &["base", "card"])? {
        let [base, card] = ["base", "card"].map(|name| images.path(name));
        scenarios::smallest_card(context, &base, &card, figures)?;
    }
    Ok(())
}
