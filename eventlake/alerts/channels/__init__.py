"""The ways messages take: e-mail, SNS, web hooks."""
