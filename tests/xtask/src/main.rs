//! `cargo xtask`: the commands of the project. `cargo xtask test` is what CI and a contributor run, the same
//! command; it sets up what it needs.
//!
//! Not a build system: every step is a command line that is printed before it runs and can be repeated by
//! hand. Invariant: nothing that was not run is reported as passed; a skip is printed with its reason, and
//! in CI it is a failure.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a command talks to its user")]

mod bench;
mod checks;
mod command;
mod context;
mod embedded;
mod examples;
mod fuzz;
mod hosts;
mod interop;
mod process_tree;
mod release;
mod simulation;
mod stage;
mod system;
mod targets;
mod tests_on_host;
mod toolchain;
mod traces;
mod wasm;
mod web;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::context::{Board, Context, Options};
use crate::stage::Plan;

/// The project's own commands.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", disable_version_flag = true)]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Everything that CI runs, stage by stage.
    Test {
        /// The inner loop, at most 8 minutes: formatting, lints, unit tests, tidy, 200 seeds.
        #[arg(long, conflicts_with = "only")]
        quick: bool,
        /// Run this stage alone; may repeat.
        #[arg(long, value_name = "STAGE", value_parser = stage_names())]
        only: Vec<String>,
        #[command(flatten)]
        common: Common,
    },
    /// `test`, and what only a release needs: every feature alone, longer simulation, packaging.
    Full {
        #[command(flatten)]
        common: Common,
    },
    /// The simulation alone.
    Sim {
        /// How many seeds to run.
        #[arg(long, default_value_t = simulation::SEEDS)]
        seeds: u32,
        /// Run one seed only; a failing run prints it.
        #[arg(long, conflicts_with = "seeds")]
        seed: Option<u64>,
    },
    /// Build for WASM, print sizes, run in every JavaScript host.
    Wasm {
        /// Keep the texts of panics, in a module that is larger than the one that ships.
        #[arg(long)]
        messages: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Build a Rust program with the links on the web, run it in Node.js.
    Web {
        #[command(flatten)]
        common: Common,
    },
    /// Build the npm package into `bindings-wasm/dist`, and nothing else.
    Package {
        #[command(flatten)]
        common: Common,
    },
    /// Run the examples in a browser and in a Worker by their tests.
    Examples {
        #[command(flatten)]
        common: Common,
    },
    /// Build the firmware, run it in QEMU against simulated clusters, hold its figures to their budgets.
    Embedded {
        /// A million of requests in the soak instead of thousands.
        #[arg(long)]
        full: bool,
        /// Write what is better than its budget down as the new one.
        #[arg(long)]
        lower: bool,
        /// Run this scenario alone.
        #[arg(long, value_name = "SCENARIO", value_parser = scenario_names())]
        only: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Replay recorded protocol traces here, in WASM, on a Cortex-M4 and on RISC-V: all must put out the same.
    Traces {
        #[command(flatten)]
        common: Common,
    },
    /// Run an image of the firmware in QEMU; `cargo run` in its folder calls this.
    Board {
        /// The image.
        image: PathBuf,
        /// What it is to do, such as `mode=readings`.
        words: Vec<String>,
    },
    /// Real Apache Cassandra and foreign drivers.
    Interop {
        #[command(flatten)]
        common: Common,
    },
    /// Throughput, or with `--counts` heap calls and instructions.
    Bench {
        /// Heap calls and instructions per request instead of throughput.
        #[arg(long)]
        counts: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Install what the other commands need, and nothing else.
    Setup {
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Clone, Copy, Args)]
struct Common {
    /// Install nothing: name what is missing and what was therefore not run.
    #[arg(long)]
    no_install: bool,
}

fn stage_names() -> clap::builder::PossibleValuesParser {
    stage::names().collect::<Vec<_>>().into()
}

fn scenario_names() -> clap::builder::PossibleValuesParser {
    embedded::names().collect::<Vec<_>>().into()
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let context = match Context::new(options(&cli.command)) {
        Ok(context) => context,
        Err(failure) => {
            println!("error: {failure}");
            return ExitCode::FAILURE;
        }
    };
    let plan = match cli.command {
        Task::Test { quick: true, .. } => Plan::quick(),
        Task::Test { only, .. } if !only.is_empty() => Plan::named(&only),
        Task::Test { .. } => Plan::all(),
        Task::Full { .. } => Plan::full(),
        Task::Sim { .. } => Plan::one("simulation", simulation::run),
        Task::Wasm { .. } => Plan::one("wasm", wasm::run),
        Task::Web { .. } => Plan::one("web", web::run),
        Task::Package { .. } => Plan::one("package", wasm::package_alone),
        Task::Examples { .. } => Plan::one("examples", wasm::examples_alone),
        Task::Embedded { .. } => Plan::one("embedded", embedded::run),
        Task::Traces { .. } => Plan::one("traces", traces::run),
        Task::Board { .. } => Plan::one("board", embedded::board),
        Task::Interop { .. } => Plan::one("interop", interop::run),
        Task::Bench { counts: true, .. } => Plan::one("counts", bench::counts),
        Task::Bench { counts: false, .. } => Plan::one("throughput", bench::throughput),
        Task::Setup { .. } => Plan::one("set-up", system::set_up),
    };
    plan.run(&context)
}

fn options(task: &Task) -> Options {
    let mut options = Options::default();
    match *task {
        Task::Test { quick, common, .. } => {
            options.no_install = common.no_install;
            options.quick = quick;
        }
        Task::Full { common } => {
            options.no_install = common.no_install;
            options.seeds = simulation::SEEDS_FULL;
            options.million = true;
        }
        Task::Sim { seeds, seed } => {
            options.seeds = seeds;
            options.seed = seed;
        }
        Task::Wasm { messages, common } => {
            options.no_install = common.no_install;
            options.messages = messages;
        }
        Task::Embedded {
            full,
            lower,
            ref only,
            common,
        } => {
            options.lower_budgets = lower;
            options.no_install = common.no_install;
            options.scenario.clone_from(only);
            options.million = full;
        }
        Task::Board {
            ref image,
            ref words,
        } => {
            options.board = Some(Board {
                image: image.clone(),
                words: words.clone(),
            });
        }
        Task::Package { common }
        | Task::Examples { common }
        | Task::Web { common }
        | Task::Traces { common }
        | Task::Interop { common }
        | Task::Bench { common, .. }
        | Task::Setup { common } => options.no_install = common.no_install,
    }
    options
}
