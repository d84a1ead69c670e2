"""One pass a file: `fuse_pointwise.py` holds `FusePointwise`, called `fuse-pointwise`."""
