"""PyTorch's own operator database as a test: who runs each op, and are its numbers right."""
