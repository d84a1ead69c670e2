"""The device dialect: what the hardware can do, as attributes that passes ask."""
