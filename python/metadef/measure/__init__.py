"""Micro-benchmarks: what this machine reaches, measured through our own code generation."""
