//! A WASM module: `replay` makes the logs and tells their length, `logs` where they lie in memory.

extern crate std;

use alloc::string::String;
use std::sync::Mutex;

static LOGS: Mutex<String> = Mutex::new(String::new());

/// Replays all traces; the length of the logs in bytes.
// SAFETY: no other function of the module has this name.
#[unsafe(no_mangle)]
pub extern "C" fn replay() -> usize {
    let mut text = String::new();
    if messina_trace::replay_all(&mut text, true).is_err() {
        return 0;
    }
    let len = text.len();
    if let Ok(mut logs) = LOGS.lock() {
        *logs = text;
    }
    len
}

/// Where the logs begin; valid until `replay` is called again.
// SAFETY: no other function of the module has this name.
#[unsafe(no_mangle)]
pub extern "C" fn logs() -> *const u8 {
    match LOGS.lock() {
        Ok(logs) => logs.as_ptr(),
        Err(_) => core::ptr::null(),
    }
}
