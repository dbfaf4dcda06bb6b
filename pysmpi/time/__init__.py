"""Virtual time in ranks: the time of compute, the clocks and alarms that programs see."""
