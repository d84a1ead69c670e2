"""The commands of `metadef cost`, a file each."""

from metadef.cli.commands.cost import evaluate, explain

HELP = "what the cost model predicts, and how good it is"
DESCRIPTION = "Ask the cost model, which learns from what metadef device calibrate measured."

COMMANDS = {
    "evaluate": evaluate,
    "explain": explain,
}
