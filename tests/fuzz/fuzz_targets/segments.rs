//! See the target of this name in `messina_conformance::fuzz`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use messina_conformance::fuzz::target;

fuzz_target!(|bytes: &[u8]| (target("segments").body)(bytes));
