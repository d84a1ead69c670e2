"""What kernels must do, and what a device makes of it: flops and bytes, data reuse, the roofline."""
