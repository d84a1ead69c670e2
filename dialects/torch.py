"""Stands where MLIR's bindings look for the torch dialect's classes: a thousand, 14 MiB, that
nobody here uses. The dialect itself is torch-mlir's; its ops are plain `ir.OpView`s.
"""
