"""The performance table: measured kernels, one SQLite file."""
