//! Recursive descent over tokens: what all statements share, USE and TRUNCATE. Data statements are
//! in `data`, schema statements in `ddl`, values and types in `term`.
//!
//! Recursion happens only in types, terms and selectors and is bounded by [`Parser::nested`], so
//! hostile text cannot exhaust the stack.

use super::super::error::CqlError;
use super::lexer::{Spanned, Token, syntax_error, tokens};
use super::*;

/// A statement with its bind variables: one entry per number, the name if it had one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parsed {
    pub(crate) statement: Statement,
    pub(crate) markers: Vec<Option<String>>,
}

/// More bind variables than the protocol can count.
const MARKERS_MAX: usize = 65535;

/// Parses one statement; a trailing semicolon is allowed.
pub(crate) fn parse(text: &str) -> Result<Parsed> {
    let mut parser = Parser {
        text,
        tokens: tokens(text)?,
        at: 0,
        depth: 0,
        markers: Vec::new(),
    };
    let statement = parser.statement()?;
    while parser.symbol(";") {}
    if parser.peek() != &Token::End {
        return Err(parser.error());
    }
    if parser.markers.len() > MARKERS_MAX {
        return Err(CqlError::invalid(format!(
            "Too many markers(?). {} markers exceed the allowed maximum of {MARKERS_MAX}",
            parser.markers.len()
        )));
    }
    Ok(Parsed {
        statement,
        markers: parser.markers,
    })
}

pub(super) struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Spanned>,
    pub(super) at: usize,
    depth: usize,
    markers: Vec<Option<String>>,
}

/// Deepest nesting of a type, a term or a selector.
const DEPTH_MAX: usize = 32;

type Result<T> = core::result::Result<T, CqlError>;

impl Parser<'_> {
    pub(super) fn peek(&self) -> &Token {
        self.tokens
            .get(self.at)
            .map_or(&Token::End, |(token, _)| token)
    }

    pub(super) fn peek_second(&self) -> &Token {
        self.tokens
            .get(self.at + 1)
            .map_or(&Token::End, |(token, _)| token)
    }

    pub(super) fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    pub(super) fn error(&self) -> CqlError {
        let at = self
            .tokens
            .get(self.at)
            .map_or(self.text.len(), |(_, at)| *at);
        syntax_error(self.text, at)
    }

    /// Runs a parser that may come back to itself.
    pub(super) fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEPTH_MAX {
            return Err(CqlError::invalid("the statement is nested too deeply"));
        }
        self.depth += 1;
        let parsed = inner(self);
        self.depth -= 1;
        parsed
    }

    /// The text from a token on, up to the present one.
    pub(super) fn text_from(&self, start: usize) -> &str {
        let at = |token: usize| {
            self.tokens
                .get(token)
                .map_or(self.text.len(), |(_, at)| *at)
        };
        self.text.get(at(start)..at(self.at)).unwrap_or("").trim()
    }

    /// Takes a keyword if it is next.
    pub(super) fn word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Word(next) if next == word);
        self.at += usize::from(found);
        found
    }

    /// Takes several keywords if all are next.
    pub(super) fn words(&mut self, words: &[&str]) -> bool {
        let start = self.at;
        let found = words.iter().all(|word| self.word(word));
        if !found {
            self.at = start;
        }
        found
    }

    pub(super) fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.word(word) {
            Ok(())
        } else {
            Err(self.error())
        }
    }

    pub(super) fn symbol(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(next) if *next == symbol);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, symbol: &str) -> Result<()> {
        if self.symbol(symbol) {
            Ok(())
        } else {
            Err(self.error())
        }
    }

    pub(super) fn identifier(&mut self) -> Result<String> {
        match self.peek() {
            Token::Word(name) | Token::Quoted(name) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.error()),
        }
    }

    pub(super) fn table_name(&mut self) -> Result<TableName> {
        let first = self.identifier()?;
        if self.symbol(".") {
            return Ok(TableName {
                keyspace: Some(first),
                name: self.identifier()?,
            });
        }
        Ok(TableName {
            keyspace: None,
            name: first,
        })
    }

    /// `item, item, …` up to, not including, what cannot continue it.
    pub(super) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut out = vec![item(self)?];
        while self.symbol(",") {
            out.push(item(self)?);
        }
        Ok(out)
    }

    fn statement(&mut self) -> Result<Statement> {
        let Token::Word(verb) = self.peek().clone() else {
            return Err(self.error());
        };
        let start = self.at;
        self.at += 1;
        match verb.as_str() {
            "select" => self.select().map(Statement::Select),
            "insert" => self.insert().map(Statement::Modify),
            "update" => self.update().map(Statement::Modify),
            "delete" => self.delete().map(Statement::Modify),
            "begin" => self.batch().map(Statement::Batch),
            "use" => self.identifier().map(Statement::Use),
            "truncate" => {
                self.word("table");
                let table = self.table_name()?;
                let using = self.using()?;
                Ok(Statement::Truncate(table, using))
            }
            "create" | "alter" | "drop" => self.schema_statement(&verb),
            "grant" | "revoke" | "list" | "attach" | "detach" => {
                Ok(self.unsupported(Unsupported::Access))
            }
            "describe" | "desc" => Ok(self.unsupported(Unsupported::Describe)),
            "prune" => Ok(self.unsupported(Unsupported::Other)),
            _ => {
                self.at = start;
                Err(self.error())
            }
        }
    }

    pub(super) fn unsupported(&mut self, what: Unsupported) -> Statement {
        self.at = self.tokens.len().saturating_sub(1);
        Statement::Unsupported(what)
    }

    /// `(a, b)`.
    pub(super) fn columns(&mut self) -> Result<Vec<String>> {
        self.expect("(")?;
        let columns = self.list(Self::identifier)?;
        self.expect(")")?;
        Ok(columns)
    }

    pub(super) fn marker(&mut self, name: Option<String>) -> Term {
        if name.is_some()
            && let Some(at) = self.markers.iter().position(|known| *known == name)
        {
            return Term::Marker(at);
        }
        self.markers.push(name);
        Term::Marker(self.markers.len() - 1)
    }

    pub(super) fn using(&mut self) -> Result<Using> {
        let mut using = Using::default();
        if !self.word("using") {
            return Ok(using);
        }
        loop {
            let slot = if self.word("timestamp") {
                &mut using.timestamp
            } else if self.word("ttl") {
                &mut using.ttl
            } else if self.word("timeout") {
                &mut using.timeout
            } else {
                return Err(self.error());
            };
            *slot = Some(self.term()?);
            if !self.word("and") {
                return Ok(using);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_text_parses_and_counts_its_markers() {
        let cases = [
            (
                "SELECT * FROM system.local WHERE key='local' USING TIMEOUT 500ms",
                0,
            ),
            (
                "select a, b as c, token(a), count(*) from ks.t where a = ? and b >= :x",
                2,
            ),
            (
                "SELECT a FROM t WHERE a IN ? ORDER BY b DESC LIMIT ? ALLOW FILTERING",
                2,
            ),
            (
                "SELECT a FROM t WHERE token(a) > ? AND token(a) <= -5 BYPASS CACHE;",
                1,
            ),
            (
                "INSERT INTO t (a, b) VALUES (?, ?) IF NOT EXISTS USING TTL 5 AND TIMESTAMP ?",
                3,
            ),
            (
                "UPDATE t USING TIMESTAMP 5 SET v = :v, w = :v WHERE a = 1 IF v = 'x'",
                1,
            ),
            ("DELETE v FROM t WHERE a = ? AND b > 3", 1),
            (
                "BEGIN UNLOGGED BATCH INSERT INTO t (a) VALUES (?); DELETE FROM t WHERE a=?; APPLY \
              BATCH",
                2,
            ),
            ("USE \"Ks\"", 0),
            ("TRUNCATE TABLE ks.t", 0),
            (
                "CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {'class': \
              'NetworkTopologyStrategy', 'dc1': 3} AND durable_writes = true AND tablets = \
              {'enabled': true, 'initial': 8} AND consistency = 'global'",
                0,
            ),
            (
                "CREATE TABLE ks.t (a int, b text, c frozen<map<text, int>>, PRIMARY KEY ((a, b), c)) \
              WITH CLUSTERING ORDER BY (c DESC) AND comment = 'x' AND gc_grace_seconds = 5",
                0,
            ),
            ("CREATE TABLE t (a int PRIMARY KEY)", 0),
            ("ALTER TABLE t ADD v int", 0),
            ("DROP KEYSPACE IF EXISTS ks", 0),
        ];
        for (text, markers) in cases {
            let parsed = parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
            assert_eq!(parsed.markers.len(), markers, "{text}");
            assert!(
                !matches!(parsed.statement, Statement::Unsupported(_)),
                "{text}"
            );
        }
    }

    #[test]
    fn bad_text_is_a_syntax_error_at_every_cut() {
        let text = "SELECT a, b FROM ks.t WHERE a = 1 AND b < 2 LIMIT 5";
        for bad in [
            "",
            ";",
            "SELEC 1",
            "SELECT FROM",
            "SELECT a FROM t WHERE",
            "DROP",
            "x y z",
        ] {
            assert!(matches!(parse(bad), Err(CqlError::Syntax(_))), "{bad}");
        }
        for len in 0..text.len() {
            let _ = parse(&text[..len]);
        }
        assert_eq!(
            parse("SELECT a FRO t"),
            Err(CqlError::Syntax(
                "line 1:9 no viable alternative at input 'FRO'".into()
            ))
        );
    }
}
