"""The command lines: `metadef-opt` (opt.py) for compiler writers, `metadef` (main.py) for models."""
