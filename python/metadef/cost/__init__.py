"""What kernels have to do, and what a device makes of it: flops, bytes, reuse, the roofline."""
