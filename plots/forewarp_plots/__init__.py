"""Draws what forewarp predicted. Everything here works on result files alone: it arranges numbers, and computes none that
a result does not hold but for sums, shares and ratios of them."""
