//! Statements judged against the schema: names found, types known, bind variables described.
//!
//! A plan holds the table it was made for; the catalogue's change drops it from the caches. Nothing
//! is read or written here.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::codec::{Bound, Writer};
use super::cql::{
    Comparison, Condition, Literal, Modify, ModifyKind, Operator, Parsed, Relation,
    SchemaStatement, Select, Selector, Statement, Subject, TableName, Term, TextBatch, Using,
    parse,
};
use super::error::CqlError;
use super::schema::{Catalogue, Role, Table};
use super::value::CqlType;

type Result<T> = core::result::Result<T, CqlError>;

/// A value to be: constant, or the number of a bind variable.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Fixed(Bound),
    Marker(usize),
}

/// Comparisons of one subject.
pub(crate) type Bounds = Vec<(Operator, Operand)>;

/// A bind variable as PREPARED describes it.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) keyspace: String,
    pub(crate) table: String,
    pub(crate) name: String,
    pub(crate) ty: CqlType,
}

/// Result columns, all of one table.
#[derive(Debug)]
pub(crate) struct Metadata {
    pub(crate) keyspace: String,
    pub(crate) table: String,
    pub(crate) columns: Vec<(String, CqlType)>,
    pub(crate) id: [u8; 16],
}

impl Metadata {
    fn new(table: &Table, columns: Vec<(String, CqlType)>) -> Arc<Self> {
        let id = metadata_id(&columns);
        Arc::new(Self {
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
            columns,
            id,
        })
    }

    /// Puts keyspace, table and columns.
    pub(crate) fn put(&self, out: &mut Writer) {
        out.string(&self.keyspace);
        out.string(&self.table);
        for (name, ty) in &self.columns {
            out.string(name);
            ty.put_option(out);
        }
    }
}

/// SHA-256 over names and Java type names, cut to 16 bytes.
pub(crate) fn metadata_id(columns: &[(String, CqlType)]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for (name, ty) in columns {
        for text in [name.as_str(), &ty.java_name()] {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
    }
    let digest: [u8; 32] = hash.finalize().into();
    let mut id = [0; 16];
    id.copy_from_slice(&digest[..16]);
    id
}

/// A test of one column.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pub(crate) column: usize,
    pub(crate) test: Test,
}

/// What a value must satisfy.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    Compare(Operator, Operand),
    In(Vec<Operand>),
    InMarker(usize),
}

/// One column of a result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Output {
    Column(usize),
    Count,
    Token,
}

#[derive(Debug)]
pub(crate) struct SelectPlan {
    pub(crate) table: Arc<Table>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) metadata: Arc<Metadata>,
    /// Tests that fix the partition key, in its order; none for a scan.
    pub(crate) key: Option<Vec<Test>>,
    pub(crate) token_range: Bounds,
    /// Values of the leading clustering columns.
    pub(crate) prefix: Vec<Operand>,
    pub(crate) filters: Vec<Filter>,
    pub(crate) reversed: bool,
    pub(crate) limit: Option<Operand>,
    pub(crate) per_partition_limit: Option<Operand>,
}

impl SelectPlan {
    pub(crate) fn counts(&self) -> bool {
        self.outputs
            .iter()
            .any(|output| matches!(output, Output::Count))
    }

    /// Whether at most one row can come.
    pub(crate) fn is_single_row(&self) -> bool {
        self.single_key().is_some() && self.prefix.len() == self.table.clustering_len
    }

    /// The values of the partition key, if it is one partition.
    pub(crate) fn single_key(&self) -> Option<Vec<&Operand>> {
        self.key.as_ref()?.iter().map(single).collect()
    }
}

fn single(test: &Test) -> Option<&Operand> {
    match test {
        Test::Compare(Operator::Equal, operand) => Some(operand),
        Test::In(operands) => match operands.as_slice() {
            [operand] => Some(operand),
            _ => None,
        },
        _ => None,
    }
}

/// What a modification does to the rows it names.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Insert(Vec<(usize, Operand)>),
    Update(Vec<(usize, Operand)>),
    DeleteCells(Vec<usize>),
    DeleteRows,
}

#[derive(Clone, Debug)]
pub(crate) enum If {
    NotExists,
    Exists,
    Columns(Vec<Filter>),
}

#[derive(Debug)]
pub(crate) struct ModifyPlan {
    pub(crate) table: Arc<Table>,
    pub(crate) key: Vec<Operand>,
    pub(crate) prefix: Vec<Operand>,
    /// Bounds on the clustering column after the prefix (DELETE only).
    pub(crate) range: Bounds,
    pub(crate) action: Action,
    pub(crate) timestamp: Option<Operand>,
    pub(crate) ttl: Option<Operand>,
    pub(crate) condition: Option<If>,
    /// Of a conditional statement: `[applied]` and the columns it shows, with their positions.
    pub(crate) metadata: Option<(Arc<Metadata>, Vec<usize>)>,
}

#[derive(Debug)]
pub(crate) enum Plan {
    Select(Box<SelectPlan>),
    Modify(Box<ModifyPlan>),
    Batch(Vec<ModifyPlan>),
    Use(String),
    Truncate(Arc<Table>),
    Schema(Box<SchemaStatement>, Option<String>),
}

/// A planned statement with everything PREPARED tells about it.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    pub(crate) variables: Vec<Variable>,
    /// Positions of the markers that bind the partition key; empty unless all of it is bound.
    pub(crate) key_markers: Vec<u16>,
}

impl Prepared {
    pub(crate) fn metadata(&self) -> Option<&Arc<Metadata>> {
        match &self.plan {
            Plan::Select(select) => Some(&select.metadata),
            Plan::Modify(modify) => modify.metadata.as_ref().map(|(metadata, _)| metadata),
            _ => None,
        }
    }

    /// INSERT, UPDATE or DELETE with IF.
    pub(crate) fn is_conditional(&self) -> bool {
        matches!(&self.plan, Plan::Modify(modify) if modify.condition.is_some())
    }

    /// A SELECT from a table that the node serves from its own state.
    pub(crate) fn is_virtual(&self) -> bool {
        matches!(&self.plan, Plan::Select(plan) if plan.table.is_virtual)
    }

    /// Whether it depends on the table.
    pub(crate) fn uses(&self, keyspace: &str, table: Option<&str>) -> bool {
        let is = |found: &Table| {
            found.keyspace == keyspace && table.is_none_or(|table| found.name == table)
        };
        match &self.plan {
            Plan::Select(plan) => is(&plan.table),
            Plan::Modify(plan) => is(&plan.table),
            Plan::Batch(plans) => plans.iter().any(|plan| is(&plan.table)),
            Plan::Truncate(table) => is(table),
            Plan::Use(_) | Plan::Schema(..) => false,
        }
    }
}

/// Parses and plans `text` for a connection whose keyspace is `keyspace`.
///
/// A plain node does not have the tables that only ScyllaDB has.
pub(crate) fn plan(
    catalogue: &Catalogue,
    keyspace: Option<&str>,
    plain: bool,
    text: &str,
) -> Result<Prepared> {
    let Parsed { statement, markers } = parse(text)?;
    let variables = vec![None; markers.len()];
    let mut planner = Planner {
        catalogue,
        keyspace,
        plain,
        names: &markers,
        variables,
    };
    let plan = planner.statement(statement)?;
    let variables: Option<Vec<Variable>> = planner.variables.into_iter().collect();
    let variables = variables
        .ok_or_else(|| CqlError::invalid("a bind variable stands where none is supported"))?;
    let key_markers = key_markers(&plan);
    Ok(Prepared {
        plan,
        variables,
        key_markers,
    })
}

fn key_markers(plan: &Plan) -> Vec<u16> {
    let markers = |key: Vec<&Operand>| -> Option<Vec<u16>> {
        key.into_iter()
            .map(|operand| match operand {
                Operand::Marker(at) => u16::try_from(*at).ok(),
                Operand::Fixed(_) => None,
            })
            .collect()
    };
    let found = match plan {
        Plan::Select(select) => select.single_key().and_then(markers),
        Plan::Modify(modify) => markers(modify.key.iter().collect()),
        Plan::Batch(plans) => match plans.split_first() {
            Some((first, rest)) if rest.iter().all(|plan| plan.table.id == first.table.id) => {
                markers(first.key.iter().collect())
            }
            _ => None,
        },
        _ => None,
    };
    found.unwrap_or_default()
}

struct Planner<'a> {
    catalogue: &'a Catalogue,
    keyspace: Option<&'a str>,
    plain: bool,
    names: &'a [Option<String>],
    variables: Vec<Option<Variable>>,
}

impl Planner<'_> {
    fn statement(&mut self, statement: Statement) -> Result<Plan> {
        match statement {
            Statement::Select(select) => self.select(select).map(|plan| Plan::Select(plan.into())),
            Statement::Modify(modify) => self.modify(modify).map(|plan| Plan::Modify(plan.into())),
            Statement::Batch(batch) => self.batch(batch),
            Statement::Use(name) => Ok(Plan::Use(name)),
            Statement::Truncate(name) => Ok(Plan::Truncate(self.writable(&name)?)),
            Statement::Schema(statement) => Ok(Plan::Schema(
                statement.into(),
                self.keyspace.map(str::to_owned),
            )),
            Statement::Unsupported(what) => Err(CqlError::Invalid(format!(
                "{what} is not supported by this node"
            ))),
        }
    }

    fn table(&self, name: &TableName) -> Result<Arc<Table>> {
        let keyspace = name.keyspace.as_deref().or(self.keyspace).ok_or_else(|| {
            CqlError::invalid(
                "No keyspace has been specified. USE a keyspace, or explicitly specify \
                 keyspace.tablename",
            )
        })?;
        let table = self.catalogue.table(keyspace, &name.name)?;
        if self.plain && table.is_virtual && table.name.starts_with("scylla_") {
            return Err(CqlError::Invalid(format!(
                "unconfigured table {}",
                name.name
            )));
        }
        Ok(table)
    }

    fn writable(&self, name: &TableName) -> Result<Arc<Table>> {
        let table = self.table(name)?;
        if table.is_virtual {
            let text = format!("{} keyspace is not user-modifiable.", table.keyspace);
            return Err(CqlError::Unauthorized(text));
        }
        Ok(table)
    }

    fn column(table: &Table, name: &str) -> Result<usize> {
        table.position(name).ok_or_else(|| {
            CqlError::Invalid(format!("Unrecognized name {name} in table {}", table.name))
        })
    }

    /// A term of the type of a column.
    fn operand(&mut self, table: &Table, term: Term, name: &str, ty: &CqlType) -> Result<Operand> {
        match term {
            Term::Marker(at) => {
                self.describe(table, at, name, ty);
                Ok(Operand::Marker(at))
            }
            Term::Literal(Literal::Null) => Ok(Operand::Fixed(Bound::Null)),
            Term::Literal(literal) => ty
                .literal(&literal, name)
                .map(|value| Operand::Fixed(Bound::Value(value))),
            Term::Call(function) => {
                Err(CqlError::Invalid(format!("Unknown function '{function}'")))
            }
        }
    }

    fn describe(&mut self, table: &Table, at: usize, name: &str, ty: &CqlType) {
        let given = self.names.get(at).and_then(Option::as_deref);
        if let Some(slot) = self.variables.get_mut(at)
            && slot.is_none()
        {
            *slot = Some(Variable {
                keyspace: table.keyspace.clone(),
                table: table.name.clone(),
                name: given.unwrap_or(name).to_owned(),
                ty: ty.clone(),
            });
        }
    }

    fn attribute(
        &mut self,
        table: &Table,
        term: Option<Term>,
        name: &str,
        ty: &CqlType,
    ) -> Result<Option<Operand>> {
        term.map(|term| self.operand(table, term, name, ty))
            .transpose()
    }

    /// Milliseconds only, nothing below.
    fn timeout(using: &Using) -> Result<()> {
        let Some(Term::Literal(Literal::Duration(text))) = &using.timeout else {
            return match using.timeout {
                None => Ok(()),
                Some(_) => Err(CqlError::invalid("USING TIMEOUT takes a duration constant")),
            };
        };
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
        if matches!(unit, "ms" | "s" | "m" | "h") {
            return Ok(());
        }
        Err(CqlError::invalid(
            "Timeout values must be expressed in milliseconds or greater",
        ))
    }

    fn comparison(&mut self, table: &Table, at: usize, comparison: Comparison) -> Result<Test> {
        let column = &table.columns[at];
        match comparison {
            Comparison::Compare(operator, term) => self
                .operand(table, term, &column.name, &column.ty)
                .map(|operand| Test::Compare(operator, operand)),
            Comparison::In(terms) => {
                let name = format!("IN({})", column.name);
                let operands: Result<Vec<Operand>> = terms
                    .into_iter()
                    .map(|term| self.operand(table, term, &name, &column.ty))
                    .collect();
                operands.map(Test::In)
            }
            Comparison::InMarker(marker) => {
                let name = format!("IN({})", column.name);
                self.describe(table, marker, &name, &CqlType::list(column.ty.clone()));
                Ok(Test::InMarker(marker))
            }
        }
    }

    fn select(&mut self, select: Select) -> Result<SelectPlan> {
        Self::timeout(&select.using)?;
        let table = self.table(&select.table)?;
        let (outputs, metadata) = outputs(&table, &select.selectors)?;
        let (filters, token_range) = self.relations(&table, select.relations)?;
        let limit = self.attribute(&table, select.limit, "[limit]", &CqlType::INT)?;
        let per_partition_limit = self.attribute(
            &table,
            select.per_partition_limit,
            "[per_partition_limit]",
            &CqlType::INT,
        )?;
        let mut plan = SelectPlan {
            reversed: reversed(&table, &select.order)?,
            table,
            outputs,
            metadata,
            key: None,
            token_range,
            prefix: Vec::new(),
            filters,
            limit,
            per_partition_limit,
        };
        if !plan.table.is_virtual {
            restrict(&mut plan, select.allow_filtering)?;
            if !select.order.is_empty() && plan.key.is_none() {
                return Err(CqlError::invalid(
                    "ORDER BY is only supported when the partition key is restricted by an EQ or \
                     an IN.",
                ));
            }
        }
        Ok(plan)
    }

    fn relations(
        &mut self,
        table: &Table,
        relations: Vec<Relation>,
    ) -> Result<(Vec<Filter>, Bounds)> {
        let (mut filters, mut token_range) = (Vec::new(), Vec::new());
        for Relation {
            subject,
            comparison,
        } in relations
        {
            match subject {
                Subject::Column(name) => {
                    let column = Self::column(table, &name)?;
                    let test = self.comparison(table, column, comparison)?;
                    if matches!(test, Test::Compare(Operator::NotEqual, _)) {
                        let text = format!("Unsupported \"!=\" relation: {name} != ...");
                        return Err(CqlError::Invalid(text));
                    }
                    filters.push(Filter { column, test });
                }
                Subject::Token(columns) => {
                    check_token_columns(table, &columns)?;
                    let Comparison::Compare(operator, term) = comparison else {
                        return Err(CqlError::invalid("IN cannot be used with token()"));
                    };
                    let name = "partition key token";
                    let operand = self.operand(table, term, name, &CqlType::BIGINT)?;
                    token_range.push((operator, operand));
                }
            }
        }
        Ok((filters, token_range))
    }

    fn modify(&mut self, modify: Modify) -> Result<ModifyPlan> {
        let Modify {
            table,
            kind,
            using,
            relations,
            condition,
        } = modify;
        Self::timeout(&using)?;
        let table = self.writable(&table)?;
        let strong = self
            .catalogue
            .keyspace(&table.keyspace)
            .is_some_and(|k| k.is_strong());
        if strong && using.timestamp.is_some() {
            return Err(CqlError::invalid(
                "Strongly consistent queries don't support user-provided timestamps",
            ));
        }
        if strong && condition != Condition::None {
            return Err(CqlError::invalid(
                "Strongly consistent updates don't support data prefetch",
            ));
        }
        let is_insert = matches!(kind, ModifyKind::Insert(_));
        let is_delete = matches!(kind, ModifyKind::Delete(_));
        // Markers are described in the order of the text, so that types are known whatever fails.
        let timestamp = self.attribute(&table, using.timestamp, "[timestamp]", &CqlType::BIGINT)?;
        let ttl = self.attribute(&table, using.ttl, "[ttl]", &CqlType::INT)?;
        let (action, mut keys) = self.action(&table, kind)?;
        let mut range = Vec::new();
        for Relation {
            subject,
            comparison,
        } in relations
        {
            let Subject::Column(name) = subject else {
                return Err(CqlError::invalid(
                    "The token function cannot be used in WHERE clauses for UPDATE and DELETE",
                ));
            };
            let column = Self::column(&table, &name)?;
            if column >= table.key_len() {
                let text = format!("Non PRIMARY KEY {name} found in where clause");
                return Err(CqlError::Invalid(text));
            }
            match self.comparison(&table, column, comparison)? {
                Test::Compare(Operator::Equal, operand) => keys.push((column, operand)),
                Test::Compare(operator, operand) if is_delete && column >= table.partition_len => {
                    range.push((column, operator, operand));
                }
                _ => {
                    return Err(CqlError::Invalid(format!(
                        "Unsupported relation on {name} in UPDATE or DELETE"
                    )));
                }
            }
        }
        let (key, prefix) = split_key(&table, keys)?;
        let wants_row = !matches!(action, Action::DeleteRows);
        if (wants_row || is_insert) && prefix.len() < table.clustering_len {
            let missing = &table.clustering_columns()[prefix.len()].name;
            let text = format!("Missing mandatory PRIMARY KEY part {missing}");
            return Err(CqlError::Invalid(text));
        }
        let next = table.partition_len + prefix.len();
        if let Some((column, ..)) = range.iter().find(|(column, ..)| *column != next) {
            let name = &table.columns[*column].name;
            let text = format!("PRIMARY KEY column \"{name}\" cannot be restricted");
            return Err(CqlError::Invalid(text));
        }
        let range = range
            .into_iter()
            .map(|(_, op, operand)| (op, operand))
            .collect();
        let (condition, metadata) = self.condition(&table, condition)?;
        if condition.is_some() && prefix.len() < table.clustering_len {
            return Err(CqlError::invalid(
                "IN on the clustering key columns or a missing one is not supported with \
                 conditional deletions",
            ));
        }
        Ok(ModifyPlan {
            table,
            key,
            prefix,
            range,
            action,
            timestamp,
            ttl,
            condition,
            metadata,
        })
    }

    fn action(
        &mut self,
        table: &Table,
        kind: ModifyKind,
    ) -> Result<(Action, Vec<(usize, Operand)>)> {
        let is_insert = matches!(kind, ModifyKind::Insert(_));
        match kind {
            ModifyKind::Insert(pairs) | ModifyKind::Update(pairs) => {
                let (mut sets, mut keys) = (Vec::new(), Vec::new());
                for (name, term) in pairs {
                    let at = Self::column(table, &name)?;
                    if at < table.key_len() && !is_insert {
                        let text = format!("PRIMARY KEY part {name} found in SET part");
                        return Err(CqlError::Invalid(text));
                    }
                    let ty = table.columns[at].ty.clone();
                    let operand = self.operand(table, term, &name, &ty)?;
                    let target = if at < table.key_len() {
                        &mut keys
                    } else {
                        &mut sets
                    };
                    if target.iter().any(|(known, _)| *known == at) {
                        let text = format!("Multiple definitions found for column {name}");
                        return Err(CqlError::Invalid(text));
                    }
                    target.push((at, operand));
                }
                let action = if is_insert {
                    Action::Insert(sets)
                } else {
                    Action::Update(sets)
                };
                Ok((action, keys))
            }
            ModifyKind::Delete(columns) if columns.is_empty() => {
                Ok((Action::DeleteRows, Vec::new()))
            }
            ModifyKind::Delete(columns) => {
                let mut positions = Vec::new();
                for name in columns {
                    let at = Self::column(table, &name)?;
                    if at < table.key_len() {
                        let text =
                            format!("Invalid identifier {name} for deletion (PRIMARY KEY part)");
                        return Err(CqlError::Invalid(text));
                    }
                    positions.push(at);
                }
                Ok((Action::DeleteCells(positions), Vec::new()))
            }
        }
    }

    #[expect(
        clippy::type_complexity,
        reason = "the two halves of ModifyPlan it fills"
    )]
    fn condition(
        &mut self,
        table: &Table,
        condition: Condition,
    ) -> Result<(Option<If>, Option<(Arc<Metadata>, Vec<usize>)>)> {
        let all: Vec<usize> = (0..table.columns.len()).collect();
        let (condition, shown) = match condition {
            Condition::None => return Ok((None, None)),
            Condition::NotExists => (If::NotExists, all),
            Condition::Exists => (If::Exists, all),
            Condition::Columns(relations) => {
                let mut filters = Vec::new();
                for Relation {
                    subject,
                    comparison,
                } in relations
                {
                    let Subject::Column(name) = subject else {
                        return Err(CqlError::invalid("token() cannot be used in conditions"));
                    };
                    let column = Self::column(table, &name)?;
                    if column < table.key_len() {
                        return Err(CqlError::Invalid(format!(
                            "PRIMARY KEY column '{name}' cannot have IF conditions"
                        )));
                    }
                    let test = self.comparison(table, column, comparison)?;
                    filters.push(Filter { column, test });
                }
                let mut shown: Vec<usize> = filters.iter().map(|filter| filter.column).collect();
                shown.sort_unstable();
                shown.dedup();
                (If::Columns(filters), shown)
            }
        };
        let applied = ("[applied]".to_owned(), CqlType::BOOLEAN);
        let columns = shown.iter().map(|at| {
            let column = &table.columns[*at];
            (column.name.clone(), column.ty.clone())
        });
        let metadata = Metadata::new(table, core::iter::once(applied).chain(columns).collect());
        Ok((Some(condition), Some((metadata, shown))))
    }

    fn batch(&mut self, batch: TextBatch) -> Result<Plan> {
        if batch.counter {
            return Err(CqlError::invalid(
                "Cannot include non-counter statement in a counter batch",
            ));
        }
        if batch.using.timestamp.is_some() {
            return Err(CqlError::invalid("BATCH USING TIMESTAMP is not supported"));
        }
        let plans: Result<Vec<ModifyPlan>> = batch
            .statements
            .into_iter()
            .map(|statement| self.modify(statement))
            .collect();
        plans.map(Plan::Batch)
    }
}

fn outputs(
    table: &Table,
    selectors: &[(Selector, Option<String>)],
) -> Result<(Vec<Output>, Arc<Metadata>)> {
    let mut found = Vec::new();
    if selectors.is_empty() {
        for (at, column) in table.columns.iter().enumerate() {
            found.push((Output::Column(at), column.name.clone(), column.ty.clone()));
        }
    }
    for (selector, alias) in selectors {
        let (output, name, ty) = match selector {
            Selector::Column(name) => {
                let at = Planner::column(table, name)?;
                (
                    Output::Column(at),
                    name.clone(),
                    table.columns[at].ty.clone(),
                )
            }
            Selector::CountRows => (Output::Count, "count".to_owned(), CqlType::BIGINT),
            Selector::Token(columns) => {
                check_token_columns(table, columns)?;
                let name = format!("system.token({})", columns.join(", "));
                (Output::Token, name, CqlType::BIGINT)
            }
        };
        found.push((output, alias.clone().unwrap_or(name), ty));
    }
    let outputs = found.iter().map(|(output, ..)| *output).collect();
    let columns = found.into_iter().map(|(_, name, ty)| (name, ty)).collect();
    Ok((outputs, Metadata::new(table, columns)))
}

fn check_token_columns(table: &Table, columns: &[String]) -> Result<()> {
    let key = table.partition_columns().iter().map(|column| &column.name);
    if key.eq(columns.iter()) {
        return Ok(());
    }
    Err(CqlError::invalid(
        "The token() function must contain all partition key components in their order",
    ))
}

/// Whether ORDER BY asks for the opposite of the stored order.
fn reversed(table: &Table, order: &[(String, bool)]) -> Result<bool> {
    let mut reversed = None;
    for (at, (name, descending)) in order.iter().enumerate() {
        let column = table
            .clustering_columns()
            .get(at)
            .filter(|column| column.name == *name);
        let Some(column) = column else {
            return Err(CqlError::Invalid(format!(
                "Order by currently only supports the ordering of clustering columns, in their \
                 order; got {name}"
            )));
        };
        let opposite = column.role
            != (Role::Clustering {
                descending: *descending,
            });
        if *reversed.get_or_insert(opposite) != opposite {
            return Err(CqlError::invalid("Unsupported order by relation"));
        }
    }
    Ok(reversed.unwrap_or(false))
}

/// Moves the tests that lead to rows out of the filters; the rest must be allowed.
fn restrict(plan: &mut SelectPlan, allow_filtering: bool) -> Result<()> {
    const REFUSAL: &str = "Cannot execute this query as it might involve data filtering and thus \
                           may have unpredictable performance. If you want to execute this query \
                           despite the performance unpredictability, use ALLOW FILTERING";
    let table = Arc::clone(&plan.table);
    let selects = |filter: &Filter, column: usize| {
        filter.column == column
            && matches!(
                filter.test,
                Test::Compare(Operator::Equal, _) | Test::In(_) | Test::InMarker(_)
            )
    };
    let key: Option<Vec<usize>> = (0..table.partition_len)
        .map(|column| {
            plan.filters
                .iter()
                .position(|filter| selects(filter, column))
        })
        .collect();
    let mut key_filters = false;
    if let Some(positions) = key {
        plan.key = Some(
            positions
                .iter()
                .map(|at| plan.filters[*at].test.clone())
                .collect(),
        );
        remove(&mut plan.filters, positions);
        let mut used = Vec::new();
        for column in table.partition_len..table.key_len() {
            let at = plan.filters.iter().position(|filter| {
                filter.column == column && matches!(filter.test, Test::Compare(Operator::Equal, _))
            });
            let Some(at) = at else { break };
            if let Test::Compare(_, operand) = &plan.filters[at].test {
                plan.prefix.push(operand.clone());
                used.push(at);
            }
        }
        remove(&mut plan.filters, used);
    } else {
        key_filters = !plan.filters.is_empty();
    }
    let next = table.partition_len + plan.prefix.len();
    let beyond = plan
        .filters
        .iter()
        .any(|f| f.column != next || f.column >= table.key_len());
    if (key_filters || beyond) && !allow_filtering {
        return Err(CqlError::invalid(REFUSAL));
    }
    Ok(())
}

fn remove(filters: &mut Vec<Filter>, mut positions: Vec<usize>) {
    positions.sort_unstable();
    for at in positions.into_iter().rev() {
        filters.remove(at);
    }
}

/// Key values in the order of the key; clustering ones may end early but not have gaps.
fn split_key(
    table: &Table,
    mut keys: Vec<(usize, Operand)>,
) -> Result<(Vec<Operand>, Vec<Operand>)> {
    keys.sort_by_key(|(at, _)| *at);
    if let Some(pair) = keys.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let name = &table.columns[pair[0].0].name;
        return Err(CqlError::Invalid(format!(
            "{name} cannot be restricted by more than one relation if it includes an Equal"
        )));
    }
    for at in 0..table.partition_len.max(keys.len()) {
        if keys.get(at).map(|(column, _)| *column) != Some(at) {
            let name = &table.columns[at].name;
            return Err(CqlError::Invalid(format!(
                "Missing mandatory PRIMARY KEY part {name}"
            )));
        }
    }
    let mut key: Vec<Operand> = keys.into_iter().map(|(_, operand)| operand).collect();
    let prefix = key.split_off(table.partition_len);
    Ok((key, prefix))
}

#[cfg(test)]
mod tests {
    use super::super::value::{Native, hex};
    use super::*;

    #[test]
    fn metadata_ids_are_those_of_a_real_node() {
        let column = |name: &str, native| (name.to_owned(), CqlType::Native(native));
        let mut columns = vec![column("pk", Native::Int), column("v", Native::Text)];
        assert_eq!(
            hex(&metadata_id(&columns)),
            "7fd77f07d5d660ea5a14242ae564b4d0"
        );
        columns.push(column("w", Native::BigInt));
        assert_eq!(
            hex(&metadata_id(&columns)),
            "50f36f50f1143fcde847b99928cb8f62"
        );
        assert_eq!(hex(&metadata_id(&[])), "e3b0c44298fc1c149afbf4c8996fb924");
        let applied = [
            column("[applied]", Native::Boolean),
            column("pk", Native::Int),
            column("v", Native::Text),
        ];
        assert_eq!(
            hex(&metadata_id(&applied)),
            "0bad9ccf245e8f8d31c347b63462c520"
        );
    }
}
