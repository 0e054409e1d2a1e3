"""Reads back, with a foreign driver, the airports that the messina command wrote.

A driver that reads its own writes could be wrong twice. So another one counts the rows, lets the
server add up a column, and compares every value with the file.
"""

import csv

import common


def add_options(options):
    options.add_argument("--csv", required=True, help="the file that the rows came from")


def check(options, report):
    cluster = common.cluster(options, protocol_version=4)
    session = cluster.connect()
    local = session.execute("SELECT release_version FROM system.local").one()
    report["release_version"] = local.release_version
    total = session.execute("SELECT count(*) AS n, sum(line) AS lines FROM interop.airports").one()
    report["count"], report["sum_of_lines"] = total.n, total.lines

    with open(options.csv, newline="", encoding="utf-8") as file:
        lines = [line for _, line in zip(range(options.rows), csv.DictReader(file))]
    expected = {}
    for number, line in enumerate(lines, 1):
        degrees = (float(line["latitude"]), float(line["longitude"]))
        words = (line["country"], line["state"], line["name"], line["city"])
        expected[line["iata"]] = (number, *words, *degrees)

    read = session.execute(
        "SELECT iata, line, country, state, name, city, latitude, longitude FROM interop.airports"
    )
    seen = {row[0]: tuple(row[1:]) for row in read}
    report["same"] = sum(seen.get(iata) == values for iata, values in expected.items())
    report["others"] = len(set(seen) - set(expected))
    cluster.shutdown()


common.main(__doc__, add_options, check)
