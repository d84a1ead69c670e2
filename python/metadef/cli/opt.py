"""`metadef-opt`: runs passes over MLIR text, with mlir-opt's manners."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from metadef import ir
from metadef.cli.expected_diagnostics import Collector, mismatches, read_expected
from metadef.cli.explain import explain_text, list_text
from metadef.cli.nesting import check_nesting
from metadef.cli.opt_options import (
    SPLIT_MARKER,
    Request,
    make_parser,
    take_requests,
)
from metadef.cli.usage import UsageError
from metadef.diagnostics import MetadefError, PipelineError, error_text, near_names
from metadef.instrumentation import ALL, Printing, Timing
from metadef.loading import load_file
from metadef.pass_runner import PassRunner, Step
from metadef.pipeline import parse_pipeline
from metadef.pipelines import stage_checker

_CONFIGURATION = "// configuration:"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0, 1 when the input or a pass failed, or 2 for wrong usage."""
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone, which is its right
        return 1
    except (MetadefError, OSError) as error:
        _report(error)
        return 2 if isinstance(error, UsageError) else 1


def _report(error: Exception) -> None:
    text = "\n".join([str(error), *getattr(error, "__notes__", [])])
    print(f"metadef-opt: error: {text}", file=sys.stderr)


def _run(argv: list[str]) -> int:
    parser = make_parser()
    rest, requests = take_requests(argv, parser)
    args = parser.parse_args(rest)
    try:
        loaded = [load_file(path) for path in args.load]
        if args.help:
            names = ", ".join(f"--{n}" for file in loaded for n in file.passes)
            print(parser.format_help() + (f"\nloaded passes: {names}" if names else ""), end="\n")
            return 0
        if args.list or args.explain:
            print(list_text() if args.list else explain_text(args.explain))
            return 0
        source = _read(args.input)
        if args.run_reproducer:
            config, extra = take_requests(_configuration(source, args.input), parser)
            args, requests = parser.parse_args([*config, *rest]), [*extra, *requests]
        steps = _steps(args, requests, parser)
        _check_names(args, steps)
        pipeline = _staged(args, requests)
    except PipelineError:
        raise
    except MetadefError as error:
        raise UsageError(str(error)) from error
    return _Session(args, steps, pipeline).run(source)


def _steps(
    args: argparse.Namespace, requests: list[Request], parser: argparse.ArgumentParser
) -> list[Step]:
    if args.pass_pipeline is not None:
        if requests:
            raise UsageError("--pass-pipeline cannot be mixed with --PASS or --pipeline")
        return parse_pipeline(args.pass_pipeline)
    known = list(parser._option_string_actions)
    return [step for request in requests for step in request.steps(known)]


def _check_names(args: argparse.Namespace, steps: Sequence[Step]) -> None:
    """Refuse to print around a pass that does not run: a typing error would print nothing."""
    running = {step.name() for step in steps}
    for option in ("before", "after"):
        for name in _names(getattr(args, f"mlir_print_ir_{option}")) - running:
            raise UsageError(
                f"--mlir-print-ir-{option}: no pass '{name}' runs{near_names(name, running)}"
            )


def _staged(args: argparse.Namespace, requests: list[Request]) -> str | None:
    """Return the pipeline whose stages are checked, if any."""
    if not args.check_stages:
        return None
    if len(requests) != 1 or not requests[0].is_pipeline:
        raise UsageError("--check-stages goes with --pipeline=NAME alone")
    return requests[0].name


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def _read(path: str) -> bytes:
    if path == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise PipelineError(f"cannot read '{path}': {error.strerror}") from error


def _configuration(source: bytes, path: str) -> list[str]:
    for line in source.decode(errors="replace").splitlines():
        if line.startswith(_CONFIGURATION):
            return shlex.split(line.removeprefix(_CONFIGURATION))
    raise UsageError(f"--run-reproducer: '{path}' has no line that starts '{_CONFIGURATION}'")


@dataclass
class _Session:
    """One run of the command over its input, which may have several parts."""

    args: argparse.Namespace
    steps: Sequence[Step]
    pipeline: str | None

    def run(self, source: bytes) -> int:
        self.timing = Timing() if self.args.mlir_timing else None
        self.name = "<stdin>" if self.args.input == "-" else self.args.input
        context = ir.make_context()
        context.allow_unregistered_dialects = self.args.allow_unregistered_dialect
        context.emit_error_diagnostics = self.args.verify_diagnostics
        parts = _parts(source) if self.args.split_input_file else [source]
        outputs, failed = [], False
        for index, part in enumerate(parts):
            runner = self._runner(f"{index:02}" if len(parts) > 1 else "")
            process = self._verify if self.args.verify_diagnostics else self._process
            try:
                outputs.append(process(context, part, runner))
            except MetadefError as error:
                _report(error)
                failed = True
        kept = [output for output in outputs if output is not None]
        if kept:
            self._write(f"{SPLIT_MARKER}\n".join(kept))
        if self.timing is not None:
            print(self.timing.report(), file=sys.stderr)
        return 1 if failed else 0

    def _runner(self, part: str) -> PassRunner:
        args = self.args
        tree, reproducer = args.mlir_print_ir_tree_dir, args.mlir_generate_reproducer
        return PassRunner(
            printing=Printing(
                before=ALL if args.mlir_print_ir_before_all else _names(args.mlir_print_ir_before),
                after=ALL if args.mlir_print_ir_after_all else _names(args.mlir_print_ir_after),
                ir_dir=Path(tree) / part if tree is not None else None,
                generic=args.mlir_print_op_generic,
                debug_info=args.mlir_print_debuginfo,
            ),
            verify=args.verify_each == "true",
            timing=self.timing,
            reproducer=None if reproducer is None else Path(reproducer),
            load=tuple(args.load),
            keep_failures=not args.verify_diagnostics,
            on_stage=None if self.pipeline is None else stage_checker(self.pipeline),
        )

    def _process(self, context: ir.Context, part: bytes, runner: PassRunner) -> str:
        with context:
            start = time.perf_counter()
            module = self._parse(part)
            self._time("Parser", start)
            runner.run(module, self.steps)
            start = time.perf_counter()
            asm = module.operation.get_asm(
                enable_debug_info=self.args.mlir_print_debuginfo,
                print_generic_op_form=self.args.mlir_print_op_generic,
            )
            self._time("Output", start)
            return asm.rstrip() + "\n"

    def _parse(self, part: bytes) -> ir.Module:
        try:
            check_nesting(part)
            if self.args.input != "-" and not self.args.split_input_file:
                return ir.Module.parseFile(self.args.input)
            return ir.Module.parse(part)
        except ir.MLIRError as error:
            text = error_text(error).replace("-:", f"{self.name}:") or "malformed MLIR"
            raise PipelineError(text) from error
        except RecursionError as error:
            raise PipelineError(f"{self.name}: an attribute is nested too deeply") from error
        except RuntimeError as error:  # a verifier reads a string that Python cannot hold
            raise PipelineError(f"{self.name}: a string is not UTF-8: {error}") from error

    def _verify(self, context: ir.Context, part: bytes, runner: PassRunner) -> str | None:
        """Process `part` and compare its diagnostics with those that its comments expect."""
        collector = Collector()
        handler = context.attach_diagnostic_handler(collector.handle)
        output = None
        try:
            output = self._process(context, part, runner)
        except MetadefError as error:
            collector.add_exception(error)
        finally:
            handler.detach()
        expected = read_expected(part.decode(errors="replace"))
        problems = mismatches(expected, collector.found, self.name)
        if problems:
            raise MetadefError("diagnostics differ from what is expected\n" + "\n".join(problems))
        return output

    def _time(self, name: str, start: float) -> None:
        if self.timing is not None:
            self.timing.add([name], time.perf_counter() - start)

    def _write(self, text: str) -> None:
        if self.args.output == "-":
            print(text, end="")
            sys.stdout.flush()
            return
        try:
            Path(self.args.output).write_text(text)
        except OSError as error:
            raise MetadefError(f"cannot write '{self.args.output}': {error.strerror}") from error


def _parts(source: bytes) -> list[bytes]:
    """Split at the marker; blank lines in front keep the line numbers those of the file."""
    parts: list[bytes] = []
    current: list[bytes] = []
    for number, line in enumerate(source.splitlines(keepends=True), start=1):
        if line.strip() == SPLIT_MARKER.encode():
            parts.append(b"".join(current))
            current = [b"\n" * number]
        else:
            current.append(line)
    return [*parts, b"".join(current)]


if __name__ == "__main__":
    sys.exit(main())
