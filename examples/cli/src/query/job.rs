//! What is to be run: statements, values, and how often.

use std::io::Read;
use std::path::Path;

use messina_core::wire::request::BatchKind;

use super::{BatchType, QueryArguments};
use crate::bind;
use crate::failure::Failure;
use crate::split::split;

/// A statement of the list.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) text: String,
    pub(super) prepared: tokio::sync::OnceCell<messina_core::drive::Prepared>,
}

/// All of the work.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) statements: Vec<Statement>,
    /// JSON texts, checked to be arrays (or objects); none: no values are bound.
    pub(super) binds: Vec<String>,
    pub(super) is_named: bool,
    pub(super) is_unprepared: bool,
    pub(super) is_traced: bool,
    pub(super) max_rows: Option<u64>,
    /// The whole list is one execution.
    pub(super) batch: Option<BatchKind>,
    repeat: u64,
}

impl Job {
    pub(super) fn new(arguments: &QueryArguments) -> Result<Self, Failure> {
        let statements = statements(arguments)?;
        let binds = binds(arguments)?;
        if statements.is_empty() {
            return Err(Failure::usage("there is no statement to run"));
        }
        let has_values = !binds.is_empty() || arguments.bind_file.is_some();
        let are_paired = arguments.batch.is_some() && statements.len() == binds.len();
        if has_values && statements.len() > 1 && !are_paired {
            let message = format!(
                "values are for one statement, or in a batch one set for each; there are {} \
                 statements",
                statements.len()
            );
            return Err(Failure::usage(message));
        }
        if has_values && arguments.unprepared && arguments.batch.is_some() {
            return Err(Failure::usage(
                "a batch takes no values with --unprepared; put them into the text",
            ));
        }
        if arguments.named && !has_values {
            return Err(Failure::usage("--named needs --bind or --bind-file"));
        }
        if has_values && binds.is_empty() {
            return Err(Failure::usage("the file of values is empty"));
        }
        Ok(Self {
            statements: statements
                .into_iter()
                .map(|text| Statement {
                    text,
                    prepared: tokio::sync::OnceCell::new(),
                })
                .collect(),
            binds,
            is_named: arguments.named,
            is_unprepared: arguments.unprepared,
            is_traced: arguments.trace,
            max_rows: arguments.max_rows,
            batch: arguments.batch.map(BatchType::kind),
            repeat: arguments.repeat,
        })
    }

    /// Statements of the list, one with several values counted as often.
    fn list_len(&self) -> u64 {
        let count = self.statements.len().max(self.binds.len());
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    /// Executions of the list once.
    fn round(&self) -> u64 {
        match self.batch {
            Some(_) => 1,
            None => self.list_len(),
        }
    }

    /// All executions.
    pub(super) fn executions(&self) -> u64 {
        self.round().saturating_mul(self.repeat)
    }

    /// The statement and values of an execution.
    pub(super) fn at(&self, index: u64) -> (&Statement, Option<&str>) {
        let place = usize::try_from(index % self.list_len()).unwrap_or(0);
        let statement = &self.statements[place.min(self.statements.len() - 1)];
        (statement, self.binds.get(place).map(String::as_str))
    }

    /// All of the list.
    pub(super) fn list(&self) -> impl Iterator<Item = (&Statement, Option<&str>)> {
        (0..self.list_len()).map(|index| self.at(index))
    }
}

fn statements(arguments: &QueryArguments) -> Result<Vec<String>, Failure> {
    if let Some(file) = &arguments.file {
        return Ok(split(&read_file(file)?));
    }
    if !arguments.statements.is_empty() {
        return Ok(arguments
            .statements
            .iter()
            .flat_map(|text| split(text))
            .collect());
    }
    if std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        return Err(Failure::usage(
            "no statement: give it as an argument, by --file or on standard input",
        ));
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Failure::usage(format!("standard input: {error}")))?;
    Ok(split(&text))
}

fn binds(arguments: &QueryArguments) -> Result<Vec<String>, Failure> {
    let (texts, place): (Vec<String>, &str) = match &arguments.bind_file {
        Some(file) => {
            let text = read_file(file)?;
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            (lines.map(str::to_owned).collect(), "--bind-file, values")
        }
        None => (arguments.bind.clone(), "--bind, values"),
    };
    for (at, text) in texts.iter().enumerate() {
        let number = at + 1;
        let fail = |why: String| Failure::usage(format!("{place} {number}: {why}"));
        bind::check(text, arguments.named).map_err(fail)?;
    }
    Ok(texts)
}

fn read_file(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", file.display())))
}
