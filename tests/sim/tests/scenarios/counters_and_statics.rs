//! Tables with counters and tables with static columns.

use messina_sim::node::TabletsMode;

use crate::support::Sim;

#[test]
fn definitions_are_judged() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    let cases = [
        (
            "CREATE TABLE ks.x (pk int PRIMARY KEY, s int STATIC)",
            "Static columns are only useful (and thus allowed) if the table has at least one \
             clustering column",
        ),
        (
            "CREATE TABLE ks.x (pk int, ck int STATIC, PRIMARY KEY (pk, ck))",
            "Static column ck cannot be part of the PRIMARY KEY",
        ),
        (
            "CREATE TABLE ks.x (pk int PRIMARY KEY, c counter, v int)",
            "Cannot mix counter and non counter columns in the same table",
        ),
        (
            "CREATE TABLE ks.x (pk int PRIMARY KEY, c counter) WITH default_time_to_live = 5",
            "Cannot set default_time_to_live on a table with counters",
        ),
        (
            "ALTER TABLE ks.t ADD c counter",
            "Cannot mix counter and non counter columns in the same table",
        ),
        (
            "ALTER TABLE ks.t ADD s int STATIC",
            "Static columns are only useful (and thus allowed) if the table has at least one \
             clustering column",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(sim.query(id, text).error(), (0x2200, message.to_owned()));
    }
    let (code, _) = sim
        .query(
            id,
            "CREATE TABLE ks.x (pk int PRIMARY KEY) WITH default_time_to_live = -1",
        )
        .error();
    assert_eq!(code, 0x2300);
}

#[test]
fn static_columns_stand_between_key_and_regular_ones() {
    let mut sim = Sim::with_tables(TabletsMode::V2);
    let id = sim.connect(0, 0, &[]);
    sim.ok(
        id,
        "CREATE TABLE ks.s (pk int, a int, b int, z int STATIC, c int, PRIMARY KEY (pk, b)) \
         WITH default_time_to_live = 60",
    );
    sim.ok(id, "ALTER TABLE ks.s ADD y int STATIC");
    let rows = sim
        .ok(
            id,
            "SELECT column_name, kind FROM system_schema.columns WHERE keyspace_name = 'ks' AND \
             table_name = 's'",
        )
        .rows();
    assert_eq!(rows.texts(0), ["a", "b", "c", "pk", "y", "z"]);
    assert_eq!(
        rows.texts(1),
        [
            "regular",
            "clustering",
            "regular",
            "partition_key",
            "static",
            "static"
        ]
    );
    let ttl = sim.ok(
        id,
        "SELECT default_time_to_live FROM system_schema.tables WHERE keyspace_name = 'ks' AND \
         table_name = 's'",
    );
    assert_eq!(ttl.rows().ints(0), [60]);
}
