"""scylla-driver goes through scenario.json and prints one JSON line for each check.

It reports what it saw, values in the scenario's own notation; whether that is right is decided by
the harness. A check that raises is reported with the error, and the next one is done.
"""

import json
import os
import ssl
import sys
import time
import traceback
import uuid
from datetime import datetime, timedelta
from decimal import Decimal

import cassandra
import common
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.query import BatchStatement, BatchType
from cassandra.util import Date, Duration, OrderedMapSerializedKey, SortedSet, Time
from control import stats


def row(number):
    """Row `number` as the scenario's text says."""
    return (
        f"region-{number % 13}",
        number * 7_919_000_003 - (1 << 60),
        number % 5,
        None if number % 7 == 0 else f"náme {number} \U0001f40d",
        bytes(number % 5 * 11),
        uuid.UUID(int=(0x4000 << 64) | (0x8000 << 48) | number),
        number % 3 == 0,
        number / 7.0 - 50,
    )


def shown(value):
    """A value that was read, in the scenario's notation."""
    if isinstance(value, (set, SortedSet)):
        return sorted(shown(item) for item in value)
    if isinstance(value, (dict, OrderedMapSerializedKey)):
        return sorted([shown(key), shown(item)] for key, item in value.items())
    if hasattr(value, "_fields"):
        return {name: shown(getattr(value, name)) for name in value._fields}
    if isinstance(value, (list, tuple)):
        return [shown(item) for item in value]
    return simple(value)


def simple(value):
    """The same of a value that holds no others."""
    if isinstance(value, int) and abs(value) > 1 << 53:
        return str(value)
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, Decimal):
        sign, digits, exponent = value.as_tuple()
        unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
        return [str(unscaled), -exponent]
    if isinstance(value, Date):
        return value.days_from_epoch
    if isinstance(value, Time):
        return value.nanosecond_time
    if isinstance(value, datetime):
        return round((value - datetime(1970, 1, 1)) / timedelta(milliseconds=1))
    if isinstance(value, Duration):
        return [value.months, value.days, value.nanoseconds]
    return value


class Visit:
    """One run through the scenario."""

    def __init__(self, options):
        self.options = options
        with open(options.scenario, encoding="utf-8") as file:
            self.scenario = json.load(file)
        self.cluster_kind = self.scenario["clusters"][options.cluster]
        self.row_count = self.cluster_kind.get("rows", self.scenario["rows"])
        self.cluster = self.session = None

    def keyspace(self, kind):
        return f"python_{kind}"

    def cql(self, text, kind):
        text = text.replace("{counters}", self.keyspace(self.cluster_kind.get("counters")))
        return text.replace("{keyspace}", self.keyspace(kind))

    def prepare(self, part, name, kind):
        return self.session.prepare(self.cql(self.scenario[part][name], kind))

    def stats(self):
        return stats(self.options.control)

    def run(self):
        say({"driver": "scylla-driver", "version": cassandra.__version__})
        if not check("connect", self.connect):
            return
        rows = [row(number) for number in range(self.row_count)]
        for kind in self.cluster_kind["tables"]:
            self.table(kind, rows)
        features = self.cluster_kind.get("features")
        if features:
            check("collections", lambda: self.collections(features))
            check("udt", lambda: self.udt(features))
            check("lwt", lambda: self.lwt(features))
            check("batch", lambda: self.batch(features))
            check("counter", lambda: self.counter(self.cluster_kind["counters"]))
            check("queries", lambda: self.queries(features))
            check("errors", lambda: self.errors(features))
        self.cluster.shutdown()

    def connect(self):
        more = {}
        if self.options.ca:
            more["ssl_context"] = ssl.create_default_context(cafile=self.options.ca)
        self.cluster = common.cluster(self.options, **more)
        self.session = self.cluster.connect()
        pools = self.wait_for_pools()
        connections = [
            connection
            for pool in self.session.get_pools()
            for connection in pool._connections.values()
        ]
        names = ("tablets_routing_v1", "tablets_routing_v2", "use_metadata_id")
        agreed = {
            name for c in connections for name in names if getattr(c.features, name, False)
        }
        return {
            "hosts": len(self.cluster.metadata.all_hosts()),
            "protocol": self.cluster.protocol_version,
            "shard_aware": bool(self.cluster.is_shard_aware()),
            "pools": pools,
            "extensions": sorted(agreed),
        }

    def wait_for_pools(self):
        """What the driver says of its pools, when each has all its shards or ten seconds passed."""
        end = time.monotonic() + 10
        while True:
            pools = self.cluster.shard_aware_stats() or {}
            full = all(pool["connected"] == pool["shards_count"] for pool in pools.values())
            if not self.cluster.is_shard_aware() or time.monotonic() > end:
                return pools
            if full and len(pools) == len(self.cluster.metadata.all_hosts()):
                return pools
            time.sleep(0.05)

    def table(self, kind, rows):
        """Writes, reads, does both again when warm, and reads all in pages."""
        made = check("schema", lambda: self.create_table(kind), kind)
        insert = select = None
        if made:
            insert, select = check("prepare", lambda: self.prepare_rows(kind), kind) or (None, None)
        if insert is None:
            return
        check("write", lambda: self.write(insert, rows), kind)
        check("read", lambda: self.read(select, rows), kind)
        check("warm_write", lambda: self.counted(lambda: self.write(insert, rows)), kind)
        check("warm_read", lambda: self.counted(lambda: self.read(select, rows)), kind)
        # A strongly consistent table answers for one partition at a time.
        if kind != "strong":
            check("pages", lambda: self.pages(rows, kind), kind)

    def create_table(self, kind):
        self.session.execute(self.cql(self.scenario["keyspaces"][kind], kind))
        self.session.execute(self.cql(self.scenario["table"]["create"], kind))
        table = self.cluster.metadata.keyspaces[self.keyspace(kind)].tables["rows"]
        return {
            "partition_key": [column.name for column in table.partition_key],
            "clustering_key": [column.name for column in table.clustering_key],
            "columns": {name: column.cql_type for name, column in sorted(table.columns.items())},
        }

    def prepare_rows(self, kind):
        insert = self.prepare("table", "insert", kind)
        select = self.prepare("table", "select", kind)
        saw = {
            "insert": len(insert.column_metadata),
            "key": list(insert.routing_key_indexes or []),
            "select": len(select.column_metadata),
        }
        return Kept(saw, (insert, select))

    def counted(self, action):
        before = self.stats()
        saw = action()
        saw["before"], saw["after"] = before, self.stats()
        return saw

    def concurrently(self, statement, values):
        wide = self.scenario["concurrency"]
        return execute_concurrent_with_args(
            self.session, statement, values, wide, raise_on_first_error=False
        )

    def write(self, insert, rows):
        results = self.concurrently(insert, rows)
        return with_first_error({"written": sum(result.success for result in results)}, results)

    def read(self, select, rows):
        results = self.concurrently(select, [row[:3] for row in rows])
        same = sum(
            result.success and list(map(tuple, result.result_or_exc)) == [row]
            for row, result in zip(rows, results)
        )
        return with_first_error({"same": same}, results)

    def pages(self, rows, kind):
        scan = self.prepare("table", "scan", kind)
        scan.fetch_size = self.scenario["page_size"]
        paged = self.session.execute(scan)
        pages, keys, longest = 0, [], 0
        while True:
            pages += 1
            longest = max(longest, len(paged.current_rows))
            keys.extend(map(tuple, paged.current_rows))
            if not paged.has_more_pages:
                break
            paged.fetch_next_page()
        known = {row[:3] for row in rows}
        count = self.session.execute(self.prepare("table", "count", kind)).one()[0]
        return {
            "rows": len(keys),
            "known": len(known & set(keys)),
            "pages": pages,
            "longest": longest,
            "count": count,
        }

    def collections(self, kind):
        part = self.scenario["collections"]
        self.session.execute(self.cql(part["create"], kind))
        insert = self.prepare("collections", "insert", kind)
        select = self.prepare("collections", "select", kind)

        def value(line):
            key, numbers, words, counts, nested, pair = line
            return (
                key,
                numbers,
                words if words is None else set(words),
                counts if counts is None else dict(counts),
                nested if nested is None else dict(nested),
                pair if pair is None else tuple(pair),
            )

        for line in part["rows"]:
            self.session.execute(insert, value(line))
        saw = {"rows": [self.one(select, [line[0]]) for line in part["rows"]]}
        numbers, words, counts, key = part["appended"]
        append = self.prepare("collections", "append", kind)
        self.session.execute(append, (numbers, set(words), dict(counts), key))
        saw["appended"] = self.one(select, [key])
        return saw

    def one(self, statement, values):
        return shown(list(self.session.execute(statement, values).one()))

    def udt(self, kind):
        part = self.scenario["udt"]
        self.session.execute(self.cql(part["type"], kind))
        self.session.execute(self.cql(part["create"], kind))
        user_type = self.cluster.metadata.keyspaces[self.keyspace(kind)].user_types["address"]
        insert, select = (self.prepare("udt", name, kind) for name in ("insert", "select"))
        for key, home, others in part["rows"]:
            self.session.execute(insert, (key, address(home), others and list(map(address, others))))
        return {
            "fields": list(user_type.field_names),
            "rows": [self.one(select, [line[0]]) for line in part["rows"]],
        }

    def lwt(self, kind):
        part = self.scenario["lwt"]
        self.session.execute(self.cql(part["create"], kind))
        steps = []
        for name, values in part["steps"]:
            answer = self.session.execute(self.prepare("lwt", name, kind), values)
            previous = dict(zip(answer.column_names, answer.one()))
            steps.append({"applied": previous.pop("[applied]"), "previous": previous})
        return {"steps": steps, "row": self.one(self.prepare("lwt", "select", kind), [1])}

    def batch(self, kind):
        part = self.scenario["batch"]
        self.session.execute(self.cql(part["create"], kind))
        names = ("insert", "update", "delete")
        prepared = {name: self.prepare("batch", name, kind) for name in names}
        self.session.execute(prepared["insert"], part["before"])
        for name, batch_type in (("logged", BatchType.LOGGED), ("unlogged", BatchType.UNLOGGED)):
            batch = BatchStatement(batch_type)
            for statement, values in part[name]:
                batch.add(prepared[statement], values)
            self.session.execute(batch)
        return {"rows": self.rows_of("batch", (1, 2, 3), kind)}

    def rows_of(self, part, keys, kind):
        select = self.prepare(part, "select", kind)
        return [[shown(list(row)) for row in self.session.execute(select, [key])] for key in keys]

    def counter(self, kind):
        part = self.scenario["counter"]
        self.session.execute(self.cql(part["create"], kind))
        update = self.prepare("counter", "update", kind)
        for _ in range(part["times"]):
            batch = BatchStatement(BatchType.COUNTER)
            for values in part["batch"]:
                batch.add(update, values)
            self.session.execute(batch)
        return {"rows": [rows[0] for rows in self.rows_of("counter", (1, 2), kind)]}

    def queries(self, kind):
        part = self.scenario["queries"]
        for text in part["setup"]:
            self.session.execute(self.cql(text, kind))
        saw = {}
        for name, text in part["selects"].items():
            try:
                answer = self.session.execute(self.cql(text, kind))
            except Exception as error:  # whatever it is, the harness has to see it
                saw[name] = f"{type(error).__name__}: {error}"
                continue
            rows = [shown(list(row)) for row in answer]
            saw[name] = {"columns": list(answer.column_names), "rows": rows}
        return saw

    def errors(self, kind):
        before = self.stats()
        part = self.scenario["errors"]
        saw = {}
        for name, text in part["statements"].items():
            saw[name] = code_of(lambda: self.session.execute(self.cql(text, kind)))
        for name in part["prepared"]:
            text = part["statements"][name]
            saw[f"prepare {name}"] = code_of(lambda: self.session.prepare(self.cql(text, kind)))
        saw["before"] = before
        return saw


class Kept:
    """What a check saw, and what the next ones need of it."""

    def __init__(self, saw, value):
        self.saw, self.value = saw, value


class Address:
    """Stands for the UDT; the driver reads the fields by name."""

    def __init__(self, fields):
        self.street, self.zip = fields["street"], fields["zip"]
        self.tags = fields["tags"] if fields["tags"] is None else set(fields["tags"])


def address(fields):
    return fields and Address(fields)


def with_first_error(saw, results):
    """Beside the counts the first thing that went wrong, so that a report can say it."""
    errors = [result.result_or_exc for result in results if not result.success]
    if errors:
        saw["first_error"] = f"{type(errors[0]).__name__}: {errors[0]}"
    return saw


def code_of(action):
    """The CQL error code that the driver raised, or what came instead."""
    try:
        action()
    except cassandra.AlreadyExists:
        return 0x2400
    except Exception as error:  # whatever it is, the harness has to see it
        code = getattr(error, "code", None) or getattr(error, "error_code", None)
        if code is None and "code=" in str(error):
            code = int(str(error).split("code=")[1][:4], 16)
        return code or f"{type(error).__name__}: {error}"
    return "no error"


def check(name, action, kind=None):
    """Does one check and prints its line; gives what is kept of it, or whether it went through."""
    line = {"check": name}
    if kind:
        line["table"] = kind
    start = time.monotonic()
    kept = True
    try:
        saw = action()
        if isinstance(saw, Kept):
            saw, kept = saw.saw, saw.value
        line["saw"] = saw
    except Exception as error:  # whatever it is, the harness has to see it
        traceback.print_exc()
        line["error"] = f"{type(error).__name__}: {error}"
        kept = None
    line["seconds"] = round(time.monotonic() - start, 3)
    say(line)
    return kept


def say(line):
    print(json.dumps(line, ensure_ascii=False), flush=True)


def options():
    parser = common.parser(__doc__)
    parser.add_argument("--scenario", required=True, help="the file scenario.json")
    parser.add_argument("--cluster", required=True, help="which of the scenario's clusters")
    parser.add_argument("--control", help="HOST:PORT of the simulator's control")
    parser.add_argument("--ca", help="speak TLS and trust this authority")
    return parser.parse_args()


Visit(options()).run()
sys.stdout.flush()
# The driver's threads may outlive a broken connection; the report is out, so leave.
os._exit(0)
