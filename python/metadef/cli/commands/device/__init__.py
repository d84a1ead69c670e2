"""The commands of `metadef device`, a file each."""

from metadef.cli.commands.device import show, validate

HELP = "probe, list, show, compare, check device descriptors"
DESCRIPTION = "Describe devices: what hardware there is, and what it is known to reach."

COMMANDS = {
    "show": show,
    "validate": validate,
}
