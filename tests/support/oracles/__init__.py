"""Independent answers that results are compared with."""
