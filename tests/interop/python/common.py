"""What the scripts share: options, a connected cluster, and a report as one JSON line."""

import argparse
import json
import os
import sys
import traceback

import cassandra
from cassandra import ConsistencyLevel
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import RoundRobinPolicy, TokenAwarePolicy


def parser(description):
    """The options of every script; the password comes from the environment."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--contact", required=True, help="HOST:PORT, several with commas")
    options.add_argument("--user", help="its password is in MESSINA_PASSWORD")
    options.add_argument("--rows", type=int, default=1000)
    return options


def cluster(options, **more):
    """A cluster object with one plain policy: token aware over all nodes, LOCAL_QUORUM."""
    contacts = [contact.rsplit(":", 1) for contact in options.contact.split(",")]
    auth = None
    if options.user:
        auth = PlainTextAuthProvider(options.user, os.environ["MESSINA_PASSWORD"])
    profile = ExecutionProfile(
        load_balancing_policy=TokenAwarePolicy(RoundRobinPolicy()),
        consistency_level=ConsistencyLevel.LOCAL_QUORUM,
        request_timeout=20,
    )
    return Cluster(
        contact_points=[host for host, _ in contacts],
        port=int(contacts[0][1]),
        auth_provider=auth,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        connect_timeout=10,
        **more,
    )


def main(description, add_options, action):
    """Runs `action(options, report)` and prints the report, also when it fails half way."""
    options = parser(description)
    add_options(options)
    report = {"driver": "scylla-driver", "version": cassandra.__version__}
    code = 0
    try:
        action(options.parse_args(), report)
    except Exception as error:  # whatever it is, the harness has to see it
        traceback.print_exc()
        report["error"] = f"{type(error).__name__}: {error}"
        code = 1
    print(json.dumps(report))
    sys.stdout.flush()
    # The driver's threads may outlive a broken connection; the report is out, so leave.
    os._exit(code)
