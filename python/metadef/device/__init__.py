"""What the hardware can do: the device's spec, its JSON form, and the probe of this machine."""
