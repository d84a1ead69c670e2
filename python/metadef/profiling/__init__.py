"""Where the time of a call goes: measured in the native program, beside the device's limits."""
