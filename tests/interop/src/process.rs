//! Child processes with a time limit, output in files, and an end by process id.
//!
//! A child gets its own process group, so Ctrl-C in a terminal reaches the harness alone and the
//! harness ends the child in order: SIGTERM to the group, SIGKILL after a bound. Dropping a
//! [`Process`] does the same. A child is signalled only while it has not been waited for, so its
//! id cannot have gone to another process.

use core::{fmt, time::Duration};
use std::{
    fs::{self, File},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, bail};

/// How often a waiting loop looks again.
const POLL_EVERY: Duration = Duration::from_millis(50);

/// Ids of the children that run now, for [`stop_all_on_interrupt`].
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// A running child with its output in two files.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    reaped: bool,
    stdout: PathBuf,
    stderr: PathBuf,
    stop_within: Duration,
}

/// How a child ended when it was asked to.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Stopped {
    /// From the signal to the end.
    pub seconds: f64,
    /// It did not heed SIGTERM in time and was killed.
    pub killed: bool,
}

/// What a command that ran to its end left.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// Its whole standard output; broken UTF-8 is replaced.
    pub stdout: String,
    /// Its whole standard error.
    pub stderr: String,
    /// From start to end.
    pub seconds: f64,
}

impl Process {
    /// Starts `command` with its output in `folder/name.out` and `folder/name.log` and nothing on
    /// standard input.
    ///
    /// # Errors
    /// Fails when the program cannot be started or the files cannot be made.
    pub fn spawn(command: &mut Command, folder: &Path, name: &str) -> Result<Self> {
        let stdout = folder.join(format!("{name}.out"));
        let stderr = folder.join(format!("{name}.log"));
        command
            .stdin(Stdio::null())
            .stdout(File::create(&stdout)?)
            .stderr(File::create(&stderr)?)
            .process_group(0);
        // The lock is held over the spawn: an interrupt either sees the child or stops its birth.
        let mut running = running();
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))?;
        running.push(child.id());
        drop(running);
        let stop_within = Duration::from_secs(15);
        Ok(Self {
            name: name.to_owned(),
            child,
            reaped: false,
            stdout,
            stderr,
            stop_within,
        })
    }

    /// How the child ended, or `None` while it runs.
    ///
    /// # Errors
    /// Fails when the system does not say.
    pub fn poll_exit(&mut self) -> Result<Option<ExitStatus>> {
        // Under the lock, so that an interrupt never signals an id that was just given back.
        let mut running = running();
        let status = self.child.try_wait()?;
        if status.is_some() {
            self.reaped = true;
            running.retain(|id| *id != self.child.id());
        }
        Ok(status)
    }

    /// Waits for the end, at most `limit`; a child that is not through by then is stopped.
    ///
    /// # Errors
    /// Fails when the limit passes.
    pub fn wait(mut self, limit: Duration) -> Result<Finished> {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.poll_exit()? {
                break status;
            }
            if start.elapsed() >= limit {
                self.end()?;
                bail!(
                    "{} was not through after {} s; it said last:\n{}",
                    self.name,
                    limit.as_secs(),
                    self.output_tail(20)
                );
            }
            thread::sleep(POLL_EVERY);
        };
        let seconds = start.elapsed().as_secs_f64();
        let (stdout, stderr) = (read_lossy(&self.stdout), read_lossy(&self.stderr));
        Ok(Finished {
            status,
            stdout,
            stderr,
            seconds,
        })
    }

    /// Asks the child to end and waits for it; kills it when it takes longer than its bound.
    ///
    /// # Errors
    /// Fails when it had ended by itself before, which a server never should.
    pub fn stop(mut self) -> Result<Stopped> {
        if let Some(status) = self.poll_exit()? {
            bail!(
                "{} had ended by itself ({status}):\n{}",
                self.name,
                self.output_tail(30)
            );
        }
        self.end()
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The file that its standard output goes to.
    #[must_use]
    pub fn stdout_path(&self) -> &Path {
        &self.stdout
    }

    /// The last lines of its standard output and then of its standard error.
    #[must_use]
    pub fn output_tail(&self, lines: usize) -> String {
        let mut tail = tail(&read_lossy(&self.stdout), lines);
        let errors = read_lossy(&self.stderr);
        if !errors.trim().is_empty() {
            tail.push('\n');
            tail.push_str(&self::tail(&errors, lines));
        }
        tail
    }

    /// The most memory it ever held, where the system tells (Linux).
    #[must_use]
    pub fn peak_memory_bytes(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kibibytes * 1024)
    }

    fn end(&mut self) -> Result<Stopped> {
        let start = Instant::now();
        signal_group("TERM", self.id());
        while start.elapsed() < self.stop_within {
            if self.poll_exit()?.is_some() {
                return Ok(Stopped {
                    seconds: start.elapsed().as_secs_f64(),
                    killed: false,
                });
            }
            thread::sleep(POLL_EVERY);
        }
        signal_group("KILL", self.id());
        while self.poll_exit()?.is_none() {
            thread::sleep(POLL_EVERY);
        }
        Ok(Stopped {
            seconds: start.elapsed().as_secs_f64(),
            killed: true,
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.reaped {
            let _ = self.end();
        }
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.killed { "killed" } else { "stopped" };
        write!(f, "{how} in {:.1} s", self.seconds)
    }
}

impl Finished {
    /// The same when it ended well, else an error with the last of what it said.
    ///
    /// # Errors
    /// Fails on any other exit code than 0.
    pub fn success(self, what: &str) -> Result<Self> {
        if self.status.success() {
            return Ok(self);
        }
        let said = if self.stderr.trim().is_empty() {
            &self.stdout
        } else {
            &self.stderr
        };
        bail!("{what}: {}\n{}", self.status, tail(said, 20))
    }
}

/// Runs `command` to its end, at most `limit`; `folder` and `name` as in [`Process::spawn`].
///
/// # Errors
/// Fails when it cannot be started or the limit passes; an exit code is no error.
pub fn run(command: &mut Command, folder: &Path, name: &str, limit: Duration) -> Result<Finished> {
    Process::spawn(command, folder, name)?.wait(limit)
}

/// On Ctrl-C, SIGTERM or SIGHUP: stops every child and leaves with code 130.
///
/// # Errors
/// Fails when a handler is set already.
pub fn stop_all_on_interrupt() -> Result<()> {
    ctrlc::set_handler(|| {
        // Never released: no child starts or is reaped any more, so the ids stay theirs.
        let running = running();
        for id in running.iter() {
            signal_group("TERM", *id);
        }
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) && running.iter().any(|id| is_alive(*id)) {
            thread::sleep(POLL_EVERY);
        }
        for id in running.iter() {
            signal_group("KILL", *id);
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "main may wait for a child for minutes"
        )]
        std::process::exit(130);
    })
    .context("cannot watch for Ctrl-C")
}

/// The last `count` lines of `text`.
#[must_use]
pub fn tail(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// Sends a signal to the process group of `id`. That the group is gone already is no error.
fn signal_group(signal: &str, id: u32) {
    let _ = Command::new("kill")
        .args([&format!("-{signal}"), "--", &format!("-{id}")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

/// Whether the process runs: a child that ended but was not waited for (a zombie) does not.
fn is_alive(id: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{id}/stat")) else {
        return false;
    };
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

fn running() -> MutexGuard<'static, Vec<u32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_lossy(path: &Path) -> String {
    fs::read(path)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("messina-process-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_finished_command_gives_code_and_both_outputs() {
        let folder = folder("finished");
        let limit = Duration::from_secs(10);
        let mut command = shell("echo out; echo err >&2; exit 3");
        let finished = run(&mut command, &folder, "three", limit).unwrap();
        assert_eq!(finished.status.code(), Some(3));
        assert_eq!(
            (finished.stdout.as_str(), finished.stderr.as_str()),
            ("out\n", "err\n")
        );
        let error = finished.success("three").unwrap_err().to_string();
        assert!(
            error.contains("exit status: 3") && error.contains("err"),
            "{error}"
        );
    }

    #[test]
    fn what_does_not_end_is_ended_with_its_children() {
        let folder = folder("limit");
        let mut command = shell("sleep 600 & echo $!; wait");
        let process = Process::spawn(&mut command, &folder, "sleeper").unwrap();
        let id = process.id();
        let error = process
            .wait(Duration::from_millis(500))
            .unwrap_err()
            .to_string();
        assert!(error.contains("was not through"), "{error}");
        let grandchild: u32 = fs::read_to_string(folder.join("sleeper.out"))
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        assert!(!is_alive(id) && !is_alive(grandchild));
        assert!(!running().contains(&id));
    }

    #[test]
    fn who_ignores_sigterm_is_killed_after_the_bound() {
        let folder = folder("stubborn");
        let mut command = shell("trap '' TERM; echo ready; while :; do sleep 1; done");
        let mut process = Process::spawn(&mut command, &folder, "stubborn").unwrap();
        let start = Instant::now();
        while read_lossy(process.stdout_path()).is_empty() {
            assert!(start.elapsed() < Duration::from_secs(10));
            thread::sleep(POLL_EVERY);
        }
        process.stop_within = Duration::from_millis(300);
        assert!(process.stop().unwrap().killed);
    }

    #[test]
    fn stopping_what_ended_by_itself_is_an_error_with_its_words() {
        let folder = folder("early");
        let mut process = Process::spawn(&mut shell("echo gone"), &folder, "early").unwrap();
        while process.poll_exit().unwrap().is_none() {
            thread::sleep(POLL_EVERY);
        }
        assert!(process.stop().unwrap_err().to_string().contains("gone"));
    }

    #[test]
    fn dropping_ends_the_child() {
        let folder = folder("drop");
        let process = Process::spawn(&mut shell("exec sleep 600"), &folder, "drop").unwrap();
        let id = process.id();
        assert!(is_alive(id));
        drop(process);
        assert!(!is_alive(id));
    }

    #[test]
    fn a_tail_is_the_last_lines() {
        let table = [
            ("", 2, ""),
            ("a", 2, "a"),
            ("a\nb\nc", 2, "b\nc"),
            ("a\nb\n", 0, ""),
        ];
        for (text, count, expected) in table {
            assert_eq!(tail(text, count), expected);
        }
    }
}
