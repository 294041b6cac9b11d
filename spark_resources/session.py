"""What our data flow asks of every Spark, wherever it runs."""

from collections.abc import Mapping

DATAFLOW: Mapping[str, str] = {
    # A row is a batch of events: few of them at a time between the JVM and Python.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16",
    # Groups are large or few; making partitions fewer would only take slots away.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}
# The JVM only moves batches: compiling itself to perfection, and collecting garbage in many
# threads, would take the processor from those who do the work.
FRUGAL_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
# What is shuffled and kept is packed already.
PACKED: Mapping[str, str] = {
    "spark.shuffle.compress": "false",
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
}
