//! What every stage knows: where the tree, the target folder and the tools are, what may be installed, and
//! how much time is left.
//!
//! The target folder is, first match wins: `CARGO_TARGET_DIR`; a folder `messina/target` in the user's cache
//! folder (`XDG_CACHE_HOME`, else `~/.cache`) if somebody made it; `target` in the checkout. So a fresh clone
//! builds warm on a machine where that folder exists, and no command creates it unasked.

use core::cell::{Cell, RefCell};
use core::time::Duration;
use std::env;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::command::{Failure, Outcome, Run};
use crate::simulation;

/// An image of the firmware and what it is told.
#[derive(Debug)]
pub(crate) struct Board {
    pub(crate) image: PathBuf,
    pub(crate) words: Vec<String>,
}

/// What the command line chose.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) no_install: bool,
    pub(crate) quick: bool,
    /// The WASM module with the texts of its panics.
    pub(crate) messages: bool,
    /// The firmware's million of requests instead of thousands.
    pub(crate) million: bool,
    /// An image of the firmware to run.
    pub(crate) board: Option<Board>,
    /// Write down what is better than the firmware's budgets.
    pub(crate) lower_budgets: bool,
    /// The only scenario of the firmware to run.
    pub(crate) scenario: Option<String>,
    pub(crate) seeds: u32,
    pub(crate) seed: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            no_install: false,
            quick: false,
            messages: false,
            million: false,
            board: None,
            lower_budgets: false,
            scenario: None,
            seeds: simulation::SEEDS,
            seed: None,
        }
    }
}

/// Something that was not run, and why.
#[derive(Debug, Clone)]
pub(crate) struct Skip {
    pub(crate) what: String,
    pub(crate) why: String,
}

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) root: PathBuf,
    pub(crate) target_dir: PathBuf,
    pub(crate) options: Options,
    /// In CI a skip is a failure.
    pub(crate) ci: bool,
    /// `rustup` said no or did not answer: it is not asked again.
    pub(crate) rustup_failed: Cell<bool>,
    deadline: Cell<Option<Instant>>,
    skips: RefCell<Vec<Skip>>,
}

impl Context {
    pub(crate) fn new(options: Options) -> Outcome<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .nth(2)
            .ok_or_else(|| Failure::new("the workspace root is not two folders above xtask"))?
            .to_path_buf();
        let target_dir = target_dir(&root);
        Ok(Self {
            root,
            target_dir,
            options,
            ci: env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false"),
            rustup_failed: Cell::new(false),
            deadline: Cell::new(None),
            skips: RefCell::default(),
        })
    }

    /// Commands started from now on are stopped when the time is up.
    pub(crate) fn allow(&self, time: Duration) {
        self.deadline.set(Some(Instant::now() + time));
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline.get()
    }

    /// Notes that something could not be run. An error in CI.
    pub(crate) fn skip(&self, what: impl Into<String>, why: impl Into<String>) -> Outcome {
        let skip = Skip {
            what: what.into(),
            why: why.into(),
        };
        let text = format!("not run: {}: {}", skip.what, skip.why);
        if self.ci {
            return Err(Failure::new(text));
        }
        println!("{text}");
        self.skips.borrow_mut().push(skip);
        Ok(())
    }

    /// Hands out the skips noted since the last call.
    pub(crate) fn take_skips(&self) -> Vec<Skip> {
        self.skips.take()
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Fails unless these paths exist: a stage whose subject is missing must not look green.
    pub(crate) fn require(&self, relative: &[&str]) -> Outcome {
        let missing: Vec<_> = relative
            .iter()
            .filter(|path| !self.path(path).exists())
            .copied()
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Failure::new(format!(
            "missing in the tree: {}",
            missing.join(", ")
        )))
    }

    pub(crate) fn run(&self, program: impl AsRef<Path>) -> Run<'_> {
        Run::new(self, program.as_ref())
    }

    /// The cargo that started this program, building into the shared target folder.
    pub(crate) fn cargo<const N: usize>(&self, arguments: [&str; N]) -> Run<'_> {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        self.run(Path::new(&cargo))
            .args(arguments)
            .env_unshown("CARGO_TARGET_DIR", &self.target_dir)
    }
}

fn target_dir(root: &Path) -> PathBuf {
    if let Some(chosen) = env::var_os("CARGO_TARGET_DIR") {
        return env::current_dir()
            .unwrap_or_else(|_| root.to_path_buf())
            .join(chosen);
    }
    let cache = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cache")));
    cache
        .map(|cache| cache.join("messina/target"))
        .filter(|shared| shared.is_dir())
        .unwrap_or_else(|| root.join("target"))
}
