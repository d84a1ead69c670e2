"""The cost model: what a kernel will take under a choice, from measurements and the roofline."""
