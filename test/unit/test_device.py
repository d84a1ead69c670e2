"""The device's spec: attribute and JSON both ways, errors, and the probe on machines of paper."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from metadef import ir
from metadef.device import attribute as device
from metadef.device import descriptor, spec
from metadef.device.probe import Host, probe, probe_host
from metadef.device.spec import Cache, DeviceSpec, Figures, Instruction
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
    theoretical=Figures(clock_hz=1.5e9, flops={"f32": 48e9}),
    measured=Figures(bandwidth={"l1": 40e9, "memory": 8.5e9}, barrier_ns=300.0),
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


def test_traits_are_asked_for() -> None:
    assert BOARD.cache(2) == Cache(2, 1 << 20, 64, 4)
    assert BOARD.cache(3) is None
    assert BOARD.instruction("fma", "f32") == BOARD.instructions[0]
    assert BOARD.instruction("dot", "ui8", "i8") is None


def test_code_generation_key_ignores_name_and_measurements_only() -> None:
    renamed = dataclasses.replace(BOARD, name="other", measured=Figures())
    assert renamed.code_generation_key() == BOARD.code_generation_key()
    for change in ({"vector_bits": 256}, {"caches": ()}, {"features": "+neon"}, {"threads": 8}):
        changed = dataclasses.replace(BOARD, **change)  # type: ignore[arg-type]
        assert changed.code_generation_key() != BOARD.code_generation_key()


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
    ],
)
def test_malformed_descriptor_names_field_rule_and_value(text: str, message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        descriptor.from_json(text)


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
