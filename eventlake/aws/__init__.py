"""AWS: credentials and sessions, permissions, errors."""
