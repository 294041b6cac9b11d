"""Azure: errors, sign-in."""
