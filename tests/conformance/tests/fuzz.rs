//! Every fuzz target over its corpus and bent copies of it, each as a test of its own.
//!
//! `MESSINA_FUZZ_SECONDS=20` runs each target for 20 seconds (default 0.3), `MESSINA_FUZZ_SEED`
//! decides the bent copies, `MESSINA_FUZZ_INPUT` replays one input in hexadecimal.

use messina_conformance::fuzz::{Plan, TARGETS, run, target};

macro_rules! targets {
    ($($name:ident)+) => {
        $(#[test]
        fn $name() {
            println!("{}", run(target(stringify!($name)), &Plan::from_environment()));
        })+

        #[test]
        fn all_targets_are_run() {
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$(stringify!($name)),+]);
        }
    };
}

targets! { header response values cell offer framer segments rows negotiation connection tablets cluster
warm_start plane tunnel tunnel_pair relay_request relay_target relay_token relay_first_bytes relay_login }
