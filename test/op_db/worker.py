"""A worker process, `python -m op_db.worker LIMIT`: a case a line in, its verdict a line out."""

from __future__ import annotations

import dataclasses
import json
import os
import sys

import torch


def main() -> None:
    """Answer until the input ends; whatever anyone prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from .cases import Case
    from .verdict import Verdict, first_line, judge

    torch.set_num_threads(1)
    for line in sys.stdin:
        try:
            verdict = judge(Case(**json.loads(line)), int(sys.argv[1]))
        except Exception as error:
            verdict = Verdict(
                "error", f"the sample does not run in eager mode: {first_line(error)}"
            )
        answers.write(json.dumps(dataclasses.asdict(verdict)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
