//! Runs one command line: printed first, its output streamed through, stopped when the stage's time is up.
//! Its descendants end with it.

use core::fmt;
use core::time::Duration;
use std::ffi::OsStr;
use std::io;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Instant;

use crate::context::Context;
use crate::process_tree::end_with_descendants;

/// Why a stage failed, in one line.
#[derive(Debug)]
pub(crate) struct Failure(String);

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

/// One command line about to run, from the workspace root unless told otherwise.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    context: &'a Context,
    command: Command,
    environment: String,
    limit: Option<Duration>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(context: &'a Context, program: &Path) -> Self {
        let mut command = Command::new(program);
        command.current_dir(&context.root).stdin(Stdio::null());
        Self {
            context,
            command,
            environment: String::new(),
            limit: None,
        }
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.command.args(arguments);
        self
    }

    pub(crate) fn arg(self, argument: impl AsRef<OsStr>) -> Self {
        self.args([argument])
    }

    /// Sets a variable, shown in front of the printed command.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment
            .push_str(&format!("{name}={:?} ", value.as_ref()));
        self.env_unshown(name, value)
    }

    /// Sets a variable that would only make the printed command longer.
    pub(crate) fn env_unshown(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn env_remove(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// A limit tighter than the stage's.
    pub(crate) fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Runs to the end; anything but success is a failure.
    pub(crate) fn run(mut self) -> Outcome {
        println!("$ {self}");
        io::stdout().flush()?;
        let mut child = self.spawn()?;
        let status = self.wait(&mut child)?;
        self.check(status)
    }

    /// As `run`, and returns what was printed on standard output, which is streamed through as well.
    pub(crate) fn run_and_read(self) -> Outcome<String> {
        self.read_lines(true)
    }

    /// As `run`, and returns what was printed on standard output, which is not shown.
    pub(crate) fn read(self) -> Outcome<String> {
        self.read_lines(false)
    }

    fn read_lines(mut self, are_shown: bool) -> Outcome<String> {
        println!("$ {self}");
        self.command.stdout(Stdio::piped());
        let mut child = self.spawn()?;
        let output = child.stdout.take();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            for line in lines(output) {
                if are_shown {
                    println!("{line}");
                }
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let status = self.wait(&mut child)?;
        let text = read_to_end(&receiver, OUTPUT_END_MAX)
            .ok_or_else(|| Failure::new(format!("left a process that holds its output: {self}")))?;
        self.check(status)?;
        Ok(text)
    }

    /// As `run_and_read`, for a program that asks: each line goes to `answer`, and what that gives goes to the
    /// program's standard input.
    pub(crate) fn converse(
        mut self,
        mut answer: impl FnMut(&str) -> Outcome<Option<String>>,
    ) -> Outcome<String> {
        println!("$ {self}");
        io::stdout().flush()?;
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = Server(self.spawn()?);
        let mut input = program.0.stdin.take();
        let lines = program.lines()?;
        let deadline = self.ends_by();
        let mut text = String::new();
        loop {
            let left = deadline.map_or(OUTPUT_END_MAX, |at| {
                at.saturating_duration_since(Instant::now())
            });
            let line = match lines.recv_timeout(left) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if deadline.is_none() => continue,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Failure::new(format!("out of time, stopped: {self}")));
                }
            };
            println!("{line}");
            if let (Some(answer), Some(input)) = (answer(&line)?, &mut input) {
                input.write_all(answer.as_bytes())?;
                input.flush()?;
            }
            text.extend([line.as_str(), "\n"]);
        }
        let status = self.wait(&mut program.0)?;
        self.check(status)?;
        Ok(text)
    }

    /// As `run`, for a test runner: no test executed is a failure too.
    pub(crate) fn run_tests(self) -> Outcome {
        let label = self.to_string();
        let passed = tests_passed(&self.run_and_read()?);
        if passed == 0 {
            return Err(Failure::new(format!("no test was executed: {label}")));
        }
        println!("{passed} tests passed: {label}");
        Ok(())
    }

    /// Asks a question: standard output, not shown; `None` if the program is missing or says no.
    pub(crate) fn ask(mut self) -> Option<String> {
        let output = self.command.stderr(Stdio::null()).output().ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Starts a server whose standard output the caller reads. Dropping it ends it.
    pub(crate) fn start(mut self) -> Outcome<Server> {
        println!("$ {self} &");
        self.command.stdout(Stdio::piped());
        Ok(Server(self.spawn()?))
    }

    fn spawn(&mut self) -> Outcome<Child> {
        self.command
            .spawn()
            .map_err(|error| Failure::new(format!("{self}: {error}")))
    }

    fn ends_by(&self) -> Option<Instant> {
        let own = self.limit.map(|limit| Instant::now() + limit);
        [own, self.context.deadline()].into_iter().flatten().min()
    }

    fn wait(&self, child: &mut Child) -> Outcome<ExitStatus> {
        let deadline = self.ends_by();
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                end_with_descendants(child);
                return Err(Failure::new(format!("out of time, stopped: {self}")));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn check(&self, status: ExitStatus) -> Outcome {
        if status.success() {
            Ok(())
        } else {
            Err(Failure::new(format!("{self}: {status}")))
        }
    }
}

impl fmt::Display for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = Path::new(self.command.get_program());
        write!(
            f,
            "{}{}",
            self.environment,
            program.file_name().unwrap_or_default().display()
        )?;
        self.command
            .get_args()
            .try_for_each(|argument| write!(f, " {}", argument.display()))
    }
}

/// How long after its end a command's output may stay open.
const OUTPUT_END_MAX: Duration = Duration::from_secs(10);

fn lines(output: Option<ChildStdout>) -> impl Iterator<Item = String> {
    output
        .into_iter()
        .flat_map(|output| BufReader::new(output).lines().map_while(Result::ok))
}

/// All lines until the sender is gone; `None` if it is not gone in time.
fn read_to_end(receiver: &Receiver<String>, limit: Duration) -> Option<String> {
    let deadline = Instant::now() + limit;
    let mut text = String::new();
    loop {
        match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => text.extend([line.as_str(), "\n"]),
            Err(RecvTimeoutError::Disconnected) => return Some(text),
            Err(RecvTimeoutError::Timeout) => return None,
        }
    }
}

/// Adds up the closing lines of cargo's test binaries.
fn tests_passed(output: &str) -> u64 {
    output
        .lines()
        .filter_map(|line| {
            line.strip_prefix("test result: ok. ")?
                .split_once(" passed")
        })
        .filter_map(|(count, _)| count.parse::<u64>().ok())
        .sum()
}

/// A program in the background, ended when this is dropped.
#[derive(Debug)]
pub(crate) struct Server(Child);

impl Server {
    /// The first line that the program prints, or a failure when it ends or stays silent.
    pub(crate) fn first_line(&mut self, limit: Duration) -> Outcome<String> {
        self.lines()?
            .recv_timeout(limit)
            .map_err(|_| Failure::new("the server printed no ready line within its time"))
    }

    fn lines(&mut self) -> Outcome<Receiver<String>> {
        let output = self
            .0
            .stdout
            .take()
            .ok_or_else(|| Failure::new("the output is taken already"))?;
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            for line in lines(Some(output)) {
                // Later lines may have no receiver any more; reading on keeps the pipe from filling.
                let _ = sender.send(line);
            }
        });
        Ok(receiver)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end_with_descendants(&mut self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::context::Options;
    use crate::process_tree::is_running;

    fn context() -> Context {
        Context::new(Options::default()).expect("the tree is here")
    }

    #[test]
    fn a_command_over_its_limit_is_stopped_with_its_children() {
        let marker = format!("86399.{}", std::process::id());
        let context = context();
        let run = context
            .run("sh")
            .args(["-c", &format!("sleep {marker} & wait")]);
        let failure = run
            .limit(Duration::from_millis(200))
            .run()
            .expect_err("stopped");
        assert!(failure.to_string().starts_with("out of time"), "{failure}");
        let left = fs::read_dir("/proc").expect("proc").flatten().any(|entry| {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            line.starts_with(b"sleep\0") && line.ends_with(format!("{marker}\0").as_bytes())
        });
        assert!(!left, "the child of the stopped command still runs");
    }

    #[test]
    fn exit_codes_and_missing_programs_are_failures() {
        let context = context();
        assert!(context.run("true").run().is_ok());
        assert!(context.run("false").run().is_err());
        assert!(context.run("no-such-program-here").run().is_err());
        assert_eq!(
            context.run("echo").arg("word").ask().as_deref(),
            Some("word")
        );
        assert_eq!(context.run("false").ask(), None);
    }

    #[test]
    fn output_is_read_to_its_end_but_not_for_ever() {
        let context = context();
        let run = context.run("sh").args(["-c", "seq 1 2000"]);
        let text = run.run_and_read().expect("success");
        assert_eq!(
            (text.lines().count(), text.lines().last()),
            (2000, Some("2000"))
        );
        let (sender, receiver) = mpsc::channel();
        sender.send("line".to_owned()).expect("a receiver");
        assert_eq!(read_to_end(&receiver, Duration::from_millis(1)), None);
        drop(sender);
        assert_eq!(
            read_to_end(&receiver, Duration::from_secs(1)).as_deref(),
            Some("")
        );
    }

    #[test]
    fn a_program_that_asks_is_answered_and_stopped_when_it_goes_on_asking() {
        let context = context();
        let asks = "echo question; read word; echo it was $word";
        let run = context.run("sh").args(["-c", asks]);
        let answer = |line: &str| Ok((line == "question").then(|| "yes\n".to_owned()));
        assert_eq!(
            run.converse(answer).expect("success"),
            "question\nit was yes\n"
        );
        let run = context.run("sh").args(["-c", asks]);
        let run = run.limit(Duration::from_millis(200));
        assert!(run.converse(|_| Ok(None)).is_err());
        let run = context.run("sh").args(["-c", "echo question; exit 1"]);
        assert!(run.converse(|_| Ok(None)).is_err());
    }

    #[test]
    fn closing_lines_are_added_up() {
        let one = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out";
        assert_eq!(
            tests_passed(&format!("running 12 tests\n{one}\nother\n{one}\n")),
            24
        );
        assert_eq!(tests_passed("test result: FAILED. 3 passed; 1 failed"), 0);
        assert_eq!(tests_passed(""), 0);
    }

    #[test]
    fn a_server_is_ended_when_dropped() {
        let context = context();
        let mut server = context
            .run("sh")
            .args(["-c", "echo ready; sleep 3600"])
            .start()
            .expect("started");
        let id = server.0.id();
        assert!(is_running(id));
        assert_eq!(
            server.first_line(Duration::from_secs(5)).expect("a line"),
            "ready"
        );
        drop(server);
        assert!(!is_running(id));
    }
}
