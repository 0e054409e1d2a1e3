//! Writes `memory.x` for each image, so that the linker is the judge of "does it fit".
//!
//! `FLASH_KIB` and `RAM_KIB` in the environment stand in for the sizes below, for all images alike.
//! The template lives in a subfolder because the linker prefers a `memory.x` in the working directory
//! to ours.

use std::path::PathBuf;
use std::{env, fs};

/// Flash and RAM that each image must fit, in KiB.
const IMAGES: [(&str, u32, u32); 6] = [
    ("base", 128, 64),
    ("card", 128, 64),
    ("fw", 256, 96),
    ("gateway", 384, 128),
    ("tls", 512, 192),
    ("absurd", 384, 64),
];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("device.x"), include_str!("linker/device.x")).expect("write device.x");
    println!("cargo:rustc-link-search={}", out.display());
    for (image, flash, ram) in IMAGES {
        let folder = out.join(image);
        fs::create_dir_all(&folder).expect("a folder of the image");
        let memory = include_str!("linker/memory.x.in")
            .replace("@FLASH_KIB@", &kib("FLASH_KIB", flash).to_string())
            .replace("@RAM_KIB@", &kib("RAM_KIB", ram).to_string());
        fs::write(folder.join("memory.x"), memory).expect("write memory.x");
        let folder = format!("-L{}", folder.display());
        // The last: functions that are alike stand once.
        for argument in ["-Tlink.x", "--nmagic", &folder, "--icf=all"] {
            println!("cargo:rustc-link-arg-bin={image}={argument}");
        }
    }
    // ARMv6-M stops at a word that does not lie at a multiple of four.
    println!("cargo:rustc-check-cfg=cfg(reads_any_address)");
    if env::var("TARGET").is_ok_and(|target| target.starts_with("thumbv7")) {
        println!("cargo:rustc-cfg=reads_any_address");
    }
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
