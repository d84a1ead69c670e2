"""Fills the performance table: kernels of all kinds, as models have them, measured alone."""
