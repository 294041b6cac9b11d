"""Jobs on a service that runs Spark elsewhere: one way to run them, four calls per service."""
