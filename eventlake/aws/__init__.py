"""What the lake needs to know of AWS: who we are there, and what its refusals mean."""
