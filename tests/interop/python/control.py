"""The simulator's control port: one JSON object a line, one back."""

import json
import socket


def stats(address):
    """The simulator's counters; None where there is no control port."""
    if not address:
        return None
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(b'{"cmd": "stats"}\n')
        return json.loads(connection.makefile().readline())
