//! The scenarios: which cluster, which image, which figures.

use core::time::Duration;
use std::path::Path;

use super::cluster::Cluster;
use super::echo_server::EchoServer;
use super::emulator::{Emulation, Printed};
use super::figures::{Bar, Figures};
use super::liar::Liar;
use crate::command::{Failure, Outcome};
use crate::context::Context;

/// Three nodes of two shards, as the firmware's scenarios want them.
const THREE: [&str; 4] = ["--nodes", "3", "--shards", "2"];
/// One node that answers every request alike.
const LEAN: [&str; 5] = ["--nodes", "1", "--shards", "1", "--lean"];
/// Instructions in a tick of the board's counter when the clock counts them.
pub(super) const INSTRUCTIONS_PER_TICK: u64 = 5;

/// A run against a cluster of three.
pub(super) fn on_three(context: &Context, emulation: Emulation<'_>) -> Outcome<(Printed, Cluster)> {
    on_cluster(context, &THREE, 3, emulation)
}

fn on_cluster(
    context: &Context,
    options: &[&str],
    nodes: usize,
    mut emulation: Emulation<'_>,
) -> Outcome<(Printed, Cluster)> {
    let mut cluster = Cluster::start(context, options)?;
    if emulation.words.iter().any(|word| word == "mode=readings") {
        cluster.make_table(context)?;
    }
    emulation.words.push(format!("port={}", cluster.port));
    emulation.words.push(format!("nodes={nodes}"));
    let printed = emulation.run(context, |event| cluster.happen(event))?;
    Ok((printed, cluster))
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

/// Runs the image without the driver, which does with the network what a small product would.
pub(super) fn without_driver(
    context: &Context,
    base: &Path,
    machine: Option<&str>,
) -> Outcome<Printed> {
    let server = EchoServer::start()?;
    let port = format!("port={}", server.port());
    let mut hello = Emulation::new(base, ["mode=hello".to_owned(), port]);
    if let Some(machine) = machine {
        hello.machine = machine.to_owned();
    }
    hello.run_alone(context)
}

/// Runs the base and the card: flash that the driver adds, heap, stack.
pub(super) fn size_card(
    context: &Context,
    base: &Path,
    card: &Path,
    figures: &mut Figures,
) -> Outcome {
    let base = without_driver(context, base, None)?;
    let readings = Emulation::new(card, words(&["mode=readings"]));
    let (card, _cluster) = on_three(context, readings)?;
    let added = |key: &str| Outcome::Ok(card.number(key)?.saturating_sub(base.number(key)?));
    figures.exact(
        "flash_driver_bytes",
        added("flash_bytes")?,
        Bar::AtMost(60 << 10),
    );
    figures.exact(
        "flash_bytes",
        card.number("flash_bytes")?,
        Bar::AtMost(128 << 10),
    );
    let ram = card.number("static_bytes")?
        + card.number("heap_arena_bytes")?
        + card.number("stack_peak_bytes")?;
    figures.exact("ram_bytes", ram, Bar::AtMost(64 << 10));
    figures.exact(
        "static_driver_bytes",
        added("static_bytes")?,
        Bar::LowerIsBetter,
    );
    figures.noisy(
        "heap_peak_bytes",
        card.number("heap_peak_bytes")?,
        Bar::AtMost(24 << 10),
        5,
    );
    figures.exact(
        "write_heap_calls",
        card.number("write_heap_calls")?,
        Bar::AtMost(0),
    );
    figures.exact(
        "read_heap_calls",
        card.number("read_heap_calls")?,
        Bar::AtMost(0),
    );
    figures.noisy(
        "stack_peak_bytes",
        card.number("stack_peak_bytes")?,
        Bar::AtMost(8 << 10),
        5,
    );
    Ok(())
}

/// The same images without texts of panics: flash alone, and that they run.
pub(super) fn smallest_card(
    context: &Context,
    base: &Path,
    card: &Path,
    figures: &mut Figures,
) -> Outcome {
    let base = without_driver(context, base, None)?;
    let (card, _cluster) = on_three(context, Emulation::new(card, words(&["mode=readings"])))?;
    let (card, base) = (card.number("flash_bytes")?, base.number("flash_bytes")?);
    let added = card.saturating_sub(base);
    figures.exact("flash_driver_smallest_bytes", added, Bar::AtMost(45 << 10));
    figures.exact("flash_smallest_bytes", card, Bar::AtMost(128 << 10));
    Ok(())
}

/// Readings while tablets move, leaders change, a node dies and the cable is pulled.
pub(super) fn sensors(context: &Context, image: &Path, figures: &mut Figures) -> Outcome {
    let emulation = Emulation::new(image, words(&["mode=sensors"]));
    let (printed, cluster) = on_three(context, emulation)?;
    for key in ["rows", "rows_without_a_node", "rows_after_the_cable"] {
        if printed.number(key)? != 1000 {
            return Err(Failure::new(format!("{key} is not 1000")));
        }
    }
    let told = cluster.between("settled", "told_of_move", "payloads")?;
    if told == 0 {
        return Err(Failure::new("nobody was told that tablets had moved"));
    }
    let still_told = cluster.between("told_of_move", "moved", "payloads")?;
    figures.exact("told_again_after_a_move", still_told, Bar::AtMost(0));
    let needing = cluster.between("told_of_leader", "led", "needing_leader")?;
    let led = cluster.between("told_of_leader", "led", "at_leader")?;
    let share = (led * 100).checked_div(needing);
    let share = share.ok_or_else(|| Failure::new("no request was for a leader"))?;
    figures.exact("at_leader_after_a_change_percent", share, Bar::AtLeast(100));
    let errors = printed.number("killed_errors")?;
    figures.bounded("errors_after_a_kill", errors, 4);
    Ok(())
}

/// Sessions one after the other, a thousand requests each.
pub(super) fn soak(context: &Context, image: &Path, figures: &mut Figures) -> Outcome {
    let count = if context.options.million {
        1_000_000
    } else {
        20_000
    };
    let mut emulation = Emulation::new(image, words(&["mode=soak"]));
    emulation.words.push(format!("count={count}"));
    emulation.limit = Duration::from_secs(60 + count / 400);
    let (printed, _cluster) = on_cluster(context, &THREE, 3, emulation)?;
    let left = printed.number("heap_live_bytes")? - printed.number("soak_live_before")?;
    println!("soak: {} requests", printed.number("requests")?);
    figures.exact("soak_heap_left_bytes", left, Bar::AtMost(0));
    figures.noisy(
        "soak_heap_peak_bytes",
        printed.number("heap_peak_bytes")?,
        Bar::AtMost(24 << 10),
        5,
    );
    Ok(())
}

/// A page of 1 MiB.
pub(super) fn page(context: &Context, image: &Path, figures: &mut Figures) -> Outcome {
    let emulation = Emulation::new(image, words(&["mode=page", "count=4162"]));
    let (printed, _cluster) = on_three(context, emulation)?;
    let (bytes, heap) = (
        printed.number("page_bytes")?,
        printed.number("page_heap_bytes")?,
    );
    figures.exact("page_bytes", bytes, Bar::AtLeast(1 << 20));
    figures.noisy("page_heap_bytes", heap, Bar::AtMost(4 << 10), 50);
    Ok(())
}

/// INSERTs at depth eight against an echo of the same bytes: frames for each second that the processor works, which
/// does not depend on how busy this machine is.
pub(super) fn pipeline(context: &Context, image: &Path, figures: &mut Figures) -> Outcome {
    const COUNT: u64 = 2_000;
    let list = [
        "mode=pipeline".to_owned(),
        format!("count={COUNT}"),
        "seed=1".to_owned(),
    ];
    let mut emulation = Emulation::new(image, list);
    emulation.counts_instructions = true;
    let (printed, cluster) = on_cluster(context, &LEAN, 1, emulation)?;
    let sizes = Sizes::between(&cluster, "pipeline_begin", "pipeline_end", COUNT)?;
    let echo = sizes.echo(context, image, COUNT, 8, true)?;
    let driver = printed.number("pipeline_busy_ticks")?.max(1);
    let echo = echo.number("echo_busy_ticks")?.max(1);
    println!(
        "{} bytes up and {} down: {} instructions a frame, echo {}",
        sizes.request,
        sizes.answer,
        driver * INSTRUCTIONS_PER_TICK / COUNT,
        echo * INSTRUCTIONS_PER_TICK / COUNT
    );
    figures.noisy(
        "frames_of_echo_percent",
        echo * 100 / driver,
        Bar::AtLeast(60),
        10,
    );
    let calls = printed.number("pipeline_heap_calls")?;
    figures.exact("pipeline_heap_calls", calls, Bar::AtMost(0));
    Ok(())
}

/// Instructions of an INSERT and of a row, above an echo of the same bytes.
pub(super) fn cost(context: &Context, image: &Path, figures: &mut Figures) -> Outcome {
    let mut emulation = Emulation::new(image, words(&["mode=cost", "count=500", "seed=1"]));
    emulation.counts_instructions = true;
    // Not the lean cluster, which has one row only.
    let (printed, cluster) = on_cluster(context, &["--nodes", "1", "--shards", "1"], 1, emulation)?;

    let sizes = Sizes::between(&cluster, "insert_begin", "insert_end", 500)?;
    let echo = sizes.echo(context, image, 500, 1, true)?;
    let ticks = |key| Outcome::Ok(printed.number(key)? * INSTRUCTIONS_PER_TICK);
    let of_echo = echo.number("echo_busy_ticks")? * INSTRUCTIONS_PER_TICK;
    let insert = ticks("insert_busy_ticks")?.saturating_sub(of_echo) / 500;
    println!("an echo of the same bytes: {} instructions", of_echo / 500);
    figures.noisy("insert_instructions", insert, Bar::AtMost(9_000), 5);

    let (pages, rows) = (printed.number("pages")?, printed.number("page_rows")?);
    let sizes = Sizes::between(&cluster, "rows_begin", "rows_end", pages)?;
    let echo = sizes.echo(context, image, pages, 1, true)?;
    let of_echo = echo.number("echo_busy_ticks")? * INSTRUCTIONS_PER_TICK;
    let above = ticks("rows_busy_ticks")?.saturating_sub(of_echo);
    figures.noisy(
        "row_instructions",
        above / (pages * rows),
        Bar::AtMost(120),
        3,
    );
    Ok(())
}

/// Five seconds without a cable, under load.
pub(super) fn cable(context: &Context, image: &Path, figures: &mut Figures) -> Outcome {
    let emulation = Emulation::new(image, words(&["mode=cable"]));
    let (printed, _cluster) = on_three(context, emulation)?;
    let milliseconds = |key| Outcome::Ok(printed.number(key)?.div_ceil(1000));
    let longest = milliseconds("cable_longest_us")?;
    figures.bounded("cable_longest_request_ms", longest, 2_050);
    let service = milliseconds("cable_service_us")?;
    figures.bounded("cable_service_again_ms", service, 1_000);
    let untrue = printed.number("cable_untrue_errors")?;
    figures.exact("cable_untrue_errors", untrue, Bar::AtMost(0));
    Ok(())
}

/// Store and forward: the board is reset at moments of chance, and the cable pulled in between; in the end the table
/// is compared with what was measured.
pub(super) fn gateway(context: &Context, image: &Path, figures: &mut Figures) -> Outcome {
    let (printed, _cluster) = on_three(context, Emulation::new(image, Vec::new()))?;
    let boots = printed.number("boots")?;
    if boots < 8 {
        return Err(Failure::new(format!("the board was booted {boots} times")));
    }
    if printed.number("rows")? < printed.number("kept")? {
        return Err(Failure::new("fewer rows than readings that were kept"));
    }
    let missing = printed.number("missing")?;
    figures.exact("gateway_missing_readings", missing, Bar::AtMost(0));
    let flash = printed.number("flash_bytes")?;
    figures.exact("gateway_flash_bytes", flash, Bar::LowerIsBetter);
    Ok(())
}

/// A node that announces answers of absurd lengths, and a machine with 64 KiB of memory.
pub(super) fn absurd(context: &Context, image: &Path, figures: &mut Figures) -> Outcome {
    let mut cluster = Cluster::start(context, &["--nodes", "1", "--shards", "1"])?;
    let liar = Liar::start(cluster.port)?;
    let image = image.with_file_name("absurd");
    let mut emulation = Emulation::new(&image, words(&["mode=absurd"]));
    emulation.words.push(format!("port={}", liar.port()));
    let mut lies = 0;
    let printed = emulation.run(context, |event| match event.strip_prefix("absurd ") {
        Some(length) => {
            let length = u32::from_str_radix(length, 16);
            let length = length.map_err(|error| Failure::new(error.to_string()))?;
            lies += u32::from(liar.lie(length));
            Ok(())
        }
        None => cluster.happen(event),
    })?;
    if lies == 0 || liar.left() != lies {
        let text = format!(
            "{lies} lies, behind which {} connections were closed",
            liar.left()
        );
        return Err(Failure::new(text));
    }
    let milliseconds = |key| Outcome::Ok(printed.number(key)?.div_ceil(1000));
    let failed = milliseconds("absurd_failed_us")?;
    figures.noisy("absurd_failed_ms", failed, Bar::AtMost(100), 100);
    let service = milliseconds("absurd_service_us")?;
    figures.noisy("absurd_service_again_ms", service, Bar::AtMost(1_000), 100);
    let bytes = printed.number("absurd_heap_bytes")?;
    // What is held at that moment depends on what had come by then.
    figures.noisy("absurd_heap_bytes", bytes, Bar::AtMost(4 << 10), 100);
    Ok(())
}

/// Bytes of one request and of its answer, as the cluster counted them.
struct Sizes {
    request: u64,
    answer: u64,
}

impl Sizes {
    fn between(cluster: &Cluster, from: &str, to: &str, requests: u64) -> Outcome<Self> {
        let each = |counter| Outcome::Ok(cluster.between(from, to, counter)? / requests);
        Ok(Self {
            request: each("bytes_received")?,
            answer: each("bytes_sent")?,
        })
    }

    fn echo(
        &self,
        context: &Context,
        image: &Path,
        count: u64,
        depth: u64,
        counts_instructions: bool,
    ) -> Outcome<Printed> {
        let server = EchoServer::start()?;
        let list = [
            "mode=echo".to_owned(),
            format!("port={}", server.port()),
            format!("count={count}"),
            format!("depth={depth}"),
            format!("request={}", self.request),
            format!("answer={}", self.answer),
            "seed=1".to_owned(),
        ];
        let mut emulation = Emulation::new(image, list);
        emulation.counts_instructions = counts_instructions;
        emulation.run_alone(context)
    }
}
