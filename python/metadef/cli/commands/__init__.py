"""The commands of `metadef`, a file each: HELP, DESCRIPTION, `add_options` and `run`.

A command imports torch and the compiler when it runs, so that `--help` is quick.
"""
