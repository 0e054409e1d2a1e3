//! What the page may ask of the simulated nodes: to be shown, and to change in the ways that have a button.

use messina_sim::tcp::SimHandle;
use serde_json::{Value, json};

use crate::tables::STRONG_KEYSPACE;

/// Commands of the simulator's control protocol that the page may send.
const ALLOWED: [&str; 7] = [
    "move_tablet",
    "set_leader",
    "kill",
    "start",
    "split",
    "merge",
    "reset_stats",
];

/// Carries one out.
pub(crate) fn carry_out(cluster: &SimHandle, command: &Value) -> Value {
    let name = command["cmd"].as_str().unwrap_or_default();
    if !ALLOWED.contains(&name) {
        return json!({ "ok": false, "error": "this page has no such command" });
    }
    ask(cluster, command)
}

/// What the nodes counted, and the tablets of a table.
pub(crate) fn state(cluster: &SimHandle, keyspace: &str, table: &str) -> Value {
    let mut state = ask(cluster, &json!({ "cmd": "stats" }));
    let tablets = json!({ "cmd": "tablets", "keyspace": keyspace, "table": table });
    let mut tablets = ask(cluster, &tablets)["tablets"].take();
    let mut first = i64::MIN;
    for tablet in tablets.as_array_mut().into_iter().flatten() {
        let last = tablet["last"].as_i64().unwrap_or(i64::MAX);
        // As text: the numbers of JavaScript end at 2^53.
        tablet["first"] = first.to_string().into();
        tablet["last"] = last.to_string().into();
        first = last;
        if keyspace != STRONG_KEYSPACE {
            // Somebody comes first in the simulator's list, but leads nothing.
            tablet["leader"] = Value::Null;
        }
    }
    state["tablets"] = tablets;
    state
}

fn ask(cluster: &SimHandle, command: &Value) -> Value {
    serde_json::from_str(&cluster.control(&command.to_string())).unwrap_or_default()
}
