"""The commands of `metadef device`, a file each."""

from metadef.cli.commands.device import calibrate, diff, list, probe, show, validate

HELP = "probe, calibrate, list, show, compare, check device descriptors"
DESCRIPTION = "Describe devices: what hardware there is, and what it is known to reach."

COMMANDS = {
    "probe": probe,
    "calibrate": calibrate,
    "list": list,
    "show": show,
    "diff": diff,
    "validate": validate,
}
