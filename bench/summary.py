"""What the records of bench/run.py say: for each row and number of threads, who is how fast."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

Record = dict[str, Any]

OURS, LIMITS = "metadef", "limits"


@dataclass(frozen=True)
class Summary:
    """A row with so many threads. `over` maps each peer to how many times faster Metadef is.

    `of_limit` is the part that Metadef reaches of the machine's multiply-adds, or of a copy that
    moves as much; `others` how many cores other work on the machine kept busy meanwhile.
    """

    row: str
    threads: int
    limit: str
    ms: float | None
    eager_ms: float | None
    over: dict[str, float]
    best_peer: str | None
    over_best: float | None
    of_limit: float | None
    over_one_thread: float | None
    compile_seconds: dict[str, float] = field(default_factory=dict)
    warm_compile_seconds: float | None = None
    running_mib: dict[str, float] = field(default_factory=dict)
    others: float | None = None
    about: Record = field(default_factory=dict)


def summaries(records: Iterable[Record]) -> list[Summary]:
    """Summarise each row and number of threads, in the order in which they come.

    Of several runs of a row with so many threads on one machine, the last counts.
    """
    groups: dict[tuple[str, int, str], list[Record]] = {}
    for record in records:
        key = (record["row"], record["beside_threads"], record["machine"])
        group = groups.setdefault(key, [])
        if group and group[0]["date"] != record["date"]:
            group.clear()
        group.append(record)
    return [_summary(group) for group in groups.values()]


def _summary(group: list[Record]) -> Summary:
    about = group[0]
    threads = about["beside_threads"]
    good = [r for r in group if not r.get("failed")]
    here = {r["program"]: r for r in good if r["threads"] == threads}
    ours, limits = here.pop(OURS, None), here.pop(LIMITS, None)
    alone = next((r for r in good if r["threads"] != threads and r["program"] == OURS), None)
    over = {} if ours is None else {name: ratio(peer, ours) for name, peer in here.items()}
    best = min(over, key=lambda name: over[name], default=None)
    eager = here.get("eager")
    compiled = {name: r["compile_seconds"] for name, r in here.items() if name != "eager"}
    running = {name: r["run_peak_mib"] for name, r in here.items()}
    if ours is not None:
        compiled[OURS], running[OURS] = ours["compile_seconds"], ours["run_peak_mib"]
    return Summary(
        row=about["row"],
        threads=threads,
        limit=about["limit"],
        ms=None if ours is None else median(ours["ms"]),
        eager_ms=None if eager is None else median(eager["ms"]),
        over=over,
        best_peer=best,
        over_best=None if best is None else over[best],
        of_limit=_of_limit(about, ours, eager, limits),
        over_one_thread=None if ours is None or alone is None else ratio(alone, ours),
        compile_seconds=compiled,
        warm_compile_seconds=None if ours is None else ours["warm_compile_seconds"],
        running_mib=running,
        others=None if ours is None else median(ours["others"]),
        about=about,
    )


def ratio(baseline: Record, other: Record) -> float:
    """Return how many times faster `other` is: the median over rounds that both were in."""
    before = dict(zip(baseline["rounds"], baseline["ms"], strict=True))
    after = dict(zip(other["rounds"], other["ms"], strict=True))
    return median(before[number] / after[number] for number in before.keys() & after.keys())


def _of_limit(
    about: Record, ours: Record | None, eager: Record | None, limits: Record | None
) -> float | None:
    """Return the part of the limit that a row bound by multiply-adds or by bandwidth reaches."""
    if ours is None or limits is None:
        return None
    if about["limit"] == "fma" and eager is not None and eager["flops"]:
        work, reached = eager["flops"], limits["fma"]
    elif about["limit"] == "bandwidth":
        work, reached = about["traffic"], limits["copy"]
    else:
        return None
    after = dict(zip(ours["rounds"], ours["ms"], strict=True))
    most = dict(zip(limits["rounds"], reached, strict=True))
    rounds = after.keys() & most.keys()
    return median(work / (after[number] * 1e-3) / most[number] for number in rounds)


def geometric_mean(values: Sequence[float]) -> float:
    """Return the n-th root of the product."""
    return math.exp(sum(map(math.log, values)) / len(values))


def mean_lines(found: Sequence[Summary]) -> list[str]:
    """Return a line for each number of threads and peer, and one for the best peer of each row."""
    lines = []
    for threads in dict.fromkeys(s.threads for s in found):
        here = [s for s in found if s.threads == threads]
        peers = dict.fromkeys(name for s in here for name in s.over)
        ratios = {name: [s.over[name] for s in here if name in s.over] for name in peers}
        ratios["the best peer of each row"] = [s.over_best for s in here if s.over_best is not None]
        for name, values in ratios.items():
            if values:
                lines.append(
                    f"{threads} thread(s), over {name}: geometric mean "
                    f"{geometric_mean(values):.2f}, least {min(values):.2f}, {len(values)} rows"
                )
    return lines
