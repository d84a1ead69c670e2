"""The command lines: `metadef-opt` (opt.py) for passes, `metadef` (main.py) for models."""
