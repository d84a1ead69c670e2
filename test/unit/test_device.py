"""The device's spec: attribute and JSON both ways, errors, and the probe on machines of paper."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest

from metadef import ir
from metadef.device import attribute as device
from metadef.device import descriptor, spec
from metadef.device.figures import Figure, Figures, figures
from metadef.device.probe import Host, probe, probe_host
from metadef.device.spec import Cache, DeviceSpec, Energy, Gpu, Instruction, MatrixInstruction
from metadef.diagnostics import DeviceError

BOARD = DeviceSpec(
    name="board",
    kind="cpu",
    triple="aarch64-unknown-linux-gnu",
    cpu="cortex-a72",
    features="+neon,-sve",
    cores=4,
    threads=4,
    vector_bits=128,
    vector_registers=32,
    instructions=(Instruction("fma", "f32", "f32", "f32", 1, "llvm.fma"),),
    caches=(Cache(1, 32768, 64, 1), Cache(2, 1 << 20, 64, 4)),
    memory_bytes=4 << 30,
    types=("f32", "i32"),
    alignment=64,
    theoretical=figures(clock_hz=1.5e9, flops={"f32": 48e9}),
    measured=figures(bandwidth={"l1": 40e9, "memory": 8.5e9}, barrier_ns=300.0),
)


def board_data(**changes: Any) -> str:
    return json.dumps({**spec.to_data(BOARD), **changes})


def test_json_round_trip() -> None:
    assert descriptor.from_json(descriptor.to_json(BOARD)) == BOARD


def test_attribute_round_trip_through_text() -> None:
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.create()
        module.operation.attributes[device.ATTRIBUTE] = device.attribute_of(BOARD)
        assert device.of(ir.Module.parse(str(module))) == BOARD


def test_file_round_trip(tmp_path: Path) -> None:
    descriptor.save(BOARD, tmp_path / "board.json")
    assert descriptor.load(tmp_path / "board.json") == BOARD


def test_unknown_figures_are_left_out_or_null() -> None:
    bare = dataclasses.replace(BOARD, theoretical=Figures(), measured=Figures())
    assert "measured" not in spec.to_data(bare)
    text = board_data(measured={"barrier_ns": None}, theoretical={})
    assert descriptor.from_json(text) == bare


def test_measured_figures_keep_threads_spread_rounds_and_date() -> None:
    made = Figures(
        (
            Figure("flops", "f32", 2e9, 1, 0.01, 20),
            Figure("flops", "f32", 8e9, 4, 0.03, 40),
            Figure("read", "l1", 9e9, 4, 0.0, 20),
            Figure("copy", "l1", 12e9, 4, 0.0, 20),
            Figure("latency_ns", "memory", 90.0, 1, 0.0, 20),
            Figure("timer_ns", "", 25.0, 1, 0.5, 60),
        ),
        "2026-11-30T12:00:00+00:00",
    )
    board = dataclasses.replace(BOARD, measured=made)
    assert descriptor.from_json(descriptor.to_json(board)) == board
    data = spec.to_data(board)["measured"]
    assert data["flops"]["f32"][1] == {"value": 8e9, "threads": 4, "spread": 0.03, "rounds": 40}
    assert (made.flops["f32"], made.flops_of("f32", 1), made.flops_of("bf16", 4)) == (8e9, 2e9, 8e9)
    assert made.bandwidth == {"l1": 12e9} and made.bandwidth_of("l1", 1) is None
    assert made.value("latency_ns", "memory") == 90.0


def test_the_figure_of_the_whole_device_wins() -> None:
    made = Figures((Figure("flops", "f32", 5e9), Figure("flops", "f32", 4e9, 4)))
    assert made.flops == {"f32": 5e9}
    assert made.merged(figures(flops={"f32": 6e9}, clock_hz=1e9)).flops == {"f32": 6e9}


def test_traits_are_asked_for() -> None:
    assert BOARD.cache(2) == Cache(2, 1 << 20, 64, 4)
    assert BOARD.cache(3) is None
    assert BOARD.instruction("fma", "f32") == BOARD.instructions[0]
    assert BOARD.instruction("dot", "ui8", "i8") is None


def test_code_generation_key_ignores_what_code_generation_does_not_read() -> None:
    other = dataclasses.replace(
        BOARD,
        name="other",
        measured=Figures(),
        theoretical=Figures(),
        source="a data sheet",
        energy=Energy("none", reason="no counter"),
        fma_units=2,
    )
    assert other.code_generation_key() == BOARD.code_generation_key()
    for change in ({"vector_bits": 256}, {"caches": ()}, {"features": "+neon"}, {"threads": 8}):
        changed = dataclasses.replace(BOARD, **change)  # type: ignore[arg-type]
        assert changed.code_generation_key() != BOARD.code_generation_key()
        assert changed.fingerprint() != BOARD.fingerprint()


def test_a_fingerprint_is_of_the_device_and_not_of_what_was_measured() -> None:
    measured = dataclasses.replace(BOARD, measured=Figures(), source="elsewhere", energy=None)
    assert measured.fingerprint() == BOARD.fingerprint()
    faster = dataclasses.replace(BOARD, theoretical=figures(clock_hz=3e9))
    assert faster.fingerprint() != BOARD.fingerprint()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "expected JSON"),
        ("[]", "expected an object"),
        ("{}", "missing field 'name': expected a name for people"),
        (board_data(cores="two"), "field 'cores': expected physical cores .* got \"two\""),
        (board_data(cores=0), "field 'cores': .* 1 to 65536, got 0"),
        (board_data(cores=True), "field 'cores': .* got true"),
        (
            board_data(threads=2),
            r"field 'threads': expected at least one thread a core \(4\), got 2",
        ),
        (board_data(kind="tpu"), "field 'kind': expected one of cpu, gpu, got \"tpu\""),
        (board_data(vector_bit=128), "unknown field 'vector_bit'; did you mean 'vector_bits'"),
        (board_data(vector_bits=100), "field 'vector_bits': .* got 100"),
        (
            board_data(types=["f32", "f99"]),
            r"field 'types\[1\]': expected one of i1, .* got \"f99\"",
        ),
        (board_data(types=["f32", "f32"]), "field 'types': .* each once"),
        (board_data(triple="no spaces here"), "field 'triple': expected an LLVM target triple"),
        (board_data(features="avx2"), "field 'features': .* each with its sign"),
        (board_data(caches=[{"level": 1}]), r"field 'caches\[0\]': missing field 'bytes'"),
        (
            board_data(caches=[{**spec.to_data(BOARD)["caches"][0], "level": v} for v in (2, 1)]),
            r"field 'caches\[1\].level': expected more than 2, got 1",
        ),
        (board_data(measured={"barrier_ns": -1}), "field 'measured.barrier_ns': .* over 0"),
        (board_data(measured={"bandwidth": {"l3": 1e9}}), "field 'measured.bandwidth': .* 'l3'"),
        (
            board_data(measured={"bandwidth": {"dram": 1e9}}),
            "field 'measured.bandwidth': .* \"dram\"",
        ),
        ('{"cores": NaN}', "field 'cores': expected a finite number, got nan"),
        (
            board_data(theoretical={"clock_hz": math.inf}),
            "field 'theoretical.clock_hz': expected a finite number, got inf",
        ),
        (
            board_data(measured={"flops": {"f32": [{"value": 1.0, "spread": math.nan}]}}),
            r"field 'measured.flops.f32\[0\].spread': expected a finite number, got nan",
        ),
        (board_data(measured={"flops": {"f32": 10**400}}), "'measured.flops.f32': .* up to 1e30"),
        (board_data(measured={"flops": {"f32": 0}}), "'measured.flops.f32': .* over 0 .*, got 0"),
        (board_data(measured={"flops": {"f32": []}}), "field 'measured.flops.f32': .* list"),
        (
            board_data(measured={"flops": {"f32": [{"threads": 1}]}}),
            r"field 'measured.flops.f32\[0\]': missing field 'value'",
        ),
        (
            board_data(measured={"flops": {"f32": [{"value": 1.0, "threads": 5}]}}),
            "field 'measured.flops.f32': expected at most the 4 threads of the device, got 5",
        ),
        (
            board_data(measured={"timer_ns": [{"value": 1.0, "threads": 1}] * 2}),
            "field 'measured.timer_ns': expected each number of threads once, got 1 twice",
        ),
        ("[" * 900 + "NaN" + "]" * 900, "expected a finite number, got nan"),
        (board_data(name=json.loads("[" * 900 + "]" * 900)), "field 'name': expected a name"),
        (board_data(measured={"date": "yesterday"}), "field 'measured.date': .* \"yesterday\""),
        (
            board_data(theoretical={"bandwidth": {"l1": 1e9, "l2": 2e9}}),
            r"field 'theoretical.bandwidth.l2': expected no more than the 1e\+09 of l1, .* 2e\+09",
        ),
        (
            board_data(measured={"latency_ns": {"l1": 9.0, "memory": 2.0}}),
            "field 'measured.latency_ns.memory': expected no less than the 9 of l1, .*, got 2",
        ),
        (
            board_data(theoretical={"flops": {"f32": 1e9, "f64": 2e9}}),
            r"field 'theoretical.flops.f64': expected no more than the 1e\+09 of f32, got 2e\+09",
        ),
        (
            board_data(measured={"flops": {"f32": 96e9}}),
            r"field 'measured.flops.f32': expected at most 1.5 times the theoretical 4.8e\+10 op/s",
        ),
        (
            board_data(measured={"clock_hz": 3e9}),
            r"field 'measured.clock_hz': expected at most 1.5 times the theoretical 1.5e\+09 Hz",
        ),
        (
            board_data(fma_units=1, theoretical={"clock_hz": 1e9, "flops": {"f32": 64e9}}),
            r"field 'theoretical.flops.f32': expected at most 3.2e\+10 \(cores \* clock_hz .*6.4e",
        ),
        (board_data(energy={"counter": "meter"}), "field 'energy.counter': .* rapl, nvml, none"),
        (board_data(energy={"counter": "none"}), "field 'energy.reason': expected why no counter"),
        (board_data(energy={"counter": "rapl"}), "field 'energy.domains': expected what rapl"),
        (
            board_data(gpu={"multiprocessors": 4, "warp": 32, "shared_memory_bytes": 1}),
            "field 'gpu': expected nothing, as the kind is not gpu",
        ),
        (
            board_data(
                kind="gpu", gpu={"multiprocessors": 5, "warp": 32, "shared_memory_bytes": 1}
            ),
            r"field 'gpu.multiprocessors': expected as many as there are cores \(4\), got 5",
        ),
    ],
)
def test_malformed_descriptor_names_field_rule_and_value(text: str, message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        descriptor.from_json(text)


def test_a_measurement_may_exceed_its_bound_by_the_noise_of_a_measurement() -> None:
    noisy = figures(flops={"f32": 60e9, "f64": 70e9}, read={"l1": 1e9, "memory": 1.2e9})
    board = dataclasses.replace(BOARD, measured=noisy)
    assert descriptor.from_json(descriptor.to_json(board)) == board


def test_a_gpu_has_traits_of_its_own() -> None:
    matrix = (MatrixInstruction(16, 8, 16, "bf16", "bf16", "f32"),)
    chip = dataclasses.replace(BOARD, kind="gpu", gpu=Gpu(4, 32, 1 << 16, matrix))
    assert descriptor.from_json(descriptor.to_json(chip)) == chip
    assert chip.code_generation_key() != BOARD.code_generation_key()


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="none.json': cannot be read"):
        descriptor.load(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        (None, "expected the attribute 'device.spec = #device.spec<{...}>', got none"),
        ("7 : i64", "expected #device.spec<{...}>, got 7 : i64"),
        ("#device.spec<{}>", "attribute 'device.spec': missing field 'name'"),
    ],
)
def test_module_without_a_device_is_refused(attribute: str | None, message: str) -> None:
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.create()
        if attribute:
            module.operation.attributes[device.ATTRIBUTE] = ir.Attribute.parse(attribute)
        with pytest.raises(DeviceError) as caught:
            device.of(module)
    assert message in str(caught.value)


def test_this_machine_describes_itself() -> None:
    here = probe()
    assert descriptor.from_json(descriptor.to_json(here)) == here
    assert here.threads >= here.cores >= 1
    assert here.measured == Figures()
    assert probe() is here


def paper_machine(root: Path, files: dict[str, str]) -> Path:
    """Write files below a root folder, as /proc and /sys would show them."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def cpu_files(cpu: int, core: int, caches: list[tuple[int, str, str, str]]) -> dict[str, str]:
    base = f"sys/devices/system/cpu/cpu{cpu}"
    files = {f"{base}/topology/core_id": f"{core}\n", f"{base}/topology/physical_package_id": "0\n"}
    for i, (level, kind, size, shared) in enumerate(caches):
        files |= {
            f"{base}/cache/index{i}/level": f"{level}\n",
            f"{base}/cache/index{i}/type": f"{kind}\n",
            f"{base}/cache/index{i}/size": f"{size}\n",
            f"{base}/cache/index{i}/coherency_line_size": "64\n",
            f"{base}/cache/index{i}/shared_cpu_list": f"{shared}\n",
        }
    return files


def test_intel_with_two_threads_a_core(tmp_path: Path) -> None:
    files = {
        "proc/cpuinfo": "processor\t: 0\nmodel name\t: Xeon\n",
        "proc/meminfo": "MemTotal: 1024 kB\n",
    }
    for cpu in range(4):
        pair = f"{cpu % 2},{cpu % 2 + 2}"
        caches = [
            (1, "Data", "48K", pair),
            (1, "Instruction", "32K", pair),
            (2, "Unified", "2M", pair),
            (3, "Unified", "32M", "0-7"),
        ]
        files |= cpu_files(cpu, cpu % 2, caches)
    files["sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"] = "3500000\n"
    features = "+avx,+avx2,+fma,+avx512f,+avx512vnni,-avx512bf16"
    host = Host("x86_64-unknown-linux-gnu", "icelake-server", features, frozenset(range(4)))
    found = probe_host(host, paper_machine(tmp_path, files))
    assert (found.name, found.cores, found.threads) == ("Xeon", 2, 4)
    assert (found.vector_bits, found.vector_registers) == (512, 32)
    # Models of it differ in how many multiply-adds they start, so there is no peak.
    assert found.fma_units is None and not found.theoretical.flops
    assert found.caches == (
        Cache(1, 48 << 10, 64, 2),
        Cache(2, 2 << 20, 64, 2),
        Cache(3, 32 << 20, 64, 4),
    )
    assert found.instruction("dot", "ui8", "i8") is not None
    assert found.instruction("dot", "bf16") is None
    assert found.memory_bytes == 1 << 20
    assert found.theoretical.clock_hz == 3.5e9


def test_arm_without_sysfs_caches(tmp_path: Path) -> None:
    files = {"proc/device-tree/model": "Raspberry Pi 4\0", "proc/meminfo": "MemTotal: 8 kB\n"}
    host = Host("aarch64-unknown-linux-gnu", "cortex-a72", "+neon,+crc", frozenset(range(4)))
    found = probe_host(host, paper_machine(tmp_path, files))
    assert (found.name, found.cores, found.vector_bits) == ("Raspberry Pi 4", 4, 128)
    assert found.caches == ()
    assert found.types == ("i1", "i8", "ui8", "i16", "i32", "i64", "f32", "f64")


def test_riscv_vectors_are_as_wide_as_promised(tmp_path: Path) -> None:
    triple = "riscv64-unknown-linux-gnu"
    for features, bits in (("+v,+zvl128b,+zvl256b", 256), ("+v", 128)):
        host = Host(triple, "generic-rv64", features, frozenset({0}))
        found = probe_host(host, paper_machine(tmp_path, {}))
        assert (found.vector_bits, found.vector_registers) == (bits, 32)
        assert found.instruction("fma", "f32") is not None


def test_the_peak_follows_from_clock_units_and_vectors(tmp_path: Path) -> None:
    clock = "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"
    root = paper_machine(tmp_path, {clock: "3000000\n"})
    host = Host("x86_64-unknown-linux-gnu", "znver3", "+avx,+avx2,+fma", frozenset({0, 1}))
    found = probe_host(host, root)
    assert found.fma_units == 2
    assert found.theoretical.flops == {"f32": 2 * 3e9 * 2 * 8 * 2, "f64": 2 * 3e9 * 2 * 4 * 2}


CGROUPS = {
    "version 2": {
        "proc/self/cgroup": "0::/job\n",
        "sys/fs/cgroup/job/cpu.max": "150000 100000\n",
        "sys/fs/cgroup/job/memory.max": "4096\n",
    },
    "version 2, limits of the parent": {
        "proc/self/cgroup": "0::/job/inner\n",
        "sys/fs/cgroup/job/cpu.max": "150000 100000\n",
        "sys/fs/cgroup/job/inner/cpu.max": "max 100000\n",
        "sys/fs/cgroup/job/memory.max": "4096\n",
    },
    "version 1": {
        "proc/self/cgroup": "2:cpu:/job\n1:memory:/job\n",
        "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "150000\n",
        "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "4096\n",
    },
}


@pytest.mark.parametrize("files", CGROUPS.values(), ids=CGROUPS)
def test_cgroup_limits_count(tmp_path: Path, files: dict[str, str]) -> None:
    root = paper_machine(tmp_path, {"proc/meminfo": "MemTotal: 8 kB\n", **files})
    host = Host("x86_64-unknown-linux-gnu", "x86-64", "+sse2", frozenset(range(8)))
    found = probe_host(host, root)
    assert (found.threads, found.cores, found.memory_bytes) == (2, 2, 4096)
    assert (found.vector_bits, found.vector_registers) == (128, 16)
