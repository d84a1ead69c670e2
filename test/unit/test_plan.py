"""Plans as data: what they say, what is refused, how two differ."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from metadef.cli.main import main
from metadef.diagnostics import PlanError
from metadef.plan.compare import differences
from metadef.plan.decision import Decision, applied
from metadef.plan.explain import explain
from metadef.plan.files import from_json, load, save, to_json
from metadef.plan.front_choices import choice_of_text, choice_text
from metadef.plan.plan import (
    CONVOLUTION,
    FUSION,
    GROUPING,
    LAYOUT,
    PRECISION,
    SCHEDULE,
    Entry,
    Evidence,
    ExecutionPlan,
    PlannedDevice,
    What,
    to_data,
)

KEYS = [digit * 32 for digit in "abc"]
SCHEDULED = Entry(
    SCHEDULE,
    KEYS[0],
    {"rows": 6, "vectors": 2, "tiles": [24, 32]},
    "search",
    {"rows": 4, "vectors": 2},
    What("k3", ("contraction", "gelu"), ("model.py:41",), ("64x256xf32", "64x1024xf32")),
    Evidence(15100.0, 12300.0, 12900.0, 12000.0, 0.03, "2026-11-30T12:00:00Z", "d" * 64),
)
CONVOLVED = Entry(CONVOLUTION, KEYS[1], {"algorithm": "winograd", "tile": 4}, "person")
PLAN = ExecutionPlan(
    "e" * 32, PlannedDevice("laptop", "d" * 64), "metadef 0.1", (SCHEDULED, CONVOLVED), "latency"
)


def edited(**fields: Any) -> str:
    """Return the plan's text with fields of its first entry replaced; None takes one away."""
    data = to_data(PLAN)
    data["entries"][0] |= fields
    data["entries"][0] = {k: v for k, v in data["entries"][0].items() if v is not None}
    return json.dumps(data)


def test_a_plan_is_the_same_when_read_again(tmp_path: Path) -> None:
    save(PLAN, tmp_path / "plan.json")
    again = load(tmp_path / "plan.json")
    assert to_json(again) == to_json(PLAN)
    assert again.digest == PLAN.digest
    assert again.entries[0].what == SCHEDULED.what
    assert again.entries[0].evidence == SCHEDULED.evidence


@pytest.mark.parametrize(
    "text, problem",
    [
        ("{", "expected JSON"),
        ("[]", "plan: "),
        ("{}", "missing field 'version': expected 1, the version of this form"),
        (to_json(PLAN).replace('"version": 1', '"version": 2'), "field 'version': expected 1"),
        (to_json(PLAN).replace('"model"', '"modle"'), "'modle'; did you mean 'model'?"),
        (edited(kind="shedule"), "entries[0].kind': expected schedule, convolution"),
        (edited(key="xyz"), "entries[0].key': expected a structure key of 32 hexadecimal digits"),
        (edited(choice={"row": 3}), "entries[0].choice': unknown field 'row'; did you mean 'rows'"),
        (edited(choice={"rows": "3"}), "entries[0].choice.rows': expected a whole number"),
        (edited(choice={"tiles": [-1]}), "entries[0].choice.tiles[0]': expected a whole number"),
        (edited(second={"copied": 1}), "entries[0].second.copied': expected true or false"),
        (edited(by="me"), "entries[0].by': expected search, person or default"),
        (edited(evidence={"spread": -1}), "entries[0].evidence.spread': expected a number"),
        (edited(evidence={"spread": math.inf}), "spread': expected a finite number, got inf"),
        (
            edited(kind="convolution", choice={"algorithm": "gemm"}),
            "expected direct, winograd or fft",
        ),
        (
            edited(kind="convolution", choice={"algorithm": "direct", "tile": 2}, second=None),
            "entries[0].choice.tile': expected a tile for winograd and fft alone",
        ),
    ],
)
def test_other_forms_are_refused_by_field(text: str, problem: str) -> None:
    with pytest.raises(PlanError) as error:
        from_json(text)
    assert problem in str(error.value)


def test_two_entries_of_one_author_for_a_decision_are_refused() -> None:
    data = to_data(PLAN)
    data["entries"].append(data["entries"][0])
    with pytest.raises(PlanError, match=r"entries\[2\]': expected one schedule by search"):
        from_json(json.dumps(data))


def test_files_that_cannot_be_read_are_errors(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="cannot be read"):
        load(tmp_path / "none.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    with pytest.raises(PlanError, match="cannot be read"):
        load(tmp_path / "bytes.json")


def test_a_persons_own_choice_goes_first() -> None:
    own = Entry(SCHEDULE, KEYS[0], {"rows": 2}, "person")
    plan = ExecutionPlan("", PLAN.device, "", (SCHEDULED, own))
    assert plan.wanted(SCHEDULE, KEYS[0]) == [
        ({"rows": 2}, "person"),
        (SCHEDULED.choice, "search"),
        (SCHEDULED.second, "search"),
    ]
    assert plan.wanted(CONVOLUTION, KEYS[0]) == []


@pytest.mark.parametrize(
    ("kind", "text", "choice"),
    [
        (CONVOLUTION, "direct", {"algorithm": "direct"}),
        (CONVOLUTION, "winograd(4)", {"algorithm": "winograd", "tile": 4}),
        (PRECISION, "bf16", {"weights": "bf16"}),
        (LAYOUT, "nchw", {"layout": "nchw"}),
        (FUSION, "apart", {"fused": False}),
        (GROUPING, "grouped", {"grouped": True}),
    ],
)
def test_choices_of_front_passes_as_text(kind: str, text: str, choice: dict[str, object]) -> None:
    assert choice_text(kind, choice) == text
    assert choice_of_text(kind, text) == choice


def test_how_much_of_a_plan_applied() -> None:
    followed = Decision(CONVOLUTION, KEYS[1], CONVOLVED.choice, "person")
    refused = Decision(SCHEDULE, KEYS[0], {}, refused=(({"rows": 6}, "too many"),), what=What("k3"))
    other = Decision(SCHEDULE, KEYS[2], {})
    found = applied(PLAN, [followed, refused, other, followed], ["device"])
    assert str(found) == (
        "1 of 2 decisions of the plan applied: 1 refused, 1 a person's own, it was made for another"
        " device"
    )
    (line,) = found.fallbacks
    assert line == "schedule of k3: refused rows 6: too many; instead: the default"
    assert str(applied(PLAN, [followed])) == (
        "1 of 2 decisions of the plan applied: 1 not met in this model, 1 a person's own"
    )


def test_decisions_are_the_same_data_again() -> None:
    decision = Decision(SCHEDULE, KEYS[0], {"rows": 2}, "search", (({}, "why"),), What("k", ("a",)))
    assert Decision.from_data(json.loads(json.dumps(decision.to_data()))) == decision


def test_differences_go_decision_by_decision() -> None:
    third = Entry(SCHEDULE, KEYS[2], {"rows": 1})
    changed = Entry(SCHEDULE, KEYS[0], {"rows": 4, "vectors": 2}, "search", what=SCHEDULED.what)
    other = ExecutionPlan(PLAN.model, PLAN.device, PLAN.compiler, (changed, third), "latency")
    assert list(differences(PLAN, PLAN)) == []
    assert list(differences(PLAN, other)) == [
        f"- convolution of ? [{KEYS[1][:12]}]",
        f"~ schedule of k3 (64x256xf32, 64x1024xf32) [{KEYS[0][:12]}]",
        "    choice.rows: 6 -> 4",
        "    choice.tiles: [24, 32] -> nothing",
        '    second: {"rows": 4, "vectors": 2} -> nothing',
        f"+ schedule of ? [{KEYS[2][:12]}]",
    ]


def test_a_plan_is_explained() -> None:
    lines = list(explain(PLAN))
    assert "  chosen, by search: rows 6, vectors 2, tiles [24, 32] 12.3 us" in lines
    assert "  lost: the default 15.1 us, 1.23 times as long" in lines
    assert "  lost, second best: rows 4, vectors 2 12.9 us, 1.05 times as long" in lines
    evidence = "  evidence: predicted 12 us (2% off), spread 3%, 2026-11-30T12:00:00Z, on device"
    assert f"{evidence} dddddddddddd" in lines
    assert '  chosen, a person\'s own: algorithm "winograd", tile 4' in lines


def test_the_commands_of_plans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = str(tmp_path / "one.json"), str(tmp_path / "two.json")
    save(PLAN, Path(one))
    Path(two).write_text(edited(choice={"rows": 1}))
    assert main(["plan", "validate", one]) == 0
    assert "ok, 2 decision(s) for 'laptop'" in capsys.readouterr().out
    assert main(["plan", "show", one]) == 0
    assert "winograd" in capsys.readouterr().out
    assert main(["plan", "explain", one]) == 0
    assert "by search" in capsys.readouterr().out
    assert main(["plan", "diff", one, one]) == 0
    assert main(["plan", "diff", one, two]) == 1
    assert "choice.rows: 6 -> 1" in capsys.readouterr().out
    Path(two).write_text(edited(choice={"row": 1}))
    assert main(["plan", "validate", two]) == 1
    assert "did you mean 'rows'?" in capsys.readouterr().err
