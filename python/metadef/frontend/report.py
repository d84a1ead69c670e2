"""What a compilation did: stages with seconds and nodes, kernels, memory, and what torch runs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from metadef.plan.decision import Applied

from .verdict import Verdict

#: called with a stage, and how much of it is done out of how much
Progress = Callable[[str, int, int], None]


@dataclass
class Stage:
    """One stage: its seconds, and the ops of the graph after it (None where there is no graph)."""

    name: str
    seconds: float
    nodes: int | None = None


@dataclass(frozen=True)
class Memory:
    """Bytes, as expressions of the symbols: intermediate tensors unplanned and planned, weights."""

    unplanned: str
    planned: str
    scratch: str
    weights: int


@dataclass
class Timeline:
    """Collects the stages as they happen, and tells the caller's progress bar."""

    progress: Progress | None = None
    stages: list[Stage] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time the block as a stage; its nodes are set by `nodes`."""
        self.tell(name, 0, 1)
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - start)
        self.tell(name, 1, 1)

    def add(self, name: str, seconds: float, nodes: int | None = None) -> None:
        """Add seconds and nodes to the stage of that name; parts of a graph add up."""
        for stage in self.stages:
            if stage.name == name:
                stage.seconds += seconds
                if nodes is not None:
                    stage.nodes = (stage.nodes or 0) + nodes
                return
        self.stages.append(Stage(name, seconds, nodes))

    def tell(self, name: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(name, done, total)


@dataclass(frozen=True)
class Report:
    """Data about one compiled model; `str` shows it as a table."""

    stages: tuple[Stage, ...]
    #: native parts of the graph: 1 when nothing falls back to torch
    parts: int
    #: kernels that a call runs, and distinct ones among them
    dispatches: int
    kernels: int
    kernels_from_cache: int
    memory: tuple[Memory, ...]
    fallbacks: tuple[Verdict, ...]
    copied_weights: tuple[str, ...] = ()
    #: how much of the plan was followed, if there is one
    plan: Applied | None = None

    @property
    def compile_seconds(self) -> float:
        return sum(stage.seconds for stage in self.stages)

    def __str__(self) -> str:
        rows = [("stage", "nodes", "seconds")]
        rows += [
            (s.name, "" if s.nodes is None else str(s.nodes), f"{s.seconds:.3f}")
            for s in self.stages
        ]
        rows.append(("total", "", f"{self.compile_seconds:.3f}"))
        lines = table(rows)
        lines.append(
            f"{self.parts} native part(s), {self.dispatches} dispatches of {self.kernels} distinct "
            f"kernels ({self.kernels_from_cache} from the cache)"
        )
        for memory in self.memory:
            lines.append(
                f"bytes: intermediates {memory.unplanned} unplanned, {memory.planned} planned; "
                f"scratch {memory.scratch}; weights {memory.weights}"
            )
        for verdict in dict.fromkeys(self.fallbacks):
            where = f" from {verdict.line}" if verdict.line else ""
            lines.append(f"eager: '{verdict.op}'{where}: {verdict.reason}")
        if self.plan is not None:
            lines.append(f"plan: {self.plan}")
            lines += [f"plan: {line}" for line in self.plan.fallbacks]
        if self.copied_weights:
            lines.append(f"copied weights (not dense row-major): {', '.join(self.copied_weights)}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Check:
    """What `metadef.check` found: the verdict of each op in program order; `str` shows a table."""

    verdicts: tuple[Verdict, ...]

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of ops by kind: native, linalg, eager."""
        found = Counter(v.kind for v in self.verdicts)
        return {kind: found.get(kind, 0) for kind in ("native", "linalg", "eager")}

    @property
    def eager(self) -> tuple[Verdict, ...]:
        return tuple(v for v in self.verdicts if v.kind == "eager")

    def __str__(self) -> str:
        groups: dict[tuple[str, str, str], list[Verdict]] = {}
        for v in self.verdicts:
            if v.kind != "host":
                groups.setdefault((v.kind, v.op, v.reason), []).append(v)
        order = {"eager": 0, "linalg": 1, "native": 2}
        rows = [("op", "runs", "count", "lines")]
        for (kind, op, reason), found in sorted(
            groups.items(), key=lambda g: (order[g[0][0]], g[0])
        ):
            lines = list(dict.fromkeys(v.line for v in found if v.line))
            shown = ", ".join(lines[:3]) + (f" and {len(lines) - 3} more" if len(lines) > 3 else "")
            rows.append((op, kind + (f": {reason}" if reason else ""), str(len(found)), shown))
        counts = ", ".join(f"{count} {kind}" for kind, count in self.counts.items())
        return "\n".join([*table(rows), counts])


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as aligned lines, the first one underlined."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * w for w in widths))
    return lines


def as_dict(report: Report) -> dict[str, Any]:
    """Return the report as plain data."""
    from dataclasses import asdict

    return {**asdict(report), "compile_seconds": report.compile_seconds}
