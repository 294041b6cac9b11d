"""AWS as tests see it: policies, recorded answers, the stack."""
