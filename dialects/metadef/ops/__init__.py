"""One op a file: `softmax.py` holds `SoftmaxOp` and its builder `softmax`."""
