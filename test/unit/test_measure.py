"""What a device was measured to reach: micro-benchmarks run, figures kept, damage noticed."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from metadef.cli.main import main
from metadef.device.descriptor import load
from metadef.device.figures import Figure, Figures, figures
from metadef.device.figures import from_data as figures_from_data
from metadef.device.levels import capacities, level_names
from metadef.device.peak import with_peak
from metadef.device.probe import probe
from metadef.device.shipped import shipped
from metadef.device.spec import Cache as DataCache
from metadef.device.spec import DeviceSpec, to_data
from metadef.diagnostics import DeviceError
from metadef.measure import describe as describing
from metadef.measure import kernels
from metadef.measure import limits as measuring
from metadef.measure.arithmetic import arithmetic, fma, fma_chains
from metadef.measure.bench import Bench, Effort
from metadef.runtime.cache import Cache

ONCE = Effort(warm_up=0, rounds=2, tries=1)


def small(**changes: object) -> DeviceSpec:
    """Return this machine with caches so small that memory is gone over quickly."""
    caches = (DataCache(1, 32 << 10, 64, 1), DataCache(2, 256 << 10, 64, 2))
    return dataclasses.replace(probe(), caches=caches, memory_bytes=64 << 20, **changes)


@pytest.fixture(scope="module", params=[1, 2])
def limits(request: pytest.FixtureRequest) -> Figures:
    return measuring.measure_limits(small(), request.param, effort=ONCE)


def test_measures_each_level_and_element_type(limits: Figures) -> None:
    threads = limits.entries[0].threads
    assert threads is not None
    found = {(f.quantity, f.of) for f in limits.entries}
    for element in ("f32", "f64"):
        assert ("flops", element) in found
    for level in ("l1", "l2", "memory"):
        assert {("read", level), ("copy", level)} <= found
        assert (("latency_ns", level) in found) == (threads == 1)
    assert limits.levels(threads) == ("l1", "l2", "memory")
    others = {"timer_ns", "clock_hz"} if threads == 1 else {"barrier_ns", "fork_join_ns"}
    assert others <= {quantity for quantity, _ in found}
    for f in limits.entries:
        assert f.threads == threads and f.rounds == 2
        assert 0 < f.value < math.inf and f.spread is not None and f.spread >= 0


def test_figures_fit_into_a_descriptor(limits: Figures) -> None:
    spec = dataclasses.replace(small(), threads=2, measured=limits)
    data = to_data(spec)
    # Two rounds in a busy test say nothing of which level is faster.
    assert figures_from_data(data["measured"]) == limits
    assert set(spec.measured.flops) == {"f32", "f64"}


def test_no_instruction_no_reduced_precision() -> None:
    bare = dataclasses.replace(probe(), instructions=())
    assert [b.of for b in arithmetic(bare)] == ["f32", "f64"]
    assert "math.fma" not in fma(bare, "f32").kernel.text


def test_all_rounds_do_the_same_work() -> None:
    spec = small()
    bench = Bench([kernels.timer()], spec, Effort(warm_up=1, rounds=3, tries=2, spread=-1.0))
    assert bench.times("timer", [], {}, 1).rounds == 6


def test_a_chain_of_multiply_adds_fits_in_the_registers() -> None:
    for registers, chains in ((16, 12), (32, 24), (8, 4)):
        spec = dataclasses.replace(probe(), vector_registers=registers)
        assert fma_chains(spec) == chains
        benchmark = fma(spec, "f32")
        assert benchmark.kernel.text.count("math.fma") == chains
        assert benchmark.operations == 2 * chains * spec.vector_bits // 32


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


def test_the_cache_answers_for_this_device_and_number_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[int] = []

    def measure(spec: DeviceSpec, threads: int, progress: object = None) -> Figures:
        measured.append(threads)
        return Figures((Figure("flops", "f32", float(len(measured)), threads, 0.0, 1),))

    monkeypatch.setattr(measuring, "measure_limits", measure)
    cache = Cache(tmp_path)
    first = measuring.device_limits(probe(), 2, cache)
    assert measured == [1, 2]
    assert (first.flops_of("f32", 1), first.flops_of("f32", 2)) == (1.0, 2.0)
    assert measuring.device_limits(probe(), 2, cache) == first
    assert measured == [1, 2]
    measuring.device_limits(dataclasses.replace(probe(), memory_bytes=1 << 30), 1, cache)
    measuring.device_limits(probe(), 1, cache, again=True)
    assert measured == [1, 2, 1, 1]
    for file in tmp_path.rglob("*.entry"):
        file.write_bytes(file.read_bytes()[:-3])
    measuring.device_limits(probe(), 1, cache)
    assert measured == [1, 2, 1, 1, 1]


@pytest.mark.parametrize(
    "entry", ["", "[]", "[" * 100_000, '{"speed": 1}', '{"flops": {"f32": [{}]}}']
)
def test_an_entry_of_another_form_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    new = Figures((Figure("flops", "f32", 1.0, 1, 0.0, 1),))
    monkeypatch.setattr(measuring, "measure_limits", lambda *args, **options: new)
    cache = Cache(tmp_path)
    monkeypatch.setattr(cache, "get", lambda key: entry.encode())
    assert measuring.device_limits(probe(), 1, cache) == new


def test_a_described_machine_has_figures_of_one_thread_and_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def measure(spec: DeviceSpec, threads: int, **options: object) -> Figures:
        return Figures((Figure("flops", "f32", 1e9 * threads, threads, 0.0, 1),), "2026-11-30")

    monkeypatch.setattr(describing, "measure_limits", measure)
    machine = dataclasses.replace(small(), cores=4, threads=8, measured=Figures())
    made = describing.describe(machine)
    assert [f.threads for f in made.measured.entries] == [1, 8]
    assert made.energy is not None and (made.energy.reason or made.energy.domains)
    half = describing.describe(machine, 2)
    assert (half.threads, half.cores, half.measured.flops["f32"]) == (2, 2, 2e9)
    with pytest.raises(DeviceError, match="threads: expected at most the 8 of here, got 9"):
        describing.describe(machine, 9)


def test_impossible_measurements_are_no_description(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Figures((Figure("read", "l1", 1e9, 1), Figure("read", "memory", 9e9, 1)))
    right = Figures((Figure("read", "l1", 9e9, 1),))
    machine = dataclasses.replace(small(), cores=1, threads=1)
    answers = [wrong, right]
    monkeypatch.setattr(describing, "measure_limits", lambda *args, **options: answers.pop(0))
    assert describing.describe(machine).measured == right
    answers += [wrong, wrong]
    with pytest.raises(DeviceError, match="measured beside other work.*'measured.read.memory'"):
        describing.describe(machine)


def test_the_command_prints_theory_beside_measurements_and_writes_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    efforts = []

    def measure(spec: DeviceSpec, threads: int, **options: object) -> Figures:
        efforts.append(options["effort"])
        return Figures((Figure("flops", "f32", 4e9 * threads, threads, 0.25, 1),), "2026-11-30")

    monkeypatch.setattr(describing, "measure_limits", measure)
    machine = with_peak(
        dataclasses.replace(
            shipped("amd-zen3-server"), cores=1, threads=2, theoretical=figures(clock_hz=3e9)
        )
    )
    monkeypatch.setattr("metadef.runtime.host.this_device", lambda: machine)
    file = tmp_path / "dev.json"
    command = ["device", "probe", "--quick", "-o", str(file), "--features-of", "x86-64-v3"]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "1 thread(s)" in out and "2 thread(s)" in out and "figures, measured 2026-11-30" in out
    # 3 GHz * 2 units * 8 lanes * 2 operations, beside what was measured in noise
    (row,) = (line for line in out.splitlines() if "flops f32" in line)
    assert [cell.strip() for cell in row.split("│")][2:-1] == [
        "Gop/s",
        "96.00",
        "4.00 +-25%!",
        "8.00 +-25%!",
    ]
    assert efforts == [describing.QUICK, describing.QUICK]
    written = load(file)
    assert written.cpu == "x86-64-v3" and written.measured.flops == {"f32": 8e9}
    assert main(["device", "probe", "--threads", "3"]) == 1
    assert "threads: expected at most the 2 of here, got 3" in capsys.readouterr().err
