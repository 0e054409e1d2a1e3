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

# What makes a keyspace of each kind. One replica, so that only one node is the right one; a
# strongly consistent table has three, of which one leads.
KINDS = {
    "eventual": (1, ""),
    "vnode": (1, "AND tablets = {'enabled': false}"),
    "strong": (3, "AND consistency = 'global'"),
}
TABLE = """CREATE TABLE {table} (
    region text, id bigint, slot int, name text, payload blob, tag uuid, flag boolean, ratio double,
    PRIMARY KEY ((region, id), slot))"""
INSERT = """INSERT INTO {table} (region, id, slot, name, payload, tag, flag, ratio)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
SELECT = """SELECT region, id, slot, name, payload, tag, flag, ratio FROM {table}
    WHERE region = ? AND id = ? AND slot = ?"""
SCAN = "SELECT region, id, slot FROM {table}"
COUNT = "SELECT count(*) FROM {table}"


def add_options(options):
    options.add_argument("--control", required=True, help="HOST:PORT of the simulator's control")
    options.add_argument("--kinds", default="eventual", help=f"of {', '.join(KINDS)}; with commas")


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


def scan(session, rows, table):
    """Reads all keys in pages of 100 and lets the server count."""
    session.default_fetch_size = 100
    paged = session.execute(SCAN.format(table=table))
    pages, keys = 0, []
    while True:
        pages += 1
        keys.extend(map(tuple, paged.current_rows))
        if not paged.has_more_pages:
            break
        paged.fetch_next_page()
    missing = {row[:3] for row in rows} - set(keys)
    count = session.execute(COUNT.format(table=table)).one()[0]
    return {"pages": pages, "rows": len(keys), "missing": len(missing), "count": count}


def one_kind(options, cluster, session, kind):
    """Creates a table, writes it, reads it twice, scans it."""
    replicas, more = KINDS[kind]
    keyspace = f"strangers_{kind}"
    table = f"{keyspace}.rows"
    session.execute(
        f"CREATE KEYSPACE {keyspace} WITH replication = "
        f"{{'class': 'NetworkTopologyStrategy', 'replication_factor': {replicas}}} {more}"
    )
    session.execute(TABLE.format(table=table))
    insert = session.prepare(INSERT.format(table=table))
    select = session.prepare(SELECT.format(table=table))
    rows = [row(number) for number in range(options.rows)]

    written = execute_concurrent_with_args(session, insert, rows, 64)
    saw = {"written": sum(result.success for result in written)}
    saw["different"] = read_all(session, select, rows)
    saw["before"] = control(options, {"cmd": "stats"})
    saw["different_when_warm"] = read_all(session, select, rows)
    saw["after"] = control(options, {"cmd": "stats"})
    # A strongly consistent table answers for one partition at a time.
    saw["scan"] = None if kind == "strong" else scan(session, rows, table)
    saw["tablets_learned"] = len(cluster.metadata._tablets._tablets.get((keyspace, "rows"), []))
    return saw


def run(options, report):
    start = time.monotonic()
    cluster = common.cluster(options)
    session = cluster.connect()
    report["shard_aware_stats"] = wait_for_pools(cluster)
    report["is_shard_aware"] = cluster.is_shard_aware()
    report["connect_seconds"] = time.monotonic() - start
    pool = next(iter(session.get_pools()))
    features = next(iter(pool._connections.values())).features
    names = ("tablets_routing_v1", "tablets_routing_v2", "use_metadata_id")
    report["extensions"] = [name for name in names if getattr(features, name)]

    report["tables"] = {}
    for kind in options.kinds.split(","):
        report["tables"][kind] = one_kind(options, cluster, session, kind)
    report["seconds"] = time.monotonic() - start
    cluster.shutdown()


common.main(__doc__, add_options, run)
