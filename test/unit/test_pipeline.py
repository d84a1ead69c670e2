"""Passes and pipelines as text and as Python: options, reading, running, printing, failing."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from metadef import ir, pipeline
from metadef.diagnostics import MetadefError, PipelineError, ShapeInferenceError
from metadef.forms import Form
from metadef.instrumentation import ALL, Printing, Timing
from metadef.loading import load_file
from metadef.pass_runner import PassRunner
from metadef.pipeline import (
    Pass,
    add_pass,
    find_pass,
    find_step,
    parse_pass,
    parse_passes,
    parse_pipeline,
    pass_names,
    run_passes,
)
from metadef.pipelines import PIPELINES, Stage, check_stage, find_pipeline, pipeline_text

EXAMPLE = Path(__file__).parent.parent / "examples" / "signal.py"


@dataclass(frozen=True)
class TryOptions(Pass):
    """Has an option of each type."""

    count: int = 8
    ratio: float = 0.5
    deep: bool = False
    label: str = "x"
    mode: Literal["fast", "small"] = "fast"
    sizes: tuple[int, ...] = ()
    limit: int | None = None
    store: object = None

    def run(self, module: ir.Operation) -> None:
        module.attributes["test.count"] = ir.IntegerAttr.get(
            ir.IntegerType.get_signless(64), self.count
        )


@dataclass(frozen=True)
class NeedsOption(Pass):
    """Has an option without a default."""

    count: int

    def run(self, module: ir.Operation) -> None:
        assert self.count >= 0, "count is negative"


@dataclass(frozen=True)
class RefuseShapes(Pass):
    """Raises an error of the user's."""

    def run(self, module: ir.Operation) -> None:
        raise ShapeInferenceError("'torch.aten.x' op: no shape rule; from model.py:3")


@dataclass(frozen=True)
class DropReturn(Pass):
    """Leaves a function that does not verify."""

    def run(self, module: ir.Operation) -> None:
        function = ir.entry_block(module).operations[0]
        ir.entry_block(function).operations[-1].operation.erase()


@pytest.fixture(autouse=True)
def own_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "_user_passes", {})
    for cls in (TryOptions, NeedsOption, RefuseShapes):
        add_pass(cls)


@pytest.fixture
def module() -> Iterator[ir.Module]:
    with ir.make_context():
        yield ir.Module.parse(
            "func.func @f(%a: i32) -> i32 { %0 = arith.addi %a, %a : i32 return %a : i32 }"
        )


@pytest.mark.parametrize(
    "text",
    [
        "try-options",
        "try-options{count=4}",
        "try-options{count=4 ratio=0.25 deep=true}",
        "try-options{mode=small sizes=1,2,3 limit=9}",
        'try-options{label="two words"}',
        'try-options{label="{braces}"}',
        'try-options{label=""}',
        "try-options{label='say \"so\"'}",
    ],
)
def test_pass_text_round_trips(text: str) -> None:
    assert str(parse_pass(text)) == text


def test_option_without_value_is_true_and_spaces_do_not_matter() -> None:
    assert parse_pass(" try-options{ deep   count=2 } ") == TryOptions(deep=True, count=2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("try-option", "unknown pass 'try-option'; did you mean 'try-options'"),
        ("try-options{cuont=4}", "unknown option 'cuont'; did you mean 'count'?"),
        ("try-options{zzz=4}", "unknown option 'zzz' (it has count, ratio, deep, label, mode"),
        ("try-options{count=4.5}", "option 'count': expected integer, got '4.5'"),
        ("try-options{count}", "option 'count': expected integer, got no value"),
        ("try-options{deep=maybe}", "option 'deep': expected true or false, got 'maybe'"),
        ("try-options{mode=slow}", "option 'mode': expected fast or small, got 'slow'"),
        ("try-options{sizes=1,x}", "option 'sizes': expected integer,..., got '1,x'"),
        ("try-options{limit=x}", "option 'limit': expected integer or none, got 'x'"),
        ("try-options{count=1 count=2}", "option 'count' is given twice"),
        ("try-options{store=1}", "unknown option 'store'"),
        ("try-options{label='open}", "no closing ' for the one in"),
        ("needs-option", "option 'count' must be given: count=<integer>"),
        ("try-options,try-options", "expected one pass"),
        ("func.func(try-options)", "expected one pass"),
    ],
)
def test_bad_pass_text_is_a_clear_error(text: str, message: str) -> None:
    with pytest.raises(MetadefError) as error:
        parse_pass(text)
    assert message in str(error.value)


def test_pipeline_mixes_python_and_nested_upstream_passes() -> None:
    steps = parse_pipeline(
        "builtin.module(try-options{count=3}, func.func(canonicalize{max-iterations=2}, cse),"
        "inline{op-pipelines={func.func(canonicalize,cse)}}, needs-option{count=1})"
    )
    assert [(str(s), s.path()) for s in steps] == [
        ("try-options{count=3}", ()),
        ("canonicalize{max-iterations=2}", ("func.func",)),
        ("cse", ("func.func",)),
        ("inline{op-pipelines={func.func(canonicalize,cse)}}", ()),
        ("needs-option{count=1}", ()),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cse", "expected 'builtin.module(...)' around the passes"),
        ("func.func(cse)", "expected 'builtin.module(...)' around the passes"),
        ("builtin.module(cse", "expected ',' or ')' at column 19, got the end"),
        ("builtin.module(cse))", "expected ',' or the end at column 20, got ')'"),
        ("builtin.module(cse,,cse)", "at column 20, got ',cse)'"),
        ("builtin.module(csee)", "unknown pass 'csee'; did you mean 'cse'"),
        ("builtin.module(func.func(try-options))", "cannot nest in 'func.func'"),
        ("builtin.module(func.func(convert-func-to-llvm))", "restricted to 'builtin.module'"),
        ("builtin.module(canonicalize{foo=1})", "pass 'canonicalize{foo=1}': no such option foo"),
    ],
)
def test_bad_pipeline_text_is_a_clear_error(text: str, message: str) -> None:
    with pytest.raises(MetadefError) as error:
        parse_pipeline(text)
    assert message in str(error.value)


def test_empty_pipeline_is_no_pass() -> None:
    assert parse_pipeline("builtin.module()") == []


def test_nesting_in_an_op_that_does_not_exist_is_refused(module: ir.Module) -> None:
    with pytest.raises(MetadefError, match=r"no op 'fun\.func' to nest in"):
        run_passes(module, parse_passes("fun.func(cse)"))


def test_find_step_nests_an_upstream_pass_where_it_belongs() -> None:
    assert find_step("convert-torch-to-linalg").path() == ("func.func",)
    assert find_step("cse").path() == ()


def test_run_passes_runs_in_order(module: ir.Module) -> None:
    seen: list[str] = []
    run_passes(
        module,
        [TryOptions(count=1), *parse_passes("func.func(canonicalize)"), TryOptions(count=2)],
        on_stage=lambda step, root: seen.append(f"{step}: {'addi' in str(root)}"),
    )
    assert seen == [
        "try-options{count=1}: True",
        "canonicalize: False",
        "try-options{count=2}: False",
    ]
    assert "test.count = 2" in str(module)


def test_printing_selects_passes(module: ir.Module) -> None:
    stream = io.StringIO()
    printing = Printing(before=frozenset({"cse"}), after=ALL, stream=stream)
    run_passes(module, parse_passes("canonicalize,cse"), printing=printing)
    headers = re.findall(r"IR Dump (\w+ \S+)", stream.getvalue())
    assert headers == ["After canonicalize", "Before cse", "After cse"]


def test_ir_dir_gets_numbered_files(module: ir.Module, tmp_path: Path) -> None:
    run_passes(module, parse_passes("canonicalize,try-options,cse"), ir_dir=tmp_path / "ir")
    files = sorted(tmp_path.glob("ir/*.mlir"))
    assert [f.name for f in files] == ["01-canonicalize.mlir", "02-try-options.mlir", "03-cse.mlir"]
    assert ir.Module.parse(files[1].read_text()).operation.verify()


def test_timing_files_nested_passes_under_their_op(module: ir.Module) -> None:
    timing = Timing()
    run_passes(module, parse_passes("try-options,func.func(canonicalize,cse)"), timing=timing)
    (root,) = timing.children
    assert [c.name for c in root.children] == ["try-options", "func.func"]
    assert [c.name for c in root.children[1].children] == ["canonicalize", "cse"]
    assert timing.seconds == pytest.approx(sum(c.seconds for c in root.children))


def test_a_users_error_keeps_its_class_and_names_the_pass(module: ir.Module) -> None:
    with pytest.raises(ShapeInferenceError) as error:
        run_passes(module, [RefuseShapes()])
    assert error.value.__notes__ == ["while running pass 'refuse-shapes'"]


def test_a_failed_pass_leaves_a_reproducer(module: ir.Module, tmp_path: Path) -> None:
    path = tmp_path / "fails here.mlir"
    runner = PassRunner(reproducer=path, load=("mine.py",))
    with pytest.raises(PipelineError) as error:
        runner.run(module, [TryOptions(), NeedsOption(-1), TryOptions(count=5)])
    assert "pass 'needs-option{count=-1}' failed: AssertionError: count is negative" in str(
        error.value
    )
    assert f"metadef-opt --load=mine.py --run-reproducer '{path}'" in str(error.value)
    command, asm = path.read_text().split("\n", 1)
    assert shlex.split(command.removeprefix("// configuration:")) == [
        "--pass-pipeline=builtin.module(needs-option{count=-1})"
    ]
    assert "test.count = 8" in asm and ir.Module.parse(asm).operation.verify()


def test_no_reproducer_stays_after_success(module: ir.Module, tmp_path: Path) -> None:
    PassRunner(reproducer=tmp_path / "r.mlir").run(module, [TryOptions()])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("last", [TryOptions(), NeedsOption(-1)])
def test_lazily_verified_passes_name_the_one_at_fault(module: ir.Module, last: Pass) -> None:
    runner = PassRunner(lazily=True, keep_failures=False)
    with pytest.raises(PipelineError, match="the IR after pass 'drop-return' does not verify"):
        runner.run(module, [TryOptions(), DropReturn(), last])


def test_upstream_failure_is_a_pipeline_error_with_its_diagnostic() -> None:
    with ir.make_context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(
            'func.func @f() {\n %0 = "x.y"() : () -> tensor<2xi32>\n'
            ' "x.z"(%0) : (tensor<2xi32>) -> ()\n return }'
        )
        with pytest.raises(PipelineError) as error:
            PassRunner(keep_failures=False).run(module, parse_passes("one-shot-bufferize"))
    assert str(error.value) == (
        "pass 'one-shot-bufferize' failed: -:2:7: error: op was not bufferized"
    )


def test_built_in_names_cannot_be_taken() -> None:
    @dataclass(frozen=True)
    class FormKernels(Pass):
        """Takes a name."""

    with pytest.raises(MetadefError, match="'form-kernels' is built in"):
        add_pass(FormKernels)


def test_every_built_in_pass_is_found_and_documented() -> None:
    built_in = set(pass_names()) - {"try-options", "needs-option", "refuse-shapes"}
    assert built_in
    for name in built_in:
        cls = find_pass(name)
        assert cls.name() == name
        assert cls.__doc__, f"{name} has no docstring"


def test_named_pipelines_parse_and_their_stages_fit_together() -> None:
    for name, stages in PIPELINES.items():
        assert [s.name() for s in parse_passes(pipeline_text(name))] == [s.name for s in stages]
        for before, after in zip(stages, stages[1:], strict=False):
            accepts = find_pass(after.name).accepts
            assert accepts is None or before.leaves.dialects <= accepts.dialects, (
                f"{before.name} leaves more than {after.name} takes"
            )


def test_unknown_pipeline_lists_near_names() -> None:
    with pytest.raises(MetadefError, match="did you mean 'kernel'"):
        find_pipeline("kernels")


def test_check_stage_names_the_op_that_does_not_belong(module: ir.Module) -> None:
    check_stage(module, Stage("cse", "for the test", Form(frozenset({"func", "arith"}))))
    stage = Stage("cse", "for the test", Form(frozenset({"func"})))
    with pytest.raises(PipelineError, match=r"after stage 'cse': 'arith.addi' op: .*dialects func"):
        check_stage(module, stage)


def test_load_file_brings_in_passes_patterns_and_dialects_once() -> None:
    loaded = load_file(EXAMPLE)
    assert loaded.passes == ("fold-gain-of-gain", "lower-gain")
    assert loaded.dialects == ("signal",)
    assert load_file(EXAMPLE) == loaded
    with ir.make_context():
        module = ir.Module.parse(
            "func.func @f(%x: f32) -> f32 {\n"
            '  %0 = "signal.gain"(%x) {decibels = 20.0 : f64} : (f32) -> f32\n'
            "  return %0 : f32 }"
        )
        run_passes(module, [find_step("lower-gain")])
        assert "arith.mulf" in str(module)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import nothing_of_that_name", r"line 1: ModuleNotFoundError"),
        ("x = (", r"line 1: SyntaxError"),
        ("x = 1\ny = x / 0", r"line 2: ZeroDivisionError"),
        (
            "from metadef import ir\nclass A(ir.ext.Dialect, name='arith'):\n    pass",
            "a dialect called 'arith' exists already",
        ),
        (
            "from metadef.pipeline import Pass\nclass FormKernels(Pass):\n    pass",
            "'form-kernels' is built in",
        ),
    ],
)
def test_a_file_that_does_not_load_says_why(tmp_path: Path, source: str, message: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(source)
    with pytest.raises(MetadefError, match=message):
        load_file(file)
