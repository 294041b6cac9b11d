"""Real servers that tests start: AWS, EMR, Hive, Postgres, mail, webhooks."""
