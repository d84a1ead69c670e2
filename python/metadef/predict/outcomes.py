"""A measured kernel as a row of the performance table."""

from __future__ import annotations

import datetime
import socket
from dataclasses import replace

from metadef.cost.table.measurement import Measurement
from metadef.measure.alone import Outcome, Rounds


def as_measurement(about: Measurement, outcome: Outcome) -> Measurement:
    """Return what is known of a kernel before it runs, with the times of an outcome."""
    return replace(
        about,
        ns=outcome.ns,
        p90_ns=outcome.p90_ns,
        least_ns=outcome.least_ns,
        spread=outcome.spread,
        rounds=outcome.rounds,
        flagged=outcome.failed is None and outcome.spread > Rounds.spread,
        failed=outcome.failed,
        date=now(),
        host=socket.gethostname(),
    )


def now() -> str:
    """Return the time as tables have it: UTC, ISO 8601."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
