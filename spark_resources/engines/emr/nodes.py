"""What the nodes of a cluster can run: executors by the size of a node, and tasks in all."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spark_resources.engines.emr.cluster import Cluster, Json

_SIZES = {"medium": 1, "large": 2, "xlarge": 4}
_LARGE = re.compile(r"(\d+)xlarge")
_METAL = 64
# GB per core, by the letters that a family begins with; more than that only few families have.
_GB_PER_CORE = {"c": 2, "m": 4, "t": 4, "g": 4, "r": 8, "i": 8, "d": 8, "z": 8, "x": 16, "u": 16}
_OF_YARN = 0.75  # of the memory of a node
_MASTER_GB = 1.0  # for YARN's application master, which runs on one of the nodes

EXECUTOR_CORES = 2
LEAST_GB = 4.0
"""Of an executor with two tasks: rows are in the memory of Python, not of the JVM."""


@dataclass(frozen=True, slots=True)
class Executors:
    """How many executors fit on a node, and their memory."""

    per_node: int
    gb: float  # of one, in all

    @property
    def slots(self) -> int:
        """Tasks that run at once on a node."""
        return self.per_node * EXECUTOR_CORES

    def settings(self) -> Mapping[str, str]:
        """As settings of Spark."""
        heap = 1 if self.gb < 5 else 2
        return {
            "spark.executor.cores": str(EXECUTOR_CORES),
            "spark.executor.memory": f"{heap}g",
            "spark.executor.memoryOverhead": f"{int((self.gb - heap) * 1024)}m",
        }


def executors_on(instance_type: str) -> Executors | None:
    """The executors of a node; None if it is too small for one."""
    cores = processors(instance_type)
    gb = memory_gb(instance_type) * _OF_YARN - _MASTER_GB
    fit = min(max(1, cores // EXECUTOR_CORES), int(gb // LEAST_GB))
    return Executors(fit, gb / fit) if fit else None


def processors(instance_type: str) -> int:
    """The cores of an instance by its size: two for a large, four for an xlarge."""
    size = instance_type.partition(".")[2]
    if found := _LARGE.fullmatch(size):
        return 4 * int(found[1])
    return _SIZES.get(size, _METAL if size.startswith("metal") else 1)


def memory_gb(instance_type: str) -> int:
    """The memory of an instance by its family: 16 GB for an m5.xlarge."""
    return processors(instance_type) * _GB_PER_CORE.get(instance_type[:1], 2)


def executors_of(cluster: Cluster) -> Executors | None:
    """The executors that fit on every kind of worker; None if one kind is too small for any."""
    found = [executors_on(kind) for kind in sorted(worker_types(cluster))]
    if None in found:
        return None
    fitting = [one for one in found if one is not None]
    return min(fitting, key=lambda one: one.gb) if fitting else executors_on("m5.xlarge")


def worker_types(cluster: Cluster) -> frozenset[str]:
    """The instance types of core and task nodes."""
    return frozenset(kind for unit in _workers(cluster) for kind in _kinds(unit))


def slots_of(cluster: Cluster) -> int:
    """Tasks that run at once on all workers; Spark knows only executors that have started."""
    units = [(_count(unit), _slots(unit)) for unit in _workers(cluster)]
    now = sum(count * slots for count, slots in units)
    limits = (cluster.managed_scaling or {}).get("ComputeLimits", {})
    most = int(limits.get("MaximumCapacityUnits", 0))
    if limits.get("UnitType") == "VCPU":
        return max(1, most, now)
    per_unit = max((slots for _, slots in units), default=1)
    return max(1, most * per_unit, now)


def _workers(cluster: Cluster) -> Iterator[Json]:
    """Instance groups or fleets, without the master."""
    yield from (one for one in cluster.groups if one["InstanceGroupType"] != "MASTER")
    yield from (one for one in cluster.fleets if one["InstanceFleetType"] != "MASTER")


def _kinds(unit: Json) -> dict[str, int]:
    """The instance types of a group or fleet, with their weights."""
    if "InstanceType" in unit:
        return {unit["InstanceType"]: 1}
    kinds = unit["InstanceTypeSpecifications"]
    return {kind["InstanceType"]: kind.get("WeightedCapacity") or 1 for kind in kinds}


def _count(unit: Json) -> int:
    """The capacity of a group or fleet in units: nodes, or their weights."""
    targets = ("RequestedInstanceCount", "TargetOnDemandCapacity", "TargetSpotCapacity")
    return sum(int(unit.get(target, 0)) for target in targets)


def _slots(unit: Json) -> int:
    """The slots of a unit of capacity, at least."""
    found = [(executors_on(kind), weight) for kind, weight in _kinds(unit).items()]
    per_unit = [one.slots // weight for one, weight in found if one is not None]
    return max(1, min(per_unit, default=1))
