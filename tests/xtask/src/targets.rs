//! Builds core, and the gateway of the examples, for targets without an operating system. A host build cannot prove
//! `no_std`: there `std` is always linked. These builds can, and two of the targets have no compare-and-swap either.
//! On three of them recorded traces are replayed too.

use crate::command::Outcome;
use crate::context::Context;
use crate::toolchain::Toolchain;
use crate::traces;

pub(crate) const TARGETS: [&str; 4] = [
    "thumbv7em-none-eabihf",
    "thumbv6m-none-eabi",
    "riscv32imc-unknown-none-elf",
    "wasm32-unknown-unknown",
];

pub(crate) fn run(context: &Context) -> Outcome {
    for target in TARGETS {
        let Some(toolchain) = Toolchain::for_target(context, target)? else {
            continue;
        };
        toolchain
            .cargo(
                context,
                [
                    "build",
                    "--locked",
                    "-p",
                    "messina-core",
                    "--no-default-features",
                ],
            )
            .args(["--target", target])
            .run()?;
        // The gateway has a board, not a page.
        if target != "wasm32-unknown-unknown" {
            let gateway = ["build", "--locked", "-p", "embassy-gateway", "--lib"];
            let gateway = toolchain.cargo(context, gateway);
            let gateway = gateway.args(["--no-default-features", "--target", target]);
            gateway.run()?;
        }
    }
    traces::run(context)
}
