"""Choices for kernels: numbers stay right under every legal one, others are refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import small_device
import torch
from chosen_kernels import expected, inputs_of, kernels, run, text_of, with_choice
from torch import nn

from metadef import ir
from metadef.codegen.build import build_kernel
from metadef.codegen.choices import ChoiceSpace, choice_space
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import MetadefError
from metadef.frontend.model_kernels import model_kernels
from metadef.passes._kernel_choice import set_choice
from metadef.passes._structure import kernel_key
from metadef.plan.kernel_choice import BY_RULE, KernelChoice, choice_from_data
from metadef.runtime.host import this_device

KERNELS = kernels(this_device().vector_bits // 16)
SYMBOLS = {"B": 23}
# Sums of up to 1500 products of numbers of size one, in any order: about 40 of their size, some
# roundings of half an ulp.
TOLERANCE = 1e-5
#: choices of each kernel that are compiled and run; of those with the most ways to go wrong more
SAMPLES = 1
MORE_SAMPLES = {"linear": 2, "deep_linear": 2, "conv3x3": 2, "depthwise": 2}


def space_of(name: str, spec: DeviceSpec | None = None) -> ChoiceSpace:
    return choice_space(text_of(KERNELS[name], spec))


def sampled(name: str) -> list[KernelChoice]:
    """Return choices from all over the space."""
    found = list(islice(space_of(name).candidates(), 48))
    count = MORE_SAMPLES.get(name, SAMPLES)
    return found[len(found) // (2 * count) :: len(found) // count][:count]


@pytest.mark.parametrize("name", KERNELS)
def test_numbers_stay_right_under_legal_choices(name: str) -> None:
    text = text_of(KERNELS[name])
    inputs = inputs_of(text, SYMBOLS)
    wanted = expected(text, inputs, SYMBOLS)
    for choice in sampled(name):
        got = run(with_choice(text, choice), inputs, SYMBOLS, [w.shape for w in wanted])
        for a, b in zip(got, wanted, strict=True):
            allowed = TOLERANCE * max(1, np.abs(b).max())
            np.testing.assert_allclose(a, b, rtol=0, atol=allowed, err_msg=str(choice))


def test_the_default_said_in_full_is_the_default() -> None:
    # All of it: the same code.
    for name in ("deep_linear", "softmax", "stem"):
        text = text_of(KERNELS[name])
        said = with_choice(text, choice_space(text).default)
        first, second = (build_kernel(t, "k").code for t in (text, said))
        assert first == second, name


def test_candidates_begin_with_the_default_and_come_in_the_same_order() -> None:
    first, second = (list(space_of("linear").candidates(40)) for _ in range(2))
    assert first == second
    assert first[0] == space_of("linear").default
    assert len(set(first)) == len(first) == 40


@pytest.mark.parametrize("name", KERNELS)
def test_each_candidate_is_legal_and_says_all_fields(name: str) -> None:
    space = space_of(name)
    for choice in space.candidates(8):
        assert space.in_full(choice) == choice
        assert set(choice.said) <= set(space.fields)
    assert set(space.default.said) == set(space.fields)


@pytest.mark.parametrize(
    "choice, problem",
    [
        pytest.param({"rows": 30}, "'rows': expected at most", id="registers"),
        pytest.param({"rows": 0}, "'rows': expected 1 to", id="no_rows"),
        pytest.param({"vectors": 3}, "'vectors': expected whole panels", id="parts_of_panels"),
        pytest.param({"tiles": (37,)}, "'tiles': expected a size for each of 2", id="loops"),
        pytest.param({"tiles": (38, 70)}, "'tiles': expected 1 to the 37", id="extents"),
        pytest.param({"chunks": (53,)}, "'chunks': expected less than the 53", id="chunks"),
        pytest.param({"copied": True}, "'copied': expected rows that are cut", id="copies"),
        pytest.param({"parts": 10**6}, "'parts': expected 1 to", id="parts"),
        pytest.param({"lanes": 3}, "'lanes': expected one of the dims", id="lanes"),
    ],
)
def test_what_cannot_be_is_refused_by_field(choice: dict[str, int], problem: str) -> None:
    wanted = KernelChoice(**choice)
    assert problem in (space_of("linear").problem(wanted) or "")
    with pytest.raises(MetadefError, match="metadef.choice: field") as error:
        build_kernel(with_choice(text_of(KERNELS["linear"]), wanted), "k")
    assert problem in str(error.value)


def test_a_field_without_a_meaning_is_refused() -> None:
    problem = space_of("softmax").problem(KernelChoice(rows=2))
    assert problem is not None and "only tiles, parts to choose" in problem


def test_a_reduced_dim_of_one_turn_is_not_cut() -> None:
    model = nn.Conv2d(1024, 2048, 1, stride=2).eval()
    kernels = model_kernels(model, (torch.randn(1, 1024, 14, 14),), None, spec=this_device())
    (space,) = [k.space() for k in kernels if "conv" in k.summary.ops]
    assert all(space.is_legal(choice) for choice in space.candidates(40))


def test_devices_have_other_choices() -> None:
    here = this_device()
    small = replace(here, vector_bits=256, vector_registers=16)
    large = replace(here, vector_bits=512, vector_registers=32)
    name = "batched_matmul"
    assert space_of(name, small).default.rows != space_of(name, large).default.rows
    assert not space_of(name, small).is_legal(KernelChoice(rows=10, vectors=2))
    assert space_of(name, large).is_legal(KernelChoice(rows=10, vectors=2))


def test_features_are_numbers_of_one_choice() -> None:
    space = space_of("deep_linear")
    default = space.features()
    other = space.features(KernelChoice(rows=2, vectors=1))
    assert default["flops"] == other["flops"] > 2 * 50 * 1500 * 70
    assert default["reduction_depth"] == 1500
    assert other["registers"] < default["registers"] <= this_device().vector_registers
    assert other["loads_per_product"] > default["loads_per_product"]
    assert all(isinstance(v, int | float) for v in default.values())


def test_features_say_which_lines_of_memory_are_touched() -> None:
    def of(model: nn.Module, *shape: int) -> dict[str, float]:
        kernels = model_kernels(model, (torch.randn(*shape),), None, spec=small_device.DEVICE)
        return kernels[0].space().features()

    class Columns(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x.t() + 1).contiguous()

    rows, columns = of(nn.ReLU(), 512, 512), of(Columns(), 512, 512)
    # A box reads and writes whole lines in both; those of columns lie in more pages.
    lines = 2 * 4 * rows["box_points"] / 64
    assert rows["box_lines"] == lines and rows["box_line_use"] == 1
    assert columns["box_lines"] / columns["box_points"] == rows["box_lines"] / rows["box_points"]
    assert columns["box_pages"] > rows["box_pages"]
    # Rows 2 KiB apart begin in two of the sets.
    assert columns["block_runs_per_set"] > rows["block_runs_per_set"] == 1


def test_features_take_values_of_symbols() -> None:
    space = space_of("linear_of_any_rows")
    few, many = (space.features(symbols={"B": rows}) for rows in (8, 800))
    assert many["points"] == 100 * few["points"]
    assert many["flops"] > 90 * few["flops"]


@pytest.mark.parametrize(
    "data, problem",
    [
        ({"row": 3}, "plan: unknown field 'row'; did you mean 'rows'?"),
        ({"rows": "3"}, "plan: field 'rows': expected a whole number from 0 on, got '3'"),
        ({"rows": True}, "plan: field 'rows': expected a whole number from 0 on, got True"),
        ({"tiles": 3}, "plan: field 'tiles': expected a list"),
        ({"tiles": [3, -1]}, "plan: field 'tiles': expected a list"),
        ({"copied": 1}, "plan: field 'copied': expected true or false, got 1"),
    ],
)
def test_data_of_another_form_is_refused(data: dict[str, object], problem: str) -> None:
    with pytest.raises(MetadefError) as error:
        choice_from_data(data, "plan")
    assert problem in str(error.value)


def test_a_choice_is_the_same_data_again() -> None:
    choice = KernelChoice(rows=6, vectors=2, tiles=(12, 16), chunks=(0,), copied=False, parts=8)
    assert choice_from_data(choice.to_data(), "plan") == choice
    assert choice_from_data({}, "plan") == BY_RULE


def test_keys_are_the_same_on_all_devices() -> None:
    keys = set()
    for panel in (16, 32):
        with ir.make_context(), ir.Location.unknown():
            module = ir.Module.parse(kernels(panel)["linear"])
            (function,) = module.body.operations
            keys.add(kernel_key(function))
            set_choice(function, KernelChoice(rows=2))
            keys.add(kernel_key(function))
            function.attributes["sym_name"] = ir.StringAttr.get("other")
            keys.add(kernel_key(function))
    assert len(keys) == 1


def test_keys_tell_kernels_apart() -> None:
    keys = set()
    for text in KERNELS.values():
        with ir.make_context(), ir.Location.unknown():
            module = ir.Module.parse(text)
            (function,) = module.body.operations
            keys.add(kernel_key(function))
    assert len(keys) == len(KERNELS)
