"""The cost model on small synthetic tables: levels, sources, ageing, folds, figures of merit."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from torch import nn, rand

from metadef.cli.main import main
from metadef.codegen.version import code_version
from metadef.cost.model.analytic import LAUNCH, home, roofline
from metadef.cost.model.evaluate import ALL, evaluate, judge
from metadef.cost.model.evidence import HALF_LIFE_DAYS, Evidence, Memory
from metadef.cost.model.fitted import learn
from metadef.cost.model.forest import flat
from metadef.cost.model.prediction import INTERPOLATED, MEASURED, REGRESSION, ROOFLINE
from metadef.cost.model.regression import Regression, group_folds
from metadef.cost.model.vector import NAMES, vectors
from metadef.cost.table.measurement import Measurement
from metadef.cost.table.table import Table
from metadef.device.figures import Figure, Figures
from metadef.frontend.model_kernels import model_kernels
from metadef.plan.kernel_choice import BY_RULE
from metadef.predict.explain import explain
from metadef.predict.model import CostModel
from metadef.runtime.host import this_device

SPEC = this_device()
DATE = "2026-01-01T00:00:00+00:00"
LIMITS = Figures(
    (
        Figure("flops", "f32", 1e11, 1),
        Figure("read", "l1", 2e11, 1),
        Figure("read", "l2", 1e11, 1),
        Figure("read", "l3", 5e10, 1),
        Figure("read", "memory", 1e10, 1),
    )
)


def kernel(n: int, rows: int = 4, factor: float = 1.5) -> Measurement:
    """Return a product of n x n matrices that takes `factor` times its roofline over its rows."""
    features = {"flops": 2.0 * n**3, "argument_bytes": 8.0 * n * n, "result_bytes": 4.0 * n * n}
    about = Measurement(
        *(f"product {n}", "product", "contraction", "nn", "f32", False, 1, 1),
        *(SPEC.fingerprint(), code_version()),
        sizes=(n, n),
        choice={"rows": rows},
        moves={} if rows == 4 else {"rows": rows},
        features={**features, "rows": rows, "points": float(n**3), "vector_elements": 8.0},
        date=DATE,
    )
    ns = roofline(about, SPEC, LIMITS).ns * factor * (1 + abs(rows - 4) / 4)
    return replace(about, ns=ns * 1.1, least_ns=ns, p90_ns=ns * 1.15, spread=0.05, rounds=20)


KERNELS = [kernel(n, rows) for n in range(64, 64 + 24 * 16, 16) for rows in (2, 3, 4, 6)]


def test_the_roofline_is_arithmetic_a_level_or_the_launch() -> None:
    large = kernel(1024)
    assert roofline(large, SPEC, LIMITS).by == "f32"
    assert math.isclose(roofline(large, SPEC, LIMITS).ns, 2 * 1024**3 / 1e11 * 1e9)
    little = replace(large, features={"flops": 10.0, "argument_bytes": 64.0})
    assert roofline(little, SPEC, LIMITS).by == LAUNCH
    moving = replace(large, features={"flops": 10.0, "argument_bytes": 8e6}, copies=9)
    assert home(moving, SPEC) == "memory" and roofline(moving, SPEC, LIMITS).by == "memory"


def test_a_vector_has_a_number_for_each_name() -> None:
    assert vectors(KERNELS[:3], SPEC, LIMITS).shape == (3, len(NAMES))
    assert np.isfinite(vectors([replace(KERNELS[0], features={})], SPEC, LIMITS)).all()


def test_knows_what_was_measured() -> None:
    model = learn(KERNELS, SPEC, LIMITS)
    (known,) = model.predict([KERNELS[5]])
    assert known.source == MEASURED and known.bound == "f32" and not known.noisy
    assert math.isclose(known.ns, KERNELS[5].least_ns)


def test_interpolates_between_sizes_of_the_same_kernel_and_choice() -> None:
    without = [m for m in KERNELS if m.sizes != (256, 256)]
    wanted = next(m for m in KERNELS if m.sizes == (256, 256) and m.moves == {"rows": 6})
    (found,) = learn(without, SPEC, LIMITS).predict([wanted])
    assert found.source == INTERPOLATED
    assert abs(found.ns / wanted.least_ns - 1) < 0.05


def test_neighbours_that_disagree_are_no_evidence() -> None:
    apart = [kernel(40, factor=1.2), kernel(52, factor=4.8)]
    (found,) = learn(apart, SPEC, LIMITS).predict([kernel(48)])
    assert found.source == ROOFLINE
    (found,) = learn([kernel(40), kernel(52)], SPEC, LIMITS).predict([kernel(48)])
    assert found.source == INTERPOLATED


def test_neighbours_in_another_level_are_no_evidence() -> None:
    def of_rows(rows: int) -> Measurement:
        features = {"flops": 1e3, "argument_bytes": 64.0 * rows}
        return replace(kernel(64), structure=f"{rows}", sizes=(rows,), features=features)

    (near, far), middle = (of_rows(100), of_rows(10**7)), of_rows(200)
    assert home(near, SPEC) == home(middle, SPEC) != home(far, SPEC)
    spread_out = [near, far, of_rows(2 * 10**7)]
    (found,) = learn(spread_out, SPEC, LIMITS).predict([middle])
    assert found.source == ROOFLINE


def test_neighbours_answer_where_the_regression_agrees() -> None:
    regression = learn(KERNELS, SPEC, LIMITS).regression
    asked = replace(kernel(184), family="odd", structure="asked")

    def source(factor: float) -> str:
        near = [
            replace(kernel(n, factor=factor), family="odd", structure=f"odd {n}")
            for n in (176, 192)
        ]
        model = replace(learn([*KERNELS, *near], SPEC, LIMITS), regression=regression)
        return model.predict([asked])[0].source

    # Two sizes of one family take what all other kernels say, or four times that.
    assert source(1.5) == INTERPOLATED
    assert source(6.0) == REGRESSION


def test_neighbours_that_answer_each_other_badly_answer_nobody() -> None:
    def answer(factors: Sequence[float]) -> Evidence | None:
        sizes = (100, 120, 140, 160)
        known = [kernel(n, factor=f) for n, f in zip(sizes, factors, strict=True)]
        residuals = [math.log2(f) for f in factors]
        return Memory(known, residuals, lambda m: "l1").answer(kernel(130))

    assert answer((1.0, 1.1, 1.0, 1.1)) is not None
    # 22 % up and down: near enough to each other, and yet nothing to go by.
    assert answer((1.0, 1.22, 1.0, 1.22)) is None


def test_another_family_is_the_regressions() -> None:
    (found,) = learn(KERNELS, SPEC, LIMITS).predict(
        [replace(kernel(200), family="x", structure="x")]
    )
    assert found.source == REGRESSION and found.uncertainty > 0
    assert abs(found.ns / kernel(200).least_ns - 1) < 0.3


def test_few_measurements_leave_it_to_the_roofline() -> None:
    (found,) = learn(KERNELS[:1], SPEC, LIMITS).predict([kernel(999)])
    assert found.source == ROOFLINE and found.uncertainty > 1
    assert math.isclose(found.ns, roofline(kernel(999), SPEC, LIMITS).ns)


def test_a_choice_is_near_its_measured_default() -> None:
    default, other = kernel(64), kernel(64, 6)
    (found,) = learn([default], SPEC, LIMITS).predict([other], [default])
    assert found.source == INTERPOLATED and math.isclose(found.ns, default.least_ns)


def test_an_unsure_choice_of_a_measured_default_is_the_regressions() -> None:
    class TwiceAsLong:
        """Says that a choice takes twice what the default does, give or take `apart`."""

        def __init__(self, apart: float) -> None:
            self.apart = apart

        def predict(self, x: np.ndarray, _: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return np.zeros(len(x)), np.full(len(x), 1.0)

        def ratio(self, x: np.ndarray, _: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return np.ones(len(x)), np.full(len(x), self.apart)

    default, other = kernel(64), kernel(64, 6)
    for apart, source in ((0.2, INTERPOLATED), (0.5, REGRESSION)):
        regression = cast(Regression, TwiceAsLong(apart))
        model = replace(learn([default], SPEC, LIMITS), regression=regression)
        (found,) = model.predict([other], [default])
        assert found.source == source and math.isclose(found.ns, 2 * default.least_ns)
        # Whoever answers is judged.
        judged = {s.level: s.count for s in judge(model, [default], [default, other])}
        left = judged.get("level two, choices of known kernels", 0)
        assert judged["level one"] + left == 2 and left == (source == REGRESSION)


def test_old_evidence_ages_out() -> None:
    old = kernel(64)
    new = replace(old, least_ns=old.least_ns * 4, date="2027-01-01T00:00:00+00:00")
    found = Memory([old, new], [0.0, 0.0], lambda m: "l1").answer(old)
    assert found is not None and math.isclose(2**found.log_ns, new.least_ns, rel_tol=0.01)
    day = int(HALF_LIFE_DAYS)
    newer = replace(old, least_ns=old.least_ns * 8, date=f"2026-01-{day + 1:02}T00:00:00+00:00")
    found = Memory([old, newer], [0.0, 0.0], lambda m: "l1").answer(old)
    # log2 of the ratio is 3, and the newer one counts twice.
    assert found is not None and math.isclose(found.log_ns - math.log2(old.least_ns), 2.0)


def test_says_that_evidence_was_noisy() -> None:
    model = learn([replace(m, flagged=True) for m in KERNELS], SPEC, LIMITS)
    assert all(p.noisy for p in model.predict(KERNELS[:2]))


def test_failures_teach_nothing() -> None:
    failed = replace(KERNELS[0], failed="it crashed", least_ns=0.0)
    assert learn([failed], SPEC, LIMITS).predict([KERNELS[0]])[0].source == ROOFLINE


def test_no_kernel_is_in_both_parts_of_a_fold() -> None:
    groups = [m.structure for m in KERNELS]
    folds = group_folds(groups, 5)
    assert sorted(i for _, test in folds for i in test) == list(range(len(groups)))
    for train, test in folds:
        assert not {groups[i] for i in train} & {groups[i] for i in test}


def test_flat_trees_say_what_scikit_learns_do() -> None:
    from sklearn.ensemble import ExtraTreesRegressor

    rng = np.random.default_rng(0)
    x, y = rng.random((60, 4)), rng.random(60)
    made = ExtraTreesRegressor(7, random_state=0).fit(x, y)
    assert np.allclose(flat(made.estimators_).predict(x).mean(axis=0), made.predict(x))


def test_scores_each_kind_and_all() -> None:
    scores = {(s.level, s.kind): s for s in evaluate(KERNELS, SPEC, LIMITS)}
    for level in ("level one, left out", "level two, held out"):
        score = scores[level, ALL]
        assert score.count > 60 and score.mape < 0.2
        assert score.spearman is not None and score.spearman > 0.9
        assert score.within is not None and score.within > 0.7
    unseen = [replace(m, structure=f"other {m.structure}", family="y") for m in KERNELS]
    (kind, everything) = judge(learn(KERNELS, SPEC, LIMITS), KERNELS, unseen)
    assert (kind.kind, everything.kind) == ("contraction", ALL) and everything.count == len(unseen)


def test_updates_count_at_once(tmp_path: Path) -> None:
    path = tmp_path / "table.sqlite"
    with Table(path) as table:
        table.record([*KERNELS, replace(kernel(50), compiler="another"), kernel(64, 5)])
    model = CostModel.load(SPEC, 1, table=path, limits=LIMITS)
    assert len(model.measurements) == len(KERNELS) + 1
    other = kernel(4096)
    assert model.fitted.predict([other])[0].source == REGRESSION
    model.update([other, replace(kernel(333), device="another"), replace(kernel(333), threads=2)])
    assert model.fitted.predict([other])[0].source == MEASURED
    assert model.fitted.predict([kernel(333)])[0].source != MEASURED


def test_predicts_a_kernels_text_under_its_choices() -> None:
    model = CostModel(SPEC, LIMITS, 1, KERNELS)
    (linear,) = model_kernels(nn.Linear(96, 160), (rand(40, 96),), spec=SPEC)
    default = model.predict(linear.source.text)
    choices = list(model.describe(linear.source.text).space.candidates(8))
    found = model.predict_many(linear.source.text, choices)
    assert math.isclose(found[0].ns, default.ns) and len(found) == len(choices)
    about = model.about(linear.source.text, BY_RULE)
    model.update([replace(about, least_ns=5000.0, ns=5500.0, date=DATE)])
    assert model.predict(linear.source.text).source == MEASURED
    told = explain(model, linear, 8)
    assert math.isclose(told.chosen.ns, 5000.0) and len(told.others) == len(choices) - 1
    assert "times as long" in told.line(told.others[0])


def test_the_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metadef.measure.limits.device_limits", lambda *_: LIMITS)
    path = tmp_path / "table.sqlite"
    assert main(["cost", "evaluate", "--table", str(path)]) == 1
    assert "there is none; make it: metadef device calibrate" in capsys.readouterr().err
    with Table(path) as table:
        table.record(KERNELS)
    assert main(["cost", "evaluate", "--table", str(path), "--json"]) == 0
    assert {"contraction", ALL} == {s["kind"] for s in json.loads(capsys.readouterr().out)}
    assert main(["cost", "evaluate", "--table", str(path), "--on", str(path)]) == 0
    assert "level one, measured" in capsys.readouterr().out
    assert main(["cost", "evaluate", "--table", str(path), "--on", "none.sqlite"]) == 1
    assert "expected a file, got none" in capsys.readouterr().err
    assert main(["cost", "evaluate", "--table", str(path), "--threads", "7"]) == 1
    assert "7 thread(s), got none" in capsys.readouterr().err
    (tmp_path / "model_to_explain.py").write_text(
        "import torch\ndef mlp(): return torch.nn.Linear(96, 160).eval(), (torch.rand(40, 96),)\n"
    )
    monkeypatch.chdir(tmp_path)
    command = ["cost", "explain", "model_to_explain:mlp", "--table", str(path), "--choices", "4"]
    assert main(command) == 0
    assert "predicted by default" in capsys.readouterr().out


def test_a_process_that_compiles_loads_no_regression() -> None:
    program = (
        "import sys, torch, metadef, metadef.predict.model\n"
        "metadef.compile(torch.nn.ReLU(), (torch.rand(3),))\n"
        "print([m for m in ('sklearn', 'pyarrow', 'optuna') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
