//! The layers of core point one way: wire → types → routing → conn → cluster → exec → drive → compact. A lower
//! layer never names a higher one, in tests neither; only `drive`, and what stands around the machine of `compact`,
//! wait and wake.
//!
//! Also here: the simulated node, which must not know core, so that a mirrored mistake cannot cancel out; and the
//! tunnel through a WebSocket, which is pure and stands alone.

use crate::Finding;
use crate::rust_source::{code, line_of, without_unit_tests, words};
use crate::tree::File;

/// From the bottom to the top. All other modules of core stand beside the layers.
const LAYERS: [&str; 8] = [
    "wire", "types", "routing", "conn", "cluster", "exec", "drive", "compact",
];

/// The modules of `compact` that are asynchronous: its machine, and what that is made of, is not.
const AROUND_THE_MACHINE: [&str; 8] = [
    "session", "runner", "wires", "beside", "hub", "desk", "flow", "stream",
];

/// What belongs to `drive` and to the transports.
const ASYNC_NAMES: [(&str, &str); 5] = [
    ("core::task", "wakers belong to drive"),
    ("async fn", "only drive is asynchronous"),
    ("async move", "only drive is asynchronous"),
    ("await", "only drive is asynchronous"),
    ("sync::Mutex", "only drive locks"),
];

/// Checks one file of core.
#[must_use]
pub fn check_core(file: &File) -> Vec<Finding> {
    let Some(module) = file
        .path
        .strip_prefix("core/src/")
        .and_then(|path| path.strip_suffix(".rs"))
    else {
        return Vec::new();
    };
    let mut modules: Vec<&str> = module.split('/').collect();
    modules.pop_if(|name| *name == "mod");
    let Some(rank) = LAYERS
        .iter()
        .position(|layer| Some(layer) == modules.first())
    else {
        return Vec::new();
    };
    let code = code(&file.text);
    let mut findings = Vec::new();
    for (higher, offset) in crate_paths(&code, modules.len()) {
        if LAYERS
            .iter()
            .position(|layer| *layer == higher)
            .is_some_and(|named| named > rank)
        {
            let what = format!("layer `{}` names the higher layer `{higher}`", LAYERS[rank]);
            findings.push(Finding::new(&file.path, line_of(&code, offset), what));
        }
    }
    let is_asynchronous = match modules.as_slice() {
        ["drive", ..] => true,
        ["compact", module, ..] => AROUND_THE_MACHINE.contains(module),
        _ => false,
    };
    if !is_asynchronous && !file.is_unit_test() {
        let production = without_unit_tests(&code);
        for (name, why) in ASYNC_NAMES {
            findings.extend(words(production, name).map(|offset| {
                Finding::new(
                    &file.path,
                    line_of(&code, offset),
                    format!("`{name}` in `{}`: {why}", LAYERS[rank]),
                )
            }));
        }
    }
    findings
}

/// Checks one file of the simulated node.
#[must_use]
pub fn check_simulated_node(file: &File) -> Vec<Finding> {
    let is_node =
        file.path.starts_with("tests/sim/src/node/") || file.path == "tests/sim/src/node.rs";
    if !is_node || !file.is("rs") {
        return Vec::new();
    }
    let code = code(&file.text);
    let forbidden = [
        "messina_core",
        "messina_tokio",
        "crate::link",
        "super::link",
    ];
    let found = forbidden
        .iter()
        .flat_map(|name| words(&code, name).map(move |offset| (*name, offset)));
    found
        .map(|(name, offset)| {
            let what =
                format!("`{name}`: the simulated node has its own codec and does not know core");
            Finding::new(&file.path, line_of(&code, offset), what)
        })
        .collect()
}

/// Checks one file of the tunnel, which every end links in: no core, nothing else of its crate, nothing that waits.
#[must_use]
pub fn check_tunnel(file: &File) -> Vec<Finding> {
    if !file.path.starts_with("transports/websocket/src/tunnel/") || file.is_unit_test() {
        return Vec::new();
    }
    let code = code(&file.text);
    let forbidden = [
        "messina_core",
        "crate",
        "core::task",
        "async",
        "std",
        "format!",
    ];
    let found = forbidden
        .iter()
        .flat_map(|name| words(&code, name).map(move |offset| (*name, offset)));
    found
        .map(|(name, offset)| {
            let what = format!("`{name}`: the tunnel is pure, small and stands alone");
            Finding::new(&file.path, line_of(&code, offset), what)
        })
        .collect()
}

/// First names behind `crate::` and behind enough `super::` to reach the crate, groups opened, with offsets.
fn crate_paths(code: &str, depth: usize) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    for offset in words(code, "crate") {
        let behind = offset + "crate".len();
        if code[behind..].starts_with("::") {
            first_names(code, behind + 2, &mut found);
        }
    }
    for offset in words(code, "super") {
        if code[..offset].ends_with("super::") {
            continue;
        }
        let mut end = offset;
        let mut count = 0;
        while code[end..].starts_with("super::") {
            end += "super::".len();
            count += 1;
        }
        if count >= depth {
            first_names(code, end, &mut found);
        }
    }
    found
}

/// The name at `start`, or each first name of the group `{a::b, c}` there.
fn first_names<'a>(code: &'a str, start: usize, found: &mut Vec<(&'a str, usize)>) {
    let name_at = |at: usize| {
        let end = code[at..]
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .map_or(code.len(), |len| at + len);
        (&code[at..end], at)
    };
    if !code[start..].starts_with('{') {
        found.push(name_at(start));
        return;
    }
    let mut nesting = 0;
    let mut expects_name = false;
    for (at, character) in code[start..]
        .char_indices()
        .map(|(at, character)| (start + at, character))
    {
        match character {
            '{' => nesting += 1,
            '}' => nesting -= 1,
            _ => {}
        }
        match character {
            '{' | ',' => expects_name = nesting == 1,
            c if c.is_alphanumeric() && expects_name => {
                found.push(name_at(at));
                expects_name = false;
            }
            _ => {}
        }
        if nesting == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check_core(&File::new(path, text))
            .into_iter()
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn a_lower_layer_may_not_name_a_higher_one() {
        let cases: [(&str, &str, &[usize]); 19] = [
            ("core/src/wire/reader.rs", "use crate::conn::Framer;", &[1]),
            (
                "core/src/wire/reader.rs",
                "//! x\nuse crate::{error::Error, routing::{Token, plan}};",
                &[2],
            ),
            (
                "core/src/wire/reader.rs",
                "use crate::{error::{self, drive}, time};",
                &[],
            ),
            ("core/src/wire/reader.rs", "use super::super::types;", &[1]),
            ("core/src/wire/reader.rs", "use super::types;", &[]),
            (
                "core/src/wire/mod.rs",
                "fn f() -> super::exec::Request {}",
                &[1],
            ),
            (
                "core/src/wire/mod.rs",
                "// use crate::exec\nlet a = \"crate::exec\";",
                &[],
            ),
            (
                "core/src/wire/mod.rs",
                "mod tests {\n    use super::super::cluster::Engine;\n}",
                &[2],
            ),
            (
                "core/src/routing/mod.rs",
                "use crate::wire; use crate::types; use crate::sync;",
                &[],
            ),
            ("core/src/types.rs", "use crate::routing;", &[1]),
            (
                "core/src/drive/session.rs",
                "use crate::{exec, cluster, wire};",
                &[],
            ),
            (
                "core/src/drive/session.rs",
                "use core::task::Waker; async fn f() {}",
                &[],
            ),
            ("core/src/drive/session.rs", "use crate::compact;", &[1]),
            (
                "core/src/compact/machine.rs",
                "use crate::{drive, conn};",
                &[],
            ),
            ("core/src/compact/machine.rs", "async fn f() {}", &[1]),
            (
                "core/src/compact/plane/mod.rs",
                "use core::task::Waker;",
                &[1],
            ),
            ("core/src/compact/session.rs", "async fn f() {}", &[]),
            ("core/src/error.rs", "use crate::drive::Link;", &[]),
            (
                "core/src/wire/response/rows.rs",
                "use super::super::super::conn::Framer;",
                &[1],
            ),
        ];
        for (path, text, expected) in cases {
            assert_eq!(lines(path, text), expected, "{path}: {text}");
        }
    }

    #[test]
    fn below_drive_nothing_waits_or_locks() {
        let cases: [(&str, usize); 6] = [
            ("use core::task::Waker;", 1),
            ("async fn read() { link.read().await }", 2),
            ("use crate::sync::{Shared, Snapshot};", 0),
            ("use crate::sync::Mutex;", 1),
            ("//! Nothing is awaited: no `.await` here.\n", 0),
            (
                "#[cfg(test)]\nmod tests {\n    use core::task::Waker;\n}\n",
                0,
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(
                lines("core/src/conn/mod.rs", text).len(),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn the_tunnel_stands_alone() {
        let count = |name: &str, text: &str| {
            let path = format!("transports/websocket/src/{name}");
            check_tunnel(&File::new(&path, text)).len()
        };
        for text in [
            "use messina_core::error::Error;",
            "use core::task::Waker;",
            "use crate::mux::Mux;",
            "async fn run() {}",
            "fn f() -> String { format!(\"x\") }",
        ] {
            assert_eq!(count("tunnel/channel.rs", text), 1, "{text}");
            assert_eq!(count("mux/mod.rs", text), 0, "{text}");
            assert_eq!(count("tunnel/tests.rs", text), 0, "{text}");
        }
        assert_eq!(count("tunnel/mod.rs", "//! crate\nuse super::frame;"), 0);
    }

    #[test]
    fn the_simulated_node_knows_no_core() {
        let count = |path: &str, text: &str| check_simulated_node(&File::new(path, text)).len();
        assert_eq!(
            count("tests/sim/src/node/codec.rs", "use messina_core::wire;"),
            1
        );
        assert_eq!(
            count("tests/sim/src/node/codec.rs", "use crate::link::SimLink;"),
            1
        );
        assert_eq!(
            count(
                "tests/sim/src/node/codec.rs",
                "//! Shares nothing with `messina_core`."
            ),
            0
        );
        assert_eq!(
            count("tests/sim/src/link/mod.rs", "use messina_core::wire;"),
            0
        );
    }
}
