"""A process that holds one program of a bench: builds it, checks it, then runs slices on demand.

    python -m metadef.cli.bench_process REQUEST

REQUEST is JSON, as `side_by_side` writes it. The answers are JSON lines on stdout: first one about
building, then one for each line `{"seconds": s, "calls": n}` on stdin, until that closes. What
libraries print goes to stderr.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from metadef.allocator import give_back_memory
from metadef.cli.memory_peak import MemoryPeak
from metadef.cli.models import Model, load_model
from metadef.cli.usage import UsageError
from metadef.diagnostics import MetadefError

Calls = list[Callable[[], Any]]

#: the program that is ours, and the one that measures the machine instead of a model
OURS, LIMITS = "metadef", "limits"


def main() -> int:
    """Answer until stdin closes; 1 when the program cannot be built."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    request = json.loads(sys.argv[1])
    if request["program"] == LIMITS:
        return _answer_limits(request, answers)
    try:
        model = load_model(request["model"])
    except MetadefError as error:
        kind = "usage" if isinstance(error, UsageError) else "model"
        print(json.dumps({"failed": str(error), "at": kind}), file=answers)
        return 1
    try:
        found, calls = _prepare(model, request)
    except Exception as error:
        said = str(error) if isinstance(error, MetadefError) else f"{type(error).__name__}: {error}"
        print(json.dumps({"failed": said, "at": "program"}), file=answers)
        return 1
    del model  # a program keeps of it what it needs
    gc.collect()
    give_back_memory()
    _forget_peak()
    print(json.dumps(found), file=answers)
    for line in sys.stdin:
        print(json.dumps(_slice(calls, **json.loads(line))), file=answers)
    return 0


def _answer_limits(request: dict[str, Any], answers: TextIO) -> int:
    """Answer with what the machine reaches, instead of the times of a program."""
    from metadef.cli.bench_limits import MachineLimits

    limits = MachineLimits(request["threads"], request["traffic"])
    print(json.dumps({}), file=answers)
    for _ in sys.stdin:
        print(json.dumps({"limits": limits.measure()}), file=answers)
    return 0


def _prepare(model: Model, request: dict[str, Any]) -> tuple[dict[str, Any], Calls]:
    """Build the program and compare its results with eager's; return what was found, and calls."""
    import torch

    from metadef.cli.peers import tensors

    torch.set_num_threads(request["threads"])
    torch.set_grad_enabled(False)
    _warm_up(request)
    with MemoryPeak() as memory:
        start = time.perf_counter()
        bind = _build(model, request)
        bound = [bind(args, model.kwargs) for args in model.calls]
        torch.manual_seed(0)
        results = [tensors(bound[0]())]
        seconds = time.perf_counter() - start
    found = {"compile_seconds": seconds, "compile_adds_mib": memory.added_mib}
    results += [tensors(call()) for call in bound[1:]]
    reference = Path(request["reference"])
    if request["program"] == "eager":
        torch.save(results, reference)
        found["flops"] = _flops(bound)
    elif reference.is_file():
        found["error"] = _compare(results, torch.load(reference), request["error_limit"])
    return found, bound


def _warm_up(request: dict[str, Any]) -> None:
    """Import the program's compiler and let it compile a trifle: the model's own time is wanted."""
    import torch

    layers = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU())
    trifle = Model("trifle", layers.eval(), (torch.zeros(2, 16),))
    _build(trifle, request)(trifle.args, {})()


def _build(model: Model, request: dict[str, Any]) -> Any:
    from metadef.api import compile
    from metadef.cli.peers import bind_to, build_peer

    if request["program"] != OURS:
        return build_peer(request["program"], model, request["threads"])
    compiled = compile(
        model.module,
        model.args,
        model.kwargs,
        dynamic_shapes=model.dynamic_shapes,
        threads=request["threads"],
        device=request["device"],
        fallback=request["fallback"],
        plan=request["plan"],
        error_limit=request["error_limit"],
    )
    return bind_to(compiled)


def _compare(results: list[list[Any]], expected: list[list[Any]], limit: float | None) -> float:
    """Return the greatest relative error of any tensor.

    Raises:
        MetadefError: a tensor is missing, or differs by more than its dtype and the limit allow.
    """
    from metadef.cli.numbers import differences, worst

    pairs = zip(results, expected, strict=True)
    found = worst([d for a, b in pairs for d in differences(a, b, limit=limit)])
    if not found.right:
        raise MetadefError(
            f"wrong numbers in {found.output} ({found.about}): relative error {found.error:.1e}, "
            f"expected at most {found.tolerance:.0e}"
        )
    return found.error


def _flops(calls: Calls) -> int:
    """Return the multiplications and additions of the contractions and convolutions of a call."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        for call in calls:
            call()
    return int(counter.get_total_flops()) // len(calls)


def _slice(calls: Calls, seconds: float, least: int) -> dict[str, Any]:
    """Time passes over the calls for so long, at least so many; each pass gives ms for a call."""
    _pass(calls)  # another program has had the caches
    times: list[float] = []
    busy, own, start = _busy_seconds(), time.process_time(), time.perf_counter()
    while len(times) < least or time.perf_counter() - start < seconds:
        times.append(_pass(calls) * 1e3)
    wall = time.perf_counter() - start
    own = time.process_time() - own
    return {
        "ms": times,
        "cores": own / wall,
        "others": max(0.0, _busy_seconds() - busy - own) / wall,
        "peak_mib": _peak_mib(),
    }


def _pass(calls: Calls) -> float:
    """Return the seconds that a call takes, over one pass; freeing results is not part of it."""
    total = 0.0
    for call in calls:
        start = time.perf_counter()
        result = call()
        total += time.perf_counter() - start
        del result
    return total / len(calls)


def _busy_seconds() -> float:
    """Return for how long the cores of the machine have been busy, all together."""
    fields = Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
    user, nice, system, _idle, _wait, irq, soft, steal = map(int, fields)
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


def _peak_mib() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = [line for line in lines if line.startswith("VmHWM:")]
    return int(peak.split()[1]) / 1024


def _forget_peak() -> None:
    """Let the peak of resident memory begin again at what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")


if __name__ == "__main__":
    sys.exit(main())
