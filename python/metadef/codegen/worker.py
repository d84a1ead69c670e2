"""The compiler's worker process, `python -m metadef.codegen.worker`: answers till its input ends.

A request's header has `op`: `build` (`symbol`; the body is a kernel's text) is answered by
`CompiledKernel.to_bytes()`; `object` (the body is LLVM IR) by object code for this machine;
`compare` (see `trial`; the body is two object files) by the `difference` of what they compute. A
failure is answered by a header with `error`, its text, and `kind`: `user` for a MetadefError. It
never imports torch, and leaves when nobody asks for a while.
"""

from __future__ import annotations

import os
import select
import sys
import traceback
from typing import BinaryIO

from metadef import ir
from metadef.codegen.build import build_kernel
from metadef.codegen.llvm import host_target, object_code
from metadef.codegen.protocol import IDLE_EXIT, STAGE_MARK, Message, receive, send
from metadef.codegen.rehearsal import rehearse
from metadef.diagnostics import MetadefError
from metadef.pipelines import passes_of

#: a worker without a request for this many seconds gives its memory back
IDLE_SECONDS = 60.0


def main() -> None:
    """Answer requests on standard input."""
    requests = sys.stdin.buffer
    answers = _own_standard_output()
    context = _CONTEXTS.prepare()
    # Nothing is buffered between two messages: the next comes after our answer.
    if not select.select([requests], [], [], 0)[0]:
        rehearse(context)
    while True:
        if not select.select([requests], [], [], IDLE_SECONDS)[0]:
            sys.exit(IDLE_EXIT)
        if (request := receive(requests)) is None:
            return
        send(answers, _answer(request))


def _own_standard_output() -> BinaryIO:
    """Take standard output for answers; whatever a pass prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _answer(request: Message) -> Message:
    try:
        return _serve(request)
    except MetadefError as error:
        notes = getattr(error, "__notes__", [])
        return Message({"kind": "user", "error": "\n".join([str(error), *notes])})
    except Exception:
        return Message({"kind": "internal", "error": traceback.format_exc()})


def _serve(request: Message) -> Message:
    operation = request.header["op"]
    if operation == "object":
        return Message({}, object_code(request.body.decode(), host_target()))
    if operation == "compare":
        from metadef.codegen.trial import difference

        chosen, default = (
            request.body[: request.header["split"]],
            request.body[request.header["split"] :],
        )
        return Message({"difference": difference(request.header, chosen, default)})
    assert operation == "build", f"unknown request '{operation}'"
    kernel = build_kernel(
        request.body.decode(),
        request.header["symbol"],
        on_stage=_note_stage,
        context=_CONTEXTS.next(),
    )
    return Message({}, kernel.to_bytes())


class _Contexts:
    """Hands out one context for many kernels: a new one each time takes as long as a small kernel.

    A context never forgets a type or an attribute, so that one does not last for ever.
    """

    def __init__(self, uses: int) -> None:
        self._uses = uses
        self._left = 0
        self._context: ir.Context | None = None

    def prepare(self) -> ir.Context:
        """Return the context of the next kernel; after this, that kernel waits for nothing."""
        if self._context is None or not self._left:
            self._context, self._left = ir.make_context(), self._uses
        passes_of("kernel")
        return self._context

    def next(self) -> ir.Context:
        """Return a context for one kernel."""
        context = self.prepare()
        self._left -= 1
        return context


_CONTEXTS = _Contexts(uses=64)


def _note_stage(name: str) -> None:
    print(f"{STAGE_MARK}{name}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
