"""Conversions from torch-dialect ops to metadef ops, one module a family of ops."""
