//! Serves a simulated cluster until its standard input ends or it is interrupted.
//!
//! `serve [NODES [SHARDS [v1|v2|both|off|plain [PORT [SHARD_AWARE_PORT [USER PASSWORD]]]]]]`, ports
//! 0 to have them chosen.

use std::io::Write;

use messina_sim::node::{Credentials, Options, TabletsMode};
use messina_sim::tcp::SimServer;

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u16| -> u16 {
        arguments
            .get(at)
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let mut options = Options::uniform(usize::from(number(0, 3)), u32::from(number(1, 4)));
    let mode = arguments.get(2).map_or("v2", String::as_str);
    options = match TabletsMode::named(mode) {
        Some(mode) => options.with_tablets(mode),
        None => options.with_plain(),
    };
    options.port = number(3, 0);
    options.shard_aware_port = Some(number(4, 0));
    if let [_, _, _, _, _, user, password] = &arguments[..] {
        options.auth = Some(Credentials::new(user, password));
    }
    let server = SimServer::start(options).await?;
    let contacts: Vec<String> = server.contacts().iter().map(ToString::to_string).collect();
    let mut out = std::io::stdout();
    writeln!(
        out,
        r#"{{"ready":true,"contact":["{}"],"control":"{}"}}"#,
        contacts.join("\",\""),
        server.control()
    )?;
    out.flush()?;
    // A future that never comes: the process is ended from outside.
    tokio::signal::ctrl_c().await?;
    server.stop().await;
    Ok(())
}
