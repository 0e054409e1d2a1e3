//! Peers that no one here wrote: one Apache Cassandra node below our driver, foreign drivers above our simulated
//! cluster. The work is in `tests/interop`, which fetches its packages into the target folder.

use crate::command::Outcome;
use crate::context::Context;
use crate::system;

pub(crate) fn run(context: &Context) -> Outcome {
    for program in [
        system::JAVA,
        system::MAVEN,
        system::PYTHON,
        system::NODE,
        system::NPM,
    ] {
        if !system::need(context, program, "interop slice")? {
            return Ok(());
        }
    }
    context
        .cargo(["test", "--locked", "-p", "messina-interop"])
        .run_tests()?;
    context
        .cargo(["run", "--locked", "-p", "messina-interop", "--", "slice"])
        .run()
}
