"""Execution plans: how a model runs on a device, as plain data."""
