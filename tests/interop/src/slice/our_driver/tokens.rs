//! Tokens of random keys: ours, by the route of a prepared statement, against the node's `token()`.
//!
//! Sets and maps in a key are bound in their own order, because the node stores them so: it hashes
//! what it has put in order, and a key bound otherwise would be routed by another token.

use std::{collections::BTreeSet, time::Instant};

use anyhow::{Context as _, Result, ensure};
use messina_core::routing::Source;
use messina_core::types::{
    CqlDate, CqlDecimal, CqlTime, CqlTimestamp, CqlValue, CqlVarint, UdtValue,
};
use messina_tokio::{Prepared, Session};
use uuid::Uuid;

use super::{Numbers, load};

/// Keys of each kind, where there are as many.
const KEYS: usize = 1_000;

const CREATE_TYPE: &str = "CREATE TYPE driver.point (x int, label text)";

/// The types of the key's columns.
const KINDS: &[&[&str]] = &[
    &["ascii"],
    &["bigint"],
    &["blob"],
    &["boolean"],
    &["date"],
    &["decimal"],
    &["double"],
    &["float"],
    &["inet"],
    &["int"],
    &["smallint"],
    &["text"],
    &["time"],
    &["timestamp"],
    &["timeuuid"],
    &["tinyint"],
    &["uuid"],
    &["varint"],
    &["frozen<list<int>>"],
    &["frozen<set<int>>"],
    &["frozen<map<int, text>>"],
    &["frozen<tuple<int, text>>"],
    &["frozen<point>"],
    &["vector<float, 3>"],
    &["int", "text"],
    &["text", "int"],
    &["uuid", "timestamp", "blob"],
    &["tinyint", "frozen<list<int>>", "decimal"],
];

pub(super) async fn run(session: Session) -> Result<String> {
    let start = Instant::now();
    session.query(CREATE_TYPE, ()).await?;
    let mut keys = 0;
    for (index, kind) in KINDS.iter().enumerate() {
        let table = Table::create(&session, index, kind).await?;
        let compared = table.compare(index as u64).await;
        keys += compared.with_context(|| format!("keys of {kind:?}"))?;
    }
    order_matters(&session)
        .await
        .context("a set bound out of order")?;
    let (kinds, seconds) = (KINDS.len(), start.elapsed().as_secs_f64());
    Ok(format!(
        "{keys} keys of {kinds} kinds, all equal, {seconds:.1} s"
    ))
}

/// The node puts a set in order before it hashes it; we hash what is bound.
async fn order_matters(session: &Session) -> Result<()> {
    let table = Table::create(session, KINDS.len(), &["frozen<set<int>>"]).await?;
    let set = |numbers: [i32; 3]| [CqlValue::Set(numbers.map(CqlValue::Int).to_vec())];
    let (bound, stored) = (set([3, -1, 2]), set([-1, 2, 3]));
    session.execute(&table.insert, &bound).await?;
    let result = session.execute(&table.scan, ()).await?;
    let row: Vec<CqlValue> = result.single_row()?;
    ensure!(row[1..] == stored, "stored as {row:?}");
    table.compare_row(&row)?;
    let ours = session.route(&table.select, &bound)?.token;
    let ours = ours.context("no token")?.value();
    ensure!(row[0] != CqlValue::BigInt(ours), "hashed out of order");
    Ok(())
}

/// A table with nothing but a partition key.
struct Table<'a> {
    session: &'a Session,
    kind: &'static [&'static str],
    insert: Prepared,
    select: Prepared,
    scan: Prepared,
}

impl<'a> Table<'a> {
    async fn create(
        session: &'a Session,
        index: usize,
        kind: &'static [&'static str],
    ) -> Result<Self> {
        let columns = |form: &dyn Fn(usize) -> String| {
            let all: Vec<String> = (0..kind.len()).map(form).collect();
            all.join(", ")
        };
        let names = columns(&|at| format!("k{at}"));
        let typed = columns(&|at| format!("k{at} {}", kind[at]));
        let marks = columns(&|_| "?".to_owned());
        let by_key = columns(&|at| format!("k{at} = ?")).replace(", ", " AND ");
        let table = format!("driver.tokens{index}");
        let create = format!("CREATE TABLE {table} ({typed}, PRIMARY KEY (({names})))");
        session.query(create, ()).await?;
        let prepare = async |cql: String| session.prepare(cql).await;
        Ok(Self {
            session,
            kind,
            insert: prepare(format!("INSERT INTO {table} ({names}) VALUES ({marks})")).await?,
            select: prepare(format!("SELECT {names} FROM {table} WHERE {by_key}")).await?,
            scan: prepare(format!("SELECT token({names}), {names} FROM {table}")).await?,
        })
    }

    /// Writes random keys and compares the token of each row that the node then holds.
    async fn compare(&self, seed: u64) -> Result<usize> {
        let mut numbers = Numbers(seed);
        let keys: Vec<Vec<CqlValue>> = (0..KEYS)
            .map(|_| {
                self.kind
                    .iter()
                    .map(|ty| random(ty, &mut numbers))
                    .collect()
            })
            .collect();
        let distinct: BTreeSet<String> = keys.iter().map(|key| format!("{key:?}")).collect();
        let (session, insert) = (self.session.clone(), self.insert.clone());
        load::concurrently(KEYS, move |index| {
            let (session, insert, key) = (session.clone(), insert.clone(), keys[index].clone());
            async move {
                session.execute(&insert, key).await?;
                Ok(())
            }
        })
        .await?;

        let mut rows = 0;
        let mut pager = self.session.pages(&self.scan, ())?;
        while let Some(page) = pager.next_page().await? {
            for row in page.rows::<Vec<CqlValue>>()? {
                self.compare_row(&row?)?;
                rows += 1;
            }
        }
        ensure!(
            rows == distinct.len(),
            "{rows} rows of {} keys",
            distinct.len()
        );
        Ok(rows)
    }

    fn compare_row(&self, row: &[CqlValue]) -> Result<()> {
        let (token, key) = row.split_first().context("a row without columns")?;
        for prepared in [&self.select, &self.insert] {
            let route = self.session.route(prepared, key)?;
            let ours = route.token.context("no token")?;
            ensure!(
                *token == CqlValue::BigInt(ours.value()),
                "the node says {token:?} of {key:?}, we {ours:?}"
            );
            ensure!(
                route.plan.source() == Source::Ring && !route.plan.targets().is_empty(),
                "planned as {:?}",
                route.plan
            );
        }
        Ok(())
    }
}

/// A random value that the type takes in a key: not empty, for a key must not be.
fn random(ty: &str, numbers: &mut Numbers) -> CqlValue {
    let bits = numbers.next();
    let len = numbers.below(40) + 1;
    let int = |bits: u64| CqlValue::Int(bits as i32);
    match ty {
        "ascii" => CqlValue::Ascii(
            numbers
                .bytes(len)
                .iter()
                .map(|&byte| char::from(byte & 0x7f))
                .collect(),
        ),
        "bigint" => CqlValue::BigInt(bits.cast_signed()),
        "blob" => CqlValue::Blob(numbers.bytes(len)),
        "boolean" => CqlValue::Boolean(bits & 1 == 0),
        "date" => CqlValue::Date(CqlDate {
            days_since_epoch: bits as i32,
        }),
        "decimal" => CqlValue::Decimal(CqlDecimal {
            unscaled: varint(numbers),
            scale: (bits % 40) as i32 - 20,
        }),
        "double" => CqlValue::Double(finite(f64::from_bits(bits))),
        "float" => CqlValue::Float(finite(f64::from(f32::from_bits(bits as u32))) as f32),
        "inet" if bits & 1 == 0 => CqlValue::Inet((bits as u32).to_be_bytes().into()),
        "inet" => CqlValue::Inet(u128::from_be_bytes(sixteen(numbers)).to_be_bytes().into()),
        "int" => int(bits),
        "smallint" => CqlValue::SmallInt(bits as i16),
        "text" => CqlValue::Text((0..len).map(|_| letter(numbers)).collect()),
        "time" => CqlValue::Time(CqlTime {
            nanoseconds: (bits % 86_400_000_000_000).cast_signed(),
        }),
        "timestamp" => CqlValue::Timestamp(CqlTimestamp {
            milliseconds: bits.cast_signed(),
        }),
        "timeuuid" => CqlValue::Timeuuid(uuid(numbers, 1)),
        "tinyint" => CqlValue::TinyInt(bits as i8),
        "uuid" => CqlValue::Uuid(uuid(numbers, 4)),
        "varint" => CqlValue::Varint(varint(numbers)),
        "frozen<list<int>>" => CqlValue::List((0..len % 5).map(|_| int(numbers.next())).collect()),
        "frozen<set<int>>" => CqlValue::Set(
            ordered(len % 5, numbers)
                .into_iter()
                .map(CqlValue::Int)
                .collect(),
        ),
        "frozen<map<int, text>>" => {
            let entry = |key| (CqlValue::Int(key), CqlValue::Text(format!("v{key}")));
            CqlValue::Map(ordered(len % 5, numbers).into_iter().map(entry).collect())
        }
        "frozen<tuple<int, text>>" => {
            CqlValue::Tuple(vec![int(bits), CqlValue::Text(format!("{bits:x}"))])
        }
        "frozen<point>" => {
            let label = if bits & 1 == 0 {
                CqlValue::Null
            } else {
                CqlValue::Text(format!("{bits:x}"))
            };
            let fields = vec![("x".into(), int(bits)), ("label".into(), label)];
            CqlValue::Udt(UdtValue { fields })
        }
        "vector<float, 3>" => {
            let mut part = || CqlValue::Float((numbers.next() as i32) as f32 / 1e3);
            CqlValue::Vector(vec![part(), part(), part()])
        }
        other => unreachable!("no random values of {other}"),
    }
}

fn ordered(count: usize, numbers: &mut Numbers) -> BTreeSet<i32> {
    (0..count).map(|_| numbers.next() as i32).collect()
}

fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

fn letter(numbers: &mut Numbers) -> char {
    const LETTERS: [char; 8] = ['a', 'Z', '0', ' ', 'ü', 'ß', '€', '\u{1f40d}'];
    LETTERS[numbers.below(LETTERS.len())]
}

fn sixteen(numbers: &mut Numbers) -> [u8; 16] {
    let (high, low) = (numbers.next(), numbers.next());
    (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
}

fn uuid(numbers: &mut Numbers, version: u8) -> Uuid {
    let mut bytes = sixteen(numbers);
    bytes[6] = bytes[6] & 0x0f | version << 4;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Uuid::from_bytes(bytes)
}

fn varint(numbers: &mut Numbers) -> CqlVarint {
    let len = numbers.below(20) + 1;
    let bytes = numbers.bytes(len);
    CqlVarint::from_signed_bytes(&bytes).unwrap_or_else(|| CqlVarint::from(0_i64))
}
