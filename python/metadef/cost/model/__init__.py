"""Models of what kernels take, on measurements as data: roofline, evidence, regression."""
