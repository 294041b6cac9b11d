"""The programs that the benchmarks start and measure: ours, and the peers."""
