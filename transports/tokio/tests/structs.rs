//! Structs through a session on tokio and a simulated cluster: written, read whole, in pages, in a
//! batch; values of user-defined types alone and in lists.

use messina_sim::node::Options;
use messina_sim::tcp::SimServer;
use messina_tokio::types::{DecodeRow, DecodeValue, EncodeRow, EncodeValue, MaybeUnset};
use messina_tokio::{Batch, Session};

/// Named as a user of the transport alone would name them.
#[derive(Clone, Debug, PartialEq, EncodeRow, DecodeRow)]
#[messina(crate = "messina_tokio")]
struct Voyage {
    ship: String,
    number: i32,
    berth: Option<Berth>,
    /// An empty list is not kept: it comes back as null.
    #[messina(default_when_null)]
    log: Vec<Entry>,
    state: State,
}

#[derive(Clone, Debug, PartialEq, EncodeValue, DecodeValue)]
struct Berth {
    pier: String,
    place: i32,
}

#[derive(Clone, Debug, PartialEq, EncodeValue, DecodeValue)]
struct Entry {
    at: i64,
    note: Option<String>,
    #[messina(rename = "where")]
    place: Berth,
}

#[derive(Clone, Copy, Debug, PartialEq, EncodeValue, DecodeValue)]
#[messina(rename_all = "snake_case")]
enum State {
    UnderWay,
    Moored,
}

fn voyage(number: i32) -> Voyage {
    let berth = |place| Berth {
        pier: "west".into(),
        place,
    };
    Voyage {
        ship: format!("ship {}", number % 2),
        number,
        berth: (number % 3 > 0).then(|| berth(number)),
        log: (0..number % 4)
            .map(|at| Entry {
                at: i64::from(at),
                note: (at % 2 == 0).then(|| format!("note {at}")),
                place: berth(at),
            })
            .collect(),
        state: [State::UnderWay, State::Moored][usize::from(number % 5 == 0)],
    }
}

const SCHEMA: [&str; 4] = [
    "CREATE KEYSPACE port WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}",
    "CREATE TYPE port.berth (pier text, place int)",
    "CREATE TYPE port.entry (at bigint, where frozen<berth>, note text)",
    "CREATE TABLE port.voyages (ship text, number int, log list<frozen<entry>>, berth frozen<berth>, \
     state text, PRIMARY KEY (ship, number))",
];
const INSERT: &str =
    "INSERT INTO port.voyages (number, ship, berth, log, state) VALUES (?, ?, ?, ?, ?)";

async fn port() -> (SimServer, Session) {
    let mut options = Options::uniform(2, 2);
    options.port = 0;
    options.shard_aware_port = Some(0);
    let server = SimServer::start(options).await.expect("ports are free");
    let contact = server.contacts()[0].to_string();
    let session = messina_tokio::builder()
        .contact(&contact)
        .connect()
        .await
        .unwrap();
    for statement in SCHEMA {
        session.query(statement, ()).await.unwrap();
    }
    (server, session)
}

#[tokio::test]
async fn structs_are_written_and_read() {
    let (server, session) = port().await;
    let insert = session.prepare(INSERT).await.unwrap();
    for number in 0..10 {
        session.execute(&insert, voyage(number)).await.unwrap();
    }
    // Where a row goes does not depend on how its key is bound.
    let tuple = (
        3,
        "ship 1",
        None::<Berth>,
        Vec::<Entry>::new(),
        State::Moored,
    );
    let route = session.route(&insert, voyage(3)).unwrap();
    assert_eq!(route.token, session.route(&insert, tuple).unwrap().token);
    assert!(route.token.is_some());

    // By a statement that gives the columns in the order of the table.
    let select = session
        .prepare("SELECT * FROM port.voyages WHERE ship = ?")
        .await
        .unwrap();
    let found = session.execute(&select, ("ship 1",)).await.unwrap();
    let rows: Result<Vec<Voyage>, _> = found.rows().unwrap().collect();
    let expected: Vec<_> = [1, 3, 5, 7, 9].map(voyage).into();
    assert_eq!(rows.unwrap(), expected);
    server.stop().await;
}

#[tokio::test]
async fn structs_are_read_in_pages_and_written_in_batches() {
    let (server, session) = port().await;
    let insert = session.prepare(INSERT).await.unwrap();
    let mut batch = Batch::unlogged();
    for number in 0..10 {
        batch.push(&insert, voyage(number)).unwrap();
    }
    session.batch(&batch).await.unwrap();
    let select = "SELECT state, log, berth, number, ship FROM port.voyages WHERE ship = ?";
    let select = session
        .prepare(messina_tokio::Statement::new(select).with_page_size(2))
        .await
        .unwrap();

    #[derive(EncodeRow)]
    struct Key {
        ship: &'static str,
    }
    let mut pages = session.pages(&select, Key { ship: "ship 0" }).unwrap();
    let (mut rows, mut count) = (Vec::new(), 0);
    while let Some(page) = pages.next_page().await.unwrap() {
        for row in page.rows::<Voyage>().unwrap() {
            rows.push(row.unwrap());
        }
        count += 1;
    }
    assert_eq!(rows, [0, 2, 4, 6, 8].map(voyage));
    assert!(count >= 3, "{count} pages");
    server.stop().await;
}

#[tokio::test]
async fn unset_fields_leave_columns_as_they_are() {
    let (server, session) = port().await;
    session.query(INSERT, voyage(5)).await.unwrap();

    #[derive(EncodeRow)]
    struct Change<'a> {
        berth: MaybeUnset<Berth>,
        state: MaybeUnset<State>,
        ship: &'a str,
        number: i32,
    }
    let update = "UPDATE port.voyages SET berth = ?, state = ? WHERE ship = ? AND number = ?";
    let change = Change {
        berth: MaybeUnset::Unset,
        state: MaybeUnset::Set(State::UnderWay),
        ship: "ship 1",
        number: 5,
    };
    session.query(update, &change).await.unwrap();

    #[derive(Debug, PartialEq, DecodeRow)]
    struct Left {
        state: State,
        berth: Option<Berth>,
    }
    let found = session
        .query("SELECT berth, state FROM port.voyages", ())
        .await
        .unwrap();
    let left: Left = found.single_row().unwrap();
    let berth = voyage(5).berth;
    assert!(berth.is_some());
    assert_eq!(
        left,
        Left {
            state: State::UnderWay,
            berth
        }
    );

    let error = found.single_row::<Voyage>().unwrap_err();
    let error = error.row_error().unwrap().to_string();
    assert_eq!(error, "field Voyage.ship: no column is named ship");
    let error = session.query(INSERT, &change).await.unwrap_err();
    let error = error.bind_error().unwrap().to_string();
    assert_eq!(error, "no field is named as marker 3 (log)");
    server.stop().await;
}
