"""Lowerings of metadef ops to linalg, a family of ops a module; imported on demand.

A kernel's values are held as scalar expressions over their index space (`expression`), so that
pointwise ops and views cost nothing until an op that needs a tensor in memory is met; that op
becomes one `linalg.generic` whose body computes the whole expression (`kernel`).
"""
