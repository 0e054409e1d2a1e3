//! The memory map of the emulated machine, and the linker's script.

use std::path::PathBuf;
use std::{env, fs};

/// `mps2-an386`: code and data have 4 MiB each.
const ARM: &str = "MEMORY
{
  FLASH (rx)  : ORIGIN = 0x00000000, LENGTH = 4M
  RAM   (rwx) : ORIGIN = 0x20000000, LENGTH = 4M
}
";

/// `virt`: all is RAM, loaded by the emulator.
const RISCV: &str = "MEMORY
{
  RAM (rwx) : ORIGIN = 0x80000000, LENGTH = 16M
}
REGION_ALIAS(\"REGION_TEXT\", RAM);
REGION_ALIAS(\"REGION_RODATA\", RAM);
REGION_ALIAS(\"REGION_DATA\", RAM);
REGION_ALIAS(\"REGION_BSS\", RAM);
REGION_ALIAS(\"REGION_HEAP\", RAM);
REGION_ALIAS(\"REGION_STACK\", RAM);
";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let architecture = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let (memory, arguments) = match (architecture.as_str(), env::var("CARGO_CFG_TARGET_OS")) {
        ("arm", Ok(system)) if system == "none" => (ARM, &["-Tlink.x", "--nmagic"][..]),
        ("riscv32", Ok(system)) if system == "none" => (RISCV, &["-Tmemory.x", "-Tlink.x"][..]),
        _ => return,
    };
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("memory.x"), memory).expect("write memory.x");
    println!("cargo:rustc-link-search={}", out.display());
    for argument in arguments {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}
