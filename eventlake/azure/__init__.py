"""Azure: sign-in and clients, errors."""
