"""scylla-driver does the workload that all compared drivers do, and prints one JSON line.

The workload is a file: what to create, what to prepare, and steps of requests. Before each step it
tells the conductor and waits for its answer.
"""

import json
import socket

import common
from cassandra import ConsistencyLevel


class Conductor:
    """Who says when the workload may go on."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.connection = socket.create_connection((host, int(port)), timeout=30)
        self.lines = self.connection.makefile()

    def reach(self, point):
        self.connection.sendall(f"{point}\n".encode())
        line = self.lines.readline()
        if line != "go on\n":
            raise RuntimeError(f"the conductor says {line!r}")


class Work:
    """A session with the workload's statements."""

    def __init__(self, session, workload):
        self.session, self.value = session, workload["value"]
        self.statements = [self.prepare(statement) for statement in workload["statements"]]

    def prepare(self, statement):
        prepared = self.session.prepare(statement["cql"])
        prepared.consistency_level = getattr(ConsistencyLevel, statement["level"])
        # One row: nobody asks for pages.
        prepared.fetch_size = None
        return prepared, statement["writes"]

    def step(self, step):
        """The requests in order, so many at once as the step says: the next when all are answered."""
        requests, in_flight = step["requests"], step["in_flight"]
        for first in range(0, len(requests), in_flight):
            wave = requests[first : first + in_flight]
            calls = [self.session.execute_async(*self.bound(index, key)) for index, key in wave]
            for (index, _), call in zip(wave, calls):
                self.check(index, call.result())

    def bound(self, index, key):
        statement, writes = self.statements[index]
        return statement, (key, self.value) if writes else (key,)

    def check(self, index, result):
        if not self.statements[index][1] and [tuple(row) for row in result] != [(self.value,)]:
            raise RuntimeError("a row holds something else")


def add_options(parser):
    parser.add_argument("--workload", required=True, help="the file that says what to do")
    parser.add_argument("--conductor", required=True, help="HOST:PORT of who says when")


def perform(options, report):
    with open(options.workload, encoding="utf-8") as file:
        workload = json.load(file)
    conductor = Conductor(options.conductor)
    with common.cluster(options) as cluster:
        session = cluster.connect()
        conductor.reach("connected")
        for text in workload["create"]:
            session.execute(text)
        work = Work(session, workload)
        for step in workload["steps"]:
            conductor.reach("step")
            work.step(step)
        conductor.reach("end")


common.main(__doc__, add_options, perform)
