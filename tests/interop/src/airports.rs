//! Real input: 3,376 airports of the United States, of which 1,000 are used.
//!
//! The file is `airports.csv` of the PyPI package `vega-datasets`. The package's own
//! `dataset_info.json` says of it: a subset of the data published by ourairports.com, "and is in
//! the public domain"; OurAirports gives its data to the public domain, and a later release of the
//! same collection names the United States government's data catalogue as source, whose works are
//! not under copyright. [`Airports::read`] checks that the package still says so. It is read from
//! where `pip` put it and is not part of this repository.
//!
//! It is worth its place because no one made it for a test: names with commas, quotes and
//! apostrophes (`W. H. "Bud" Barron`), codes that look like numbers (`00M`), states that hold from
//! one airport to 263, coordinates with up to eight decimals.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::python::Python;

/// The keyspace and table that hold the airports.
pub const TABLE: &str = "interop.airports";

/// The statements that make the table: a composite partition key and a clustering column, so that
/// token and order both matter.
pub const SCHEMA: &str = "\
CREATE KEYSPACE interop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
CREATE TABLE interop.airports (country text, state text, iata text, line int, name text, city text, \
latitude double, longitude double, PRIMARY KEY ((country, state), iata));
";

/// Writes one airport; the markers are in the order of [`Airport::row`].
pub const INSERT: &str = "INSERT INTO interop.airports \
(country, state, iata, line, name, city, latitude, longitude) VALUES (?, ?, ?, ?, ?, ?, ?, ?)";

/// Reads one airport by its whole key; the columns are in the order of [`Airport::row`].
pub const SELECT: &str = "SELECT country, state, iata, line, name, city, latitude, longitude \
FROM interop.airports WHERE country = ? AND state = ? AND iata = ?";

/// One line of the file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Airport {
    /// The country's name.
    pub country: String,
    /// Two letters, or "NA" outside the states.
    pub state: String,
    /// The airport's code, unique in the file.
    pub iata: String,
    /// The line of the file, counted from 1 after the heading.
    pub line: i32,
    /// The airport's name.
    pub name: String,
    /// The town.
    pub city: String,
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
}

impl Airport {
    /// All columns, as JSON values for binding and comparing.
    #[must_use]
    pub fn row(&self) -> Vec<Value> {
        let mut row = self.key();
        row.push(json!(self.line));
        row.extend([&self.name, &self.city].map(|text| json!(text)));
        row.extend([self.latitude, self.longitude].map(|degrees| json!(degrees)));
        row
    }

    /// The primary key.
    #[must_use]
    pub fn key(&self) -> Vec<Value> {
        [&self.country, &self.state, &self.iata]
            .map(|text| json!(text))
            .to_vec()
    }
}

/// The first so many lines of the file.
#[derive(Debug, Clone)]
pub struct Airports {
    rows: Vec<Airport>,
}

impl Airports {
    /// Reads the first `count` airports from the package.
    ///
    /// # Errors
    /// Fails when the file is not there, not as expected, or no longer called public domain.
    pub fn read(python: &Python, count: usize) -> Result<Self> {
        let package = python.site_packages()?.join("vega_datasets");
        let info = fs::read_to_string(package.join("dataset_info.json"))?;
        let info: Value = serde_json::from_str(&info)?;
        let description = info["airports"]["description"].as_str().unwrap_or_default();
        ensure!(
            description.contains("is in the public domain"),
            "the package does not call airports.csv public domain: {description:?}"
        );
        Self::parse(&package.join("_data/airports.csv"), count)
    }

    /// The airports.
    #[must_use]
    pub fn rows(&self) -> &[Airport] {
        &self.rows
    }

    /// Writes one JSON array a line, for `--bind-file`.
    ///
    /// # Errors
    /// Fails when the file cannot be written.
    pub fn write_binds(&self, file: &Path, values: fn(&Airport) -> Vec<Value>) -> Result<()> {
        let lines: String = self
            .rows
            .iter()
            .map(|airport| format!("{}\n", Value::Array(values(airport))))
            .collect();
        fs::write(file, lines).with_context(|| format!("cannot write {}", file.display()))
    }

    /// Compares rows that were read back, in any order, value by value.
    ///
    /// # Errors
    /// Fails on the first row that is missing, unexpected, doubled or different.
    pub fn compare<'a>(&self, rows: impl Iterator<Item = &'a Vec<Value>>) -> Result<()> {
        let mut expected: BTreeMap<&str, &Airport> = self
            .rows
            .iter()
            .map(|airport| (airport.iata.as_str(), airport))
            .collect();
        for row in rows {
            let iata = row.get(2).and_then(Value::as_str).unwrap_or_default();
            let Some(airport) = expected.remove(iata) else {
                bail!("a row that was not written, or came twice: {}", json!(row));
            };
            let wrote = airport.row();
            ensure!(
                *row == wrote,
                "wrote {} and read {}",
                json!(wrote),
                json!(row)
            );
        }
        if let Some((_, airport)) = expected.first_key_value() {
            bail!(
                "{} rows are missing, first {}",
                expected.len(),
                json!(airport.row())
            );
        }
        Ok(())
    }

    fn parse(file: &Path, count: usize) -> Result<Self> {
        let mut reader = csv::Reader::from_path(file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        let heading: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
        let expected = [
            "iata",
            "name",
            "city",
            "state",
            "country",
            "latitude",
            "longitude",
        ];
        ensure!(
            heading == expected,
            "airports.csv has the columns {heading:?}"
        );
        let mut rows = Vec::with_capacity(count);
        for record in reader.records().take(count) {
            let record = record?;
            let text = |index: usize| record[index].to_owned();
            rows.push(Airport {
                country: text(4),
                state: text(3),
                iata: text(0),
                line: i32::try_from(rows.len() + 1)?,
                name: text(1),
                city: text(2),
                latitude: record[5].parse()?,
                longitude: record[6].parse()?,
            });
        }
        ensure!(
            rows.len() == count,
            "airports.csv has {} lines, not {count}",
            rows.len()
        );
        Ok(Self { rows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two lines as they stand in the file.
    fn two() -> Airports {
        let name = format!(
            "messina-airports-{}-{:?}.csv",
            std::process::id(),
            std::thread::current().id()
        );
        let file = std::env::temp_dir().join(name);
        let text = "iata,name,city,state,country,latitude,longitude\n\
            00M,Thigpen,Bay Springs,MS,USA,31.95376472,-89.23450472\n\
            DBN,\"W. H. \"\"Bud\"\" Barron\",Dublin,GA,USA,32.56445806,-82.98525556\n";
        fs::write(&file, text).unwrap();
        let airports = Airports::parse(&file, 2).unwrap();
        assert!(Airports::parse(&file, 3).is_err());
        fs::remove_file(file).unwrap();
        airports
    }

    #[test]
    fn lines_become_rows() {
        let expected = json!([
            "USA",
            "GA",
            "DBN",
            2,
            "W. H. \"Bud\" Barron",
            "Dublin",
            32.56445806,
            -82.98525556
        ]);
        assert_eq!(json!(two().rows()[1].row()), expected);
        assert_eq!(two().rows()[0].key(), ["USA", "MS", "00M"]);
    }

    #[test]
    fn comparison_finds_every_kind_of_difference() {
        let airports = two();
        let [first, second] = [airports.rows()[0].row(), airports.rows()[1].row()];
        let mut changed = second.clone();
        changed[6] = json!(32.564_458_06_f64.next_down());
        let table: [(&[&Vec<Value>], &str); 5] = [
            (&[&second, &first], ""),
            (&[&first], "1 rows are missing"),
            (&[&first, &first], "came twice"),
            (&[&first, &changed], "and read"),
            (&[&first, &second, &changed], "not written"),
        ];
        for (rows, expected) in table {
            let result = airports.compare(rows.iter().copied());
            match result {
                Ok(()) => assert_eq!(expected, ""),
                Err(error) => assert!(
                    !expected.is_empty() && error.to_string().contains(expected),
                    "{error}"
                ),
            }
        }
    }
}
