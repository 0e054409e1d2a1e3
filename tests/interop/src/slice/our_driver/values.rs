//! Values of every type through dynamic values, both ways, with the node as judge.
//!
//! Each value of the table is written twice: by the node from a CQL literal, and by us bound. Both
//! rows must then hold the same bytes, decode to the value of the table, and read the same as the
//! node's JSON, which is written out in the table.

mod table;

use anyhow::{Result, bail, ensure};
use messina_core::types::{ColumnType, CqlValue, DecodeValue, DecodeValueError, TypeMismatch};
use messina_tokio::Session;

use table::{Case, Column};

/// The user-defined types that the table of values needs.
const TYPES: [&str; 2] = [
    "CREATE TYPE driver.place (street text, zip int, tags frozen<set<text>>)",
    "CREATE TYPE driver.home (place frozen<place>, corners frozen<list<frozen<tuple<int, text>>>>)",
];

pub(super) async fn run(session: Session) -> Result<String> {
    let columns = table::columns();
    create(&session, &columns).await?;
    let (mut id, mut failures) = (0, Vec::new());
    for (index, column) in columns.iter().enumerate() {
        let trial = Trial::new(&session, index, column).await?;
        for case in &column.cases {
            if let Err(error) = trial.case(id, case).await {
                failures.push(format!("{} {}: {error:#}", column.ty, case.literal));
            }
            id += 2;
        }
    }
    let (cases, types) = (id / 2, columns.len());
    if !failures.is_empty() {
        bail!(
            "{} of {cases} fail\n{}",
            failures.len(),
            failures.join("\n")
        );
    }
    Ok(format!(
        "{cases} values of {types} types, each by the node and by us: bytes, values and JSON agree"
    ))
}

/// One table with a column for each type: making a table takes the node far longer than a row.
async fn create(session: &Session, columns: &[Column]) -> Result<()> {
    for cql in TYPES {
        session.query(cql, ()).await?;
    }
    let columns: String = columns
        .iter()
        .enumerate()
        .map(|(index, column)| format!(", c{index} {}", column.ty))
        .collect();
    let cql = format!("CREATE TABLE driver.values (id int PRIMARY KEY{columns})");
    session.query(cql, ()).await?;
    Ok(())
}

/// The statements for one column.
struct Trial<'a> {
    session: &'a Session,
    index: usize,
    insert: messina_tokio::Prepared,
    select: messina_tokio::Prepared,
}

/// What the node says of a cell: its value, its bytes, its JSON, and the bytes by a function of the
/// node where there is one.
type Seen = (i32, CqlValue, Cell, Option<String>, Cell);

impl<'a> Trial<'a> {
    async fn new(session: &'a Session, index: usize, column: &Column) -> Result<Self> {
        let as_blob = match column.blob_function() {
            Some(name) => format!("{name}(c{index})"),
            None => format!("c{index} AS again"),
        };
        let select = format!(
            "SELECT id, c{index}, c{index} AS bytes, to_json(c{index}), {as_blob} \
            FROM driver.values WHERE id IN (?, ?)"
        );
        let insert = format!("INSERT INTO driver.values (id, c{index}) VALUES (?, ?)");
        Ok(Self {
            session,
            index,
            insert: session.prepare(insert).await?,
            select: session.prepare(select).await?,
        })
    }

    async fn case(&self, id: i32, case: &Case) -> Result<()> {
        let (index, literal) = (self.index, case.literal);
        let insert = format!("INSERT INTO driver.values (id, c{index}) VALUES ({id}, {literal})");
        self.session.query_unprepared(insert).await?;
        let bound = [CqlValue::Int(id + 1), case.value.clone()];
        self.session.execute(&self.insert, bound).await?;

        let result = self.session.execute(&self.select, (id, id + 1)).await?;
        let rows: Vec<Seen> = result.rows::<Seen>()?.collect::<Result<_, _>>()?;
        let [by_node, by_us] = &rows[..] else {
            bail!("{} rows", rows.len());
        };
        ensure!(
            by_node.2 == by_us.2,
            "the node's literal is {:?}, we bound {:?}",
            by_node.2,
            by_us.2
        );
        for (who, (_, value, bytes, json, as_blob)) in [("node", by_node), ("us", by_us)] {
            ensure!(
                bytes == as_blob,
                "{bytes:?} in the cell, {as_blob:?} as blob"
            );
            // By their text, so that NaN is NaN and -0.0 is not 0.0.
            let (read, wrote) = (format!("{value:?}"), format!("{:?}", case.value));
            ensure!(read == wrote, "written by {who}: {read} instead of {wrote}");
            let json = json.as_deref().unwrap_or_default();
            ensure!(
                json == case.json,
                "written by {who}: the node's JSON is {json}"
            );
        }
        Ok(())
    }
}

/// The bytes of a cell of any type.
#[derive(PartialEq, Eq)]
pub(super) struct Cell(pub(super) Option<Vec<u8>>);

impl core::fmt::Debug for Cell {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match &self.0 {
            None => f.write_str("null"),
            Some(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

impl<'a> DecodeValue<'a> for Cell {
    fn type_check(_: &ColumnType) -> Result<(), TypeMismatch> {
        Ok(())
    }

    fn decode(_: &ColumnType, cell: Option<&'a [u8]>) -> Result<Self, DecodeValueError> {
        Ok(Self(cell.map(<[u8]>::to_vec)))
    }
}

/// Which column of the table has a type.
pub(super) fn index_of(ty: &str) -> Option<usize> {
    table::columns().iter().position(|column| column.ty == ty)
}
