"""Which table and device a command of the cost model asks."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from metadef.cli.devices import add_device
from metadef.cli.usage import count

if TYPE_CHECKING:
    from metadef.predict.model import CostModel


def add_cost_options(parser: argparse.ArgumentParser) -> None:
    """Add what says which model is asked."""
    add_device(parser)
    parser.add_argument(
        "--table", metavar="FILE", help="the performance table (default: in the compile cache)"
    )
    parser.add_argument("--threads", metavar="N", type=count, default=1, help="threads (1)")


def cost_model(args: argparse.Namespace) -> CostModel:
    """Return the model that the options name.

    Raises:
        MetadefError: the table has nothing of this device, compiler and number of threads.
    """
    from metadef.diagnostics import TableError
    from metadef.predict.model import CostModel
    from metadef.predict.tables import default_table
    from metadef.runtime.host import device_named

    path = Path(args.table) if args.table else default_table()
    advice = f"metadef device calibrate --threads {args.threads} -o {path}"
    if not path.is_file():
        raise TableError(f"performance table '{path}': there is none; make it: {advice}")
    model = CostModel.load(device_named(args.device), args.threads, table=path)
    if not model.measurements:
        raise TableError(
            f"performance table '{path}': expected measurements of this device, this compiler and "
            f"{args.threads} thread(s), got none; make them: {advice}"
        )
    return model
