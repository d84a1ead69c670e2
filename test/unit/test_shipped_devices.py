"""Shipped devices: found by name, valid, compiled for; and one machine as several of them."""

from __future__ import annotations

import dataclasses
import platform
from pathlib import Path

import pytest
import torch

import metadef
from metadef import ir
from metadef.codegen.build import target_of
from metadef.codegen.llvm import assembly, object_code
from metadef.device.attribute import attribute_of, from_attribute
from metadef.device.descriptor import save
from metadef.device.dlti import from_dlti, to_dlti
from metadef.device.figures import Figures, figures
from metadef.device.instructions import (
    find_instructions,
    find_vectors,
    native_types,
    overwrites_operands,
)
from metadef.device.restrict import restricted
from metadef.device.shipped import load_device, shipped, shipped_names
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import DeviceError, MetadefError
from metadef.measure.arithmetic import arithmetic, fma, fma_chains
from metadef.measure.bench import kernel_ir
from metadef.runtime.host import device_named, this_device

NAMES = shipped_names()
CPUS = [name for name in NAMES if shipped(name).kind == "cpu"]


def test_the_list_is_whole() -> None:
    wanted = {"amd-zen3-server", "x86-64-v2", "x86-64-v3", "x86-64-v4", "arm-cortex-a72"}
    wanted |= {"arm-cortex-a76", "arm-neoverse-n1", "riscv64-v256", "intel-sandy-bridge"}
    assert set(CPUS) == wanted
    assert set(NAMES) - set(CPUS) == {"nvidia-t4", "nvidia-h200", "amd-gfx942"}


@pytest.mark.parametrize("name", NAMES)
def test_each_names_its_source_and_measured_nothing(name: str) -> None:
    spec = shipped(name)
    assert len(spec.source) > 20
    assert spec.measured == Figures()
    assert (spec.kind == "gpu") == (spec.gpu is not None)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_lost_in_mlir(name: str) -> None:
    spec = dataclasses.replace(shipped(name), measured=figures("2026-11-30", clock_hz=1.1e9 / 3))
    with ir.make_context():
        assert from_attribute(attribute_of(spec)) == spec
        assert from_dlti(to_dlti(spec)) == spec


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 : i64", "expected #dlti.target_system_spec of one device, got 1 : i64"),
        (
            '#dlti.target_system_spec<"CPU" = #dlti.target_device_spec<"x" = 1>, '
            '"GPU" = #dlti.target_device_spec<"x" = 1>>',
            "of one device, got those of CPU, GPU",
        ),
        (
            '#dlti.target_system_spec<"CPU" = #dlti.target_device_spec<"cores" = 1>>',
            "missing field 'name'",
        ),
        (
            '#dlti.target_system_spec<"CPU" = #dlti.target_device_spec<'
            '"x" = #dlti.map<vector<4xf32> = 1>>>',
            "whose keys are names",
        ),
        (
            '#dlti.target_system_spec<"CPU" = #dlti.target_device_spec<'
            '"caches" = #dlti.map<"near" = #dlti.map<"bytes" = 1>>>>',
            "caches: expected l1 to l8, got 'near'",
        ),
    ],
)
def test_another_dlti_is_refused(text: str, message: str) -> None:
    with ir.make_context(), pytest.raises(DeviceError, match=message):
        from_dlti(ir.Attribute.parse(text))


@pytest.mark.parametrize("name", CPUS)
def test_vectors_and_instructions_follow_from_the_features(name: str) -> None:
    spec = shipped(name)
    architecture = spec.triple.partition("-")[0]
    features = {f[1:] for f in spec.features.split(",")}
    assert (spec.vector_bits, spec.vector_registers) == find_vectors(architecture, features)
    assert spec.instructions == find_instructions(architecture, features)
    assert spec.types == native_types(architecture, features)


def test_sse_alone_overwrites_operands() -> None:
    assert [name for name in CPUS if overwrites_operands(shipped(name))] == ["x86-64-v2"]


#: what a multiply-add of whole vectors looks like
CODE = {
    "amd-zen3-server": "vfmadd",
    "x86-64-v2": "mulps",
    "intel-sandy-bridge": "vmulps\t%ymm",
    "x86-64-v3": "vfmadd",
    "x86-64-v4": "%zmm",
    "arm-cortex-a72": "fmla\tv",
    "arm-cortex-a76": "fmla\tv",
    "arm-neoverse-n1": "fmla\tv",
    "riscv64-v256": "vfm",
}


@pytest.mark.parametrize("name", CPUS)
def test_llvm_takes_cpu_and_features(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    spec = shipped(name)
    with ir.make_context(), ir.Location.unknown():
        text = kernel_ir(fma(spec, "f32").kernel)
    assert CODE[name] in assembly(text, target_of(spec))
    assert object_code(text, target_of(spec))[:4] == b"\x7fELF"
    assert "not a recognized" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("name", "cpu", "features", "element", "code"),
    [
        ("x86-64-v4", "sapphirerapids", "avx512vnni", "i8", "vpdpbusd\t%zmm"),
        ("x86-64-v4", "sapphirerapids", "avx512bf16", "bf16", "vdpbf16ps\t%zmm"),
        ("x86-64-v4", "sapphirerapids", "avx512fp16", "f16", "ph\t%zmm"),
        ("x86-64-v3", "alderlake", "avxvnni", "i8", "vpdpbusd\t%ymm"),
        ("arm-cortex-a76", "cortex-a76", "dotprod", "i8", "sdot\tv"),
        ("arm-cortex-a76", "cortex-a76", "fullfp16", "f16", ".8h, "),
        ("arm-neoverse-n1", "neoverse-v1", "bf16", "bf16", "bfdot\tv"),
        ("riscv64-v256", "generic-rv64", "zvfh", "f16", "vfm"),
    ],
)
def test_reduced_precision_uses_the_instructions_there_are(
    name: str, cpu: str, features: str, element: str, code: str
) -> None:
    base = shipped(name)
    enabled = {f[1:] for f in base.features.split(",")} | {features}
    spec = dataclasses.replace(
        base,
        cpu=cpu,
        features=",".join(f"+{f}" for f in sorted(enabled)),
        instructions=find_instructions(base.triple.partition("-")[0], enabled),
    )
    (kernel,) = (b.kernel for b in arithmetic(spec) if b.of == element)
    with ir.make_context(), ir.Location.unknown():
        text = kernel_ir(kernel)
    made = assembly(text, target_of(spec))
    # The chains of the loop; what LLVM adds for sums and their start is no product.
    assert sum(code in line for line in made.splitlines()) >= fma_chains(spec)


def test_a_name_or_a_path_is_a_device(tmp_path: Path) -> None:
    spec = shipped("x86-64-v3")
    save(spec, tmp_path / "x86-64-v3.json")
    assert load_device("x86-64-v3") == spec == load_device(tmp_path / "x86-64-v3.json")
    assert device_named(str(tmp_path / "x86-64-v3.json")) == spec
    assert device_named("host") is device_named(None) is this_device()
    assert device_named(spec) is spec


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("x86-64-v5", "no shipped device; did you mean 'x86-64-v4'"),
        ("zzz", "no shipped device; known are host, amd-gfx942, "),
        ("", "no shipped device"),
        ("there/x86-64-v3", "cannot be read"),
        ("none.json", "cannot be read"),
    ],
)
def test_what_is_no_device_is_refused(device: str, message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        device_named(device)
    with pytest.raises(MetadefError, match="expected a DeviceSpec, the path of a descriptor or"):
        device_named(7)  # type: ignore[arg-type]


def machine() -> DeviceSpec:
    return dataclasses.replace(shipped("amd-zen3-server"), measured=figures(clock_hz=3e9))


def test_a_machine_restricted_keeps_its_caches_and_cores() -> None:
    here, level = machine(), shipped("x86-64-v2")
    made = restricted(here, level)
    assert (made.cpu, made.features, made.vector_bits) == (level.cpu, level.features, 128)
    assert (made.instructions, made.types) == (level.instructions, level.types)
    assert (made.cores, made.caches, made.memory_bytes) == (
        here.cores,
        here.caches,
        here.memory_bytes,
    )
    assert made.measured == Figures()
    assert made.theoretical.clock_hz == here.theoretical.clock_hz and not made.theoretical.flops
    assert made.fingerprint() != here.fingerprint()
    same = restricted(here, shipped("x86-64-v3"))
    assert same.theoretical.flops == here.theoretical.flops


@pytest.mark.parametrize(
    ("level", "message"),
    [
        ("x86-64-v4", "needs avx512bw, avx512cd, .* avx512vl, which .* AMD EPYC 7763 .* lacks"),
        ("arm-cortex-a72", "needs a cpu of aarch64, and this machine is a cpu of x86_64"),
        ("nvidia-t4", "needs a gpu of nvptx64"),
    ],
)
def test_a_machine_does_not_run_what_it_lacks(level: str, message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        restricted(machine(), shipped(level))


def test_code_that_this_machine_cannot_run_is_refused_before_it_is_made() -> None:
    strange = dataclasses.replace(this_device(), features="+warp-drive")
    for device in (strange, "nvidia-t4"):
        with pytest.raises(DeviceError, match="its code needs"):
            metadef.compile(torch.nn.Linear(2, 2), (torch.ones(1, 2),), device=device)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="runs code for x86-64")
@pytest.mark.parametrize("level", ["x86-64-v2", "intel-sandy-bridge"])
def test_a_machine_without_multiply_adds_computes_the_same(level: str) -> None:
    torch.manual_seed(0)
    spec = restricted(this_device(), shipped(level))
    model = torch.nn.Sequential(
        torch.nn.Linear(33, 65), torch.nn.GELU(), torch.nn.Linear(65, 17), torch.nn.Softmax(-1)
    ).eval()
    x = torch.randn(9, 33)
    compiled = metadef.compile(model, (x,), device=spec, threads=1)
    exact = model.double()(x.double())
    assert (compiled(x).double() - exact).abs().max() < 1e-6 * exact.abs().max()
    kernels = [k.name for k in compiled.kernels]
    assert not any("vfmadd" in compiled.mlir("assembly", kernel=name) for name in kernels)
    assert not any("fmaf" in compiled.mlir("assembly", kernel=name) for name in kernels)
