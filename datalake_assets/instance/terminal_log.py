"""The log of a run on the terminal: its own messages, without Dagster's events."""

import logging
import sys

import dagster as dg

from eventlake.rules.text import plain_lines


class _OwnMessages(logging.Filter):
    """Drops the events of the framework."""

    def filter(self, record: logging.LogRecord) -> bool:
        meta = getattr(record, "dagster_meta", {})
        return not isinstance(meta, dict) or meta.get("dagster_event") is None


class _Format(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        meta = getattr(record, "dagster_meta", {})
        message = meta.get("orig_message", record.getMessage()) if isinstance(meta, dict) else ""
        mark = {logging.WARNING: "warning: ", logging.ERROR: "error: "}.get(record.levelno, "")
        return f"{self.formatTime(record, '%H:%M:%S')}  {mark}{plain_lines(message)}"


@dg.logger(
    config_schema={
        "log_level": dg.Field(str, default_value="INFO", is_required=False),
        "warnings": dg.Field(bool, default_value=True, is_required=False),
    },
    description="The messages of a run on standard error.",
)
def console(init_context: dg.InitLoggerContext) -> logging.Logger:
    logger = logging.Logger("datalake", level=init_context.logger_config["log_level"])
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Format())
    handler.addFilter(_OwnMessages())
    if not init_context.logger_config["warnings"]:
        handler.addFilter(lambda record: record.levelno != logging.WARNING)
    logger.addHandler(handler)
    return logger
