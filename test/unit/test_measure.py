"""What a device was measured to reach: micro-benchmarks run, figures kept, damage noticed."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest

from metadef.device.levels import capacities, level_names
from metadef.device.limits import Limits, Measurement, fingerprint, from_json, to_json
from metadef.device.probe import probe
from metadef.device.spec import Cache as DataCache
from metadef.device.spec import DeviceSpec, Figures, from_data, to_data
from metadef.diagnostics import DeviceError
from metadef.measure import kernels
from metadef.measure import limits as measuring
from metadef.measure.bench import Bench, Effort
from metadef.runtime.cache import Cache

ONCE = Effort(warm_up=0, rounds=2, tries=1)


def small(**changes: object) -> DeviceSpec:
    """Return this machine with caches so small that memory is gone over quickly."""
    caches = (DataCache(1, 32 << 10, 64, 1), DataCache(2, 256 << 10, 64, 2))
    return dataclasses.replace(probe(), caches=caches, memory_bytes=64 << 20, **changes)


@pytest.fixture(scope="module", params=[1, 2])
def limits(request: pytest.FixtureRequest) -> Limits:
    return measuring.measure_limits(small(), request.param, effort=ONCE)


def test_measures_each_level_and_element_type(limits: Limits) -> None:
    threads = limits.measurements[0].threads
    found = {(m.quantity, m.of) for m in limits.measurements}
    for element in ("f32", "f64"):
        assert ("fma", element) in found
    for level in ("l1", "l2", "memory"):
        assert {("read", level), ("copy", level)} <= found
        assert (("latency", level) in found) == (threads == 1)
    assert limits.levels(threads) == ("l1", "l2", "memory")
    others = {"timer"} if threads == 1 else {"barrier", "fork_join"}
    assert others <= {quantity for quantity, _ in found}
    for m in limits.measurements:
        assert m.threads == threads and m.rounds == 2
        assert 0 < m.value < math.inf and m.spread >= 0


def test_json_keeps_everything(limits: Limits) -> None:
    text = to_json(limits)
    assert from_json(text) == limits
    assert {e["unit"] for e in json.loads(text)["measurements"]} == {"flop/s", "byte/s", "ns"}


def test_figures_fit_into_a_descriptor(limits: Limits) -> None:
    threads = limits.measurements[0].threads
    spec = dataclasses.replace(small(), measured=limits.figures(threads))
    assert from_data(to_data(spec), "test") == spec
    assert set(spec.measured.flops) == {"f32", "f64"}
    assert (spec.measured.barrier_ns is not None) == (threads > 1)


def test_all_rounds_do_the_same_work() -> None:
    spec = small()
    bench = Bench([kernels.timer()], spec, Effort(warm_up=1, rounds=3, tries=2, spread=-1.0))
    assert bench.times("timer", [], {}, 1).rounds == 6


def test_a_chain_of_multiply_adds_fits_in_the_registers() -> None:
    for registers, chains in ((16, 12), (32, 24), (8, 4)):
        spec = dataclasses.replace(probe(), vector_registers=registers)
        assert kernels.fma_chains(spec) == chains
        assert kernels.fma(spec, "f32").text.count("math.fma") == chains
    without = dataclasses.replace(probe(), instructions=())
    assert "math.fma" not in kernels.fma(without, "f32").text


def test_a_working_set_fits_in_its_level_and_in_none_before() -> None:
    spec = dataclasses.replace(
        probe(),
        caches=(
            DataCache(1, 32 << 10, 64, 1),
            DataCache(2, 1 << 20, 64, 1),
            DataCache(3, 32 << 20, 64, 8),
        ),
        memory_bytes=64 << 30,
    )
    for threads in (1, 2, 16):
        sizes = capacities(spec, threads)
        assert tuple(sizes) == level_names(spec)
        nearer = 0
        for level, size in sizes.items():
            assert nearer < measuring.working_set(spec, level, threads) < size
            nearer = size
    assert capacities(spec, 16)["l3"] == 64 << 20


def made(value: float, *, date: str = "2026-01-01", of: str = "f32") -> Limits:
    return Limits("d", "f", date, (Measurement("fma", of, 1, value, 0.0, 3),))


def test_merging_keeps_the_other_ones_figures_and_the_later_date() -> None:
    merged = made(1.0).merged(made(2.0, date="2026-02-01")).merged(made(3.0, of="f64"))
    assert (merged.date, merged.flops("f32", 1), merged.flops("f64", 1)) == ("2026-02-01", 2.0, 3.0)
    assert merged.flops("bf16", 1) == 2.0
    assert merged.flops("f32", 2) is None
    assert merged.bandwidth("l1", 1) is None


def test_a_fingerprint_is_of_the_device_and_not_of_what_was_measured() -> None:
    spec = probe()
    measured = dataclasses.replace(spec, measured=Figures(flops={"f32": 1.0}))
    assert fingerprint(measured) == fingerprint(spec)
    assert fingerprint(dataclasses.replace(spec, threads=spec.threads + 1)) != fingerprint(spec)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "[" * 100_000,
        "{}",
        to_json(made(1.0)).replace('"fma"', '"speed"'),
        to_json(made(1.0)).replace("1.0", "-1.0"),
        to_json(made(1.0)).replace('"spread"', '"width"'),
    ],
)
def test_refuses_what_is_no_measurement(text: str) -> None:
    with pytest.raises(DeviceError, match=r"^limits.json: expected"):
        from_json(text, "limits.json")


def test_the_cache_answers_for_this_device_and_number_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[int] = []

    def measure(spec: DeviceSpec, threads: int, progress: object = None) -> Limits:
        measured.append(threads)
        return dataclasses.replace(
            made(float(len(measured))),
            measurements=(Measurement("fma", "f32", threads, float(len(measured)), 0.0, 1),),
        )

    monkeypatch.setattr(measuring, "measure_limits", measure)
    cache = Cache(tmp_path)
    first = measuring.device_limits(probe(), 2, cache)
    assert measured == [1, 2]
    assert (first.flops("f32", 1), first.flops("f32", 2)) == (1.0, 2.0)
    assert measuring.device_limits(probe(), 2, cache) == first
    assert measured == [1, 2]
    measuring.device_limits(dataclasses.replace(probe(), memory_bytes=1 << 30), 1, cache)
    measuring.device_limits(probe(), 1, cache, again=True)
    assert measured == [1, 2, 1, 1]
    for file in tmp_path.rglob("*.entry"):
        file.write_bytes(file.read_bytes()[:-3])
    measuring.device_limits(probe(), 1, cache)
    assert measured == [1, 2, 1, 1, 1]
