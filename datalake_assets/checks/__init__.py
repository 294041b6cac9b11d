"""Asset checks of what is published."""
