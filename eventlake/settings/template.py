"""The commented `lake.yaml` that `datalake init` writes.

Prose begins with `# `; a setting that is switched off begins with `#` alone, so that taking the
`#` away is all there is to do.
"""

STARTER = """\
# The settings of a data lake. Check them with `datalake check`.

# Names the workspace in the record log, and is the default of external_id.
workspace_id: my_workspace

# Where the lake lies: a folder, relative to this file, or s3://bucket[/prefix].
# (abfss:// comes later.)
storage: ./data

# Where tables are registered: local | glue | hive. This release has local and glue.
catalog: local

# Where Spark runs: local | spark://host:port | emr | emr-serverless | databricks.
# This release has local, spark://host:port and emr.
engine: local

# How a cluster at spark://host:port is used (docs/cluster.md).
#spark:
  # The workers' Python, of the same version as the one here. Default: python and that version
  #python: python3.11
  # Minutes to wait for executors while others have all cores, or workers are gone.
  #wait_minutes: 10
  # Settings of Spark itself, such as spark.cores.max: 16
  #conf: {}

# One entry for each stream of events.
sources:
    # The id as in the raw archive, and a short name for commands, assets and the database.
  - id: web01
    slug: web
    # Where its archive lies below storage. Default: segment-logs/<id>
    #raw: segment-logs/web01
    # false: no scheduled syncs; what is loaded stays.
    #enabled: true
    # The database in the catalog: small letters, digits and _, a letter first.
    # Default: the slug, written that way
    #database: web
    # For several sources in one database: their tables are called <table_prefix>_<table>.
    #table_prefix: web
    # The folders of a table: day/hour | year/month/day/hour | year/month/day | day
    # Fixed once tables exist.
    #date_partition: day/hour
    # native (track_<event>, properties_<name>) or warehouse (<event>, <name>).
    # Fixed once tables exist.
    #naming: native
    # Tables or event names that are neither written nor registered.
    #skip_events: []
    # Syncs leave older day folders alone. Default: the oldest one when the source is first seen
    #start: 2026-10-01

# Everything below may also stand in a source, and then counts for it alone.

# Events with the same messageId are duplicates if received at most so many days apart.
#dedup_days: 7

# The check `freshness` warns if the newest event is older than so many hours.
# Default: judged by how long the source was silent before
#freshness_hours: 12

# true: events without messageId are loaded under the hash of their line, not rejected.
#load_without_message_id: false

# Payloads in the record log: rejected (of what was not loaded) or all.
#tracking: rejected

# When sources are synced: a cron expression (minute, hour, day, month, weekday), or off.
#schedule: "0 */2 * * *"
#schedule_timezone: UTC
# Hours from when a source is first seen to its first sync by schedule; 0: at once.
#first_sync_hours: 2

# false: events of people on the suppression lists (`datalake suppress`) are loaded all the same.
#suppression: true

# Past a limit only the offending line, column or table is rejected.
#limits:
  # Bytes of a line, and levels of nesting in it.
  #line_bytes: 1048576
  #depth: 64
  # Columns of a table, and tables of a source.
  #columns: 2000
  #tables: 1000
  # What the catalog holds: databases, tables in one, characters in the name of a column.
  #catalog_databases: 10000
  #catalog_tables: 200000
  #column_name: 250

# Days for which the record log, and what failed runs left in staging, is kept.
#retention:
  #record_log_days: 14
  #stage_days: 14
  # Hours for which replaced files stay, so that queries that began before can end.
  #replaced_hours: 24
  # Days of the id index; should events of an earlier day come, it is made anew from the tables.
  #index_days: 30
  # Files that nothing leads to go so many days after that was first seen.
  #orphan_days: 7
  # Runs in Dagster, but for those that materialized a partition last; only at the top.
  #dagster_days: 90

# Small files of one partition are put together, once a day, as soon as its day is past.
#compaction:
  #enabled: true
  # Partitions of at least so many files that are, on average, smaller than so many megabytes.
  #min_files: 3
  #below_mb: 64
  # Days after which a partition is looked at (0: today, too), and megabytes read in one run.
  #after_days: 1
  #run_mb: 10000

# Who is told when something goes wrong; without recipients nobody is. Secrets are given as
# $NAME of an environment variable. Try it with `datalake alerts --test`.
#alerts:
  # By e-mail: one address, or a list of them. Default of the sender: the first of them
  #email_to: [data@example.com]
  #email_from: datalake@example.com
  # Security: starttls (port 587) | tls (465) | none (25). The port only where it is another.
  #smtp_host: localhost
  #smtp_port: 587
  #smtp_security: starttls
  # Whom to log in as, if at all.
  #smtp_user: datalake
  #smtp_password: $DATALAKE_SMTP_PASSWORD
  # By SNS: a topic, for which the role (or whoever runs Dagster) needs sns:Publish.
  #sns_topic_arn: arn:aws:sns:eu-west-1:123456789012:datalake
  # By web hook: Slack's, or any other that takes JSON with `text`.
  #webhook: $DATALAKE_WEBHOOK
  # Where people see Dagster's pages, for links to runs.
  #ui_url: https://dagster.example.com
  # The 1st, 5th and 20th failure in a row, and recovery.
  #sync_failures: true
  #replay_failures: true
  # Checks of what is published: those that fail, and those that warn.
  #failed_checks: true
  #check_warnings: false
  # Hours without new rows where there used to be some. Default: off
  #no_data_hours: 24
  # More rows of a sync rejected, in 100 that came; more cells rescued, per 100 rows loaded.
  # Default: off
  #rejected_percent: 5
  #rescued_percent: 5
  # Whether messages show the first bad record, or only say where it is.
  #show_record: true

# AWS, for storage on S3, the glue catalog and the emr engine. Keys are never written here: they
# come from the environment, a profile, or the machine, as for every program on AWS.
# Default of the region: from the environment or profile.
#region: eu-west-1
#emr_cluster_id: j-1A2B3C4D5E6F7
# The 12 digits of the account, the same as in iam_role_arn.
#glue_catalog_id: "123456789012"
# The role that is assumed for all work on AWS; on EMR the cluster has its own. Default: none
#iam_role_arn: arn:aws:iam::123456789012:role/datalake
# What the role asks of who assumes it. Default: the workspace id
#external_id: my_workspace
"""
