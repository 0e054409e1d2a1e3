"""Has the exchange that is recorded for the conformance tests, with scylla-driver.

The same statements and values as the harness's own `capture/exchange.rs`, so that the bytes of two
drivers can be compared. By hand: start `messina-interop capture`, run this against its contact.
"""

import datetime
import decimal
import os
import sys
import uuid

from cassandra import ConsistencyLevel
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster
from cassandra.query import BatchStatement, BatchType, SimpleStatement, UNSET_VALUE
from cassandra.util import Date, Duration, Time

COLUMNS = (
    "id c_ascii c_bigint c_blob c_boolean c_date c_decimal c_double c_duration c_float c_inet "
    "c_smallint c_text c_time c_timestamp c_timeuuid c_tinyint c_uuid c_varint c_list c_set c_map "
    "c_tuple c_place c_vector"
).split()
VALUES = [
    1,
    "ascii",
    -2,
    b"\x00\xff",
    True,
    Date(datetime.date(2024, 2, 29)),
    decimal.Decimal("-1.50"),
    0.1,
    Duration(1, 2, 3),
    1.5,
    "127.0.0.1",
    -2,
    "grün",
    Time(45296789012345),
    datetime.datetime(2024, 2, 29, 12, 34, 56, 789000),
    uuid.UUID("13814000-1dd2-11b2-8080-808080808080"),
    -128,
    uuid.UUID("01234567-89ab-4def-8123-456789abcdef"),
    1 << 127,
    [1, -1],
    {"a", "b"},
    {"a": 1},
    (1, "x"),
    ("Market", 7),
    [1.5, -2.0, 0.0],
]


def refused(session, statement):
    try:
        session.execute(statement)
    except Exception as error:  # the recording has it
        print(type(error).__name__, error)
    else:
        sys.exit(f"{statement} was taken")


def types(session):
    marks = ", ".join("?" * len(COLUMNS))
    insert = session.prepare(
        f"INSERT INTO golden.types ({', '.join(COLUMNS)}) VALUES ({marks})"
    )
    session.execute(insert, VALUES)
    session.execute(insert, [2] + [None] * (len(COLUMNS) - 1))
    session.execute(insert, [3] + [UNSET_VALUE] * (len(COLUMNS) - 1))
    select = session.prepare("SELECT * FROM golden.types WHERE id = ?")
    session.execute(select, [1])


def pages(session):
    insert = session.prepare("INSERT INTO golden.rows (part, num, val) VALUES (?, ?, ?)")
    for num in 1, 2, 3:
        session.execute(insert, [1, num, f"v{num}"])
    select = session.prepare("SELECT part, num, val FROM golden.rows WHERE part = ?")
    select.fetch_size = 2
    list(session.execute(select, [1]))


def batches(session):
    batches_of_rows(session)
    counter_and_condition(session)


def batches_of_rows(session):
    insert = session.prepare("INSERT INTO golden.rows (part, num, val) VALUES (?, ?, ?)")
    text = "INSERT INTO golden.rows (part, num, val) VALUES (7, 1, 'b')"
    for kind in BatchType.LOGGED, BatchType.UNLOGGED:
        batch = BatchStatement(batch_type=kind)
        batch.add(SimpleStatement(text))
        batch.add(insert, [7, 2, "c"])
        session.execute(batch)


def counter_and_condition(session):
    count = session.prepare("UPDATE golden.counts SET hits = hits + ? WHERE id = ?")
    batch = BatchStatement(batch_type=BatchType.COUNTER)
    batch.add(count, [5, 1])
    session.execute(batch)
    text = "INSERT INTO golden.rows (part, num, val) VALUES (7, 1, 'b') IF NOT EXISTS"
    batch = BatchStatement(serial_consistency_level=ConsistencyLevel.SERIAL)
    batch.add(SimpleStatement(text))
    session.execute(batch)


def conditional(session):
    insert = session.prepare(
        "INSERT INTO golden.rows (part, num, val) VALUES (?, ?, ?) IF NOT EXISTS"
    )
    insert.serial_consistency_level = ConsistencyLevel.LOCAL_SERIAL
    for val in "first", "second":
        session.execute(insert, [8, 1, val])


def simulator(session):
    """What ScyllaDB's extensions add to a frame: metadata ids, tablets, the mark of an LWT."""
    session.execute(
        "CREATE KEYSPACE golden WITH replication = "
        "{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}"
    )
    session.execute(
        "CREATE TABLE golden.rows (part int, num int, val text, PRIMARY KEY (part, num))"
    )
    pages(session)
    conditional(session)
    batches_of_rows(session)


def main():
    host, port = sys.argv[1].rsplit(":", 1)
    auth = PlainTextAuthProvider("cassandra", os.environ.get("MESSINA_PASSWORD", "cassandra"))
    cluster = Cluster([host], int(port), protocol_version=4, auth_provider=auth, compression=False)
    session = cluster.connect()
    if "simulator" in sys.argv:
        simulator(session)
        cluster.shutdown()
        return
    types(session)
    pages(session)
    conditional(session)
    batches(session)
    refused(session, "SELEKT 1")
    insert = "INSERT INTO golden.rows (part, num) VALUES (2, 1)"
    refused(session, SimpleStatement(insert, consistency_level=ConsistencyLevel.TWO))
    cluster.shutdown()


main()
