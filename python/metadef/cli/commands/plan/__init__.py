"""The commands of `metadef plan`, a file each."""

from metadef.cli.commands.plan import default, diff, explain, show, validate

HELP = "make, show, check, compare, explain execution plans"
DESCRIPTION = "Execution plans: what a model's decisions should be, as a file that can be edited."

COMMANDS = {
    "default": default,
    "show": show,
    "validate": validate,
    "diff": diff,
    "explain": explain,
}
