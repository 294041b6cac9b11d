"""Tests of the benchmarks: what they measure by must be right, too."""
