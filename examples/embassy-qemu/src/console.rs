//! What a scenario asks of the world around the board: a line `event WORDS` on the console, and the
//! wait until somebody has answered with a line. `cargo xtask embedded` answers; by hand it is the
//! enter key.

use embassy_time::{Duration, Timer};

use crate::board::uart;
use crate::println;

const POLL_EVERY: Duration = Duration::from_millis(1);

/// Asks for `event` and waits until it has happened.
pub async fn ask(event: &str) {
    println!("event {event}");
    while !line_came() {
        Timer::after(POLL_EVERY).await;
    }
}

/// Takes what has come and tells whether a line ended.
pub fn line_came() -> bool {
    while let Some(byte) = uart::read() {
        if byte == b'\n' || byte == b'\r' {
            return true;
        }
    }
    false
}
