"""Connects a foreign shard-aware driver to a simulated cluster, writes rows and reads them back.

The report says what the driver believes (shard awareness, connections, tablets) and holds the
simulator's own counters from before and after a warm round of reads. It judges nothing: whoever
started it does.
"""

import json
import socket
import time
import uuid

import common
from cassandra.concurrent import execute_concurrent_with_args

TABLE = """CREATE TABLE strangers.rows (
    region text, id bigint, slot int, name text, payload blob, tag uuid, flag boolean, ratio double,
    PRIMARY KEY ((region, id), slot))"""
INSERT = """INSERT INTO strangers.rows (region, id, slot, name, payload, tag, flag, ratio)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
SELECT = """SELECT region, id, slot, name, payload, tag, flag, ratio FROM strangers.rows
    WHERE region = ? AND id = ? AND slot = ?"""


def add_options(options):
    options.add_argument("--control", required=True, help="HOST:PORT of the simulator's control")
    options.add_argument("--keyspace-options", default="", help="after the replication map")


def row(number):
    """Values that differ in every column; every seventh name is null, every fifth payload empty."""
    return (
        f"region-{number % 13}",
        number * 7_919_000_003 - (1 << 60),
        number % 5,
        None if number % 7 == 0 else f"náme {number} \U0001f40d",
        bytes(number % 5 * 11),
        uuid.uuid5(uuid.NAMESPACE_OID, str(number)),
        number % 3 == 0,
        number / 7.0 - 50,
    )


def control(options, command):
    """One command to the control port and its answer."""
    host, port = options.control.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(json.dumps(command).encode() + b"\n")
        return json.loads(connection.makefile().readline())


def wait_for_pools(cluster):
    """Waits until the driver has a connection to every shard, at most ten seconds."""
    end = time.monotonic() + 10
    while True:
        stats = cluster.shard_aware_stats() or {}
        full = all(pool["connected"] == pool["shards_count"] for pool in stats.values())
        if (stats and full and len(stats) == len(cluster.metadata.all_hosts())) or (
            time.monotonic() > end
        ):
            return stats
        time.sleep(0.05)


def read_all(session, select, rows):
    """Reads each row by its key and counts those that are not as written."""
    results = execute_concurrent_with_args(session, select, [row[:3] for row in rows], 64)
    return sum(list(map(tuple, result.result_or_exc)) != [row] for row, result in zip(rows, results))


def run(options, report):
    start = time.monotonic()
    cluster = common.cluster(options)
    session = cluster.connect()
    report["hosts"] = len(cluster.metadata.all_hosts())
    report["shard_aware_stats"] = wait_for_pools(cluster)
    report["is_shard_aware"] = cluster.is_shard_aware()
    report["connect_seconds"] = time.monotonic() - start

    session.execute(
        "CREATE KEYSPACE strangers WITH replication = "
        "{'class': 'NetworkTopologyStrategy', 'replication_factor': 1} " + options.keyspace_options
    )
    session.execute(TABLE)
    insert, select = session.prepare(INSERT), session.prepare(SELECT)
    rows = [row(number) for number in range(options.rows)]
    written = execute_concurrent_with_args(session, insert, rows, 64)
    report["written"] = sum(result.success for result in written)

    report["different"] = read_all(session, select, rows)
    report["stats_before_warm"] = control(options, {"cmd": "stats"})
    report["different_when_warm"] = read_all(session, select, rows)
    report["stats_after_warm"] = control(options, {"cmd": "stats"})

    session.default_fetch_size = 100
    paged = session.execute("SELECT region, id, slot FROM strangers.rows")
    pages, keys = 0, set()
    while True:
        pages += 1
        keys.update(map(tuple, paged.current_rows))
        if not paged.has_more_pages:
            break
        paged.fetch_next_page()
    report["pages"] = pages
    report["paged_rows"] = len(keys)
    report["paged_missing"] = len({row[:3] for row in rows} - keys)
    report["count"] = session.execute("SELECT count(*) FROM strangers.rows").one()[0]

    tablets = cluster.metadata._tablets._tablets.get(("strangers", "rows"), [])
    report["tablets_learned"] = len(tablets)
    connection = next(iter(session.get_pools()))._connections
    features = next(iter(connection.values())).features
    report["extensions"] = [
        name
        for name in ("tablets_routing_v1", "tablets_routing_v2", "use_metadata_id")
        if getattr(features, name)
    ]
    report["seconds"] = time.monotonic() - start
    cluster.shutdown()


common.main(__doc__, add_options, run)
