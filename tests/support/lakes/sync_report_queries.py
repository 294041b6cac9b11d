"""Queries on sync reports, as users of the original product write them."""

ROWS_PER_DAY = """SELECT day,sum(row_count)
FROM "__segment_datalake"."sync_reports"
WHERE source_id='9IP56Shn6' and table_name='checkout_started'
GROUP BY day
ORDER BY day
"""


ROWS_PER_DAY_AND_TABLE = """SELECT day, table_name,sum(row_count)
FROM "__segment_datalake"."sync_reports"
WHERE source_id='9IP56Shn6' AND type='event'
GROUP BY day, table_name
ORDER BY day
"""


LAST_SUCCESS = """SELECT max(finish_time)
FROM "__segment_datalake"."sync_reports"
WHERE source_id='9IP56Shn6' AND status='finished' AND date(day) = CURRENT_DATE
LIMIT 1
"""


FAILURES = """SELECT run_id, status, error, error_code
FROM "__segment_datalake"."sync_reports"
WHERE source_id='9IP56Shn6' AND status='failed' AND date(day) >= (CURRENT_DATE - interval '2' day)
"""
