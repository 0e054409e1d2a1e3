//! Writes `memory.x` for the sizes asked for, so that the linker is the judge of "does it fit".
//!
//! `FLASH_KIB`, `RAM_KIB` and `HEAP_KIB` come from the environment. The template lives in a
//! subfolder because the linker prefers a `memory.x` in the working directory to ours.

use std::path::PathBuf;
use std::{env, fs};

const FLASH_KIB: u32 = 512;
const RAM_KIB: u32 = 128;
const HEAP_KIB: u32 = 48;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let memory = include_str!("linker/memory.x.in")
        .replace("@FLASH_KIB@", &kib("FLASH_KIB", FLASH_KIB).to_string())
        .replace("@RAM_KIB@", &kib("RAM_KIB", RAM_KIB).to_string());
    fs::write(out.join("memory.x"), memory).expect("write memory.x");
    fs::write(out.join("device.x"), include_str!("linker/device.x")).expect("write device.x");
    let heap = format!(
        "const HEAP_BYTES: usize = {} * 1024;\n",
        kib("HEAP_KIB", HEAP_KIB)
    );
    fs::write(out.join("heap_bytes.rs"), heap).expect("write heap_bytes.rs");

    println!("cargo:rustc-link-search={}", out.display());
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    println!("cargo:rustc-link-arg-bins=--nmagic");
    for file in ["linker/memory.x.in", "linker/device.x", "build.rs"] {
        println!("cargo:rerun-if-changed={file}");
    }
}

fn kib(variable: &str, default: u32) -> u32 {
    println!("cargo:rerun-if-env-changed={variable}");
    match env::var(variable) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{variable}={text} is not a number of KiB")),
        Err(_) => default,
    }
}
