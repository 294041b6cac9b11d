"""How many tasks a cluster can work on at once, when it has grown as far as it may."""

import re

from spark_resources.emr.cluster_like import Cluster, Json

_SIZES = {"medium": 1, "large": 2, "xlarge": 4}
_LARGE = re.compile(r"(\d+)xlarge")
_METAL = 64


def slots_of(cluster: Cluster) -> int:
    """Of its workers' processors; Spark itself knows only of those it already has."""
    workers = [_group(group) for group in cluster.groups if group["InstanceGroupType"] != "MASTER"]
    workers += [_fleet(fleet) for fleet in cluster.fleets if fleet["InstanceFleetType"] != "MASTER"]
    now = sum(units * per_unit for units, per_unit in workers)
    limits = (cluster.managed_scaling or {}).get("ComputeLimits", {})
    most = int(limits.get("MaximumCapacityUnits", 0))
    if limits.get("UnitType") == "VCPU":
        return max(1, most, now)
    per_unit = max((per_unit for _, per_unit in workers), default=1)
    return max(1, most * per_unit, now)


def _group(group: Json) -> tuple[int, int]:
    return group["RequestedInstanceCount"], processors(group["InstanceType"])


def _fleet(fleet: Json) -> tuple[int, int]:
    units = fleet.get("TargetOnDemandCapacity", 0) + fleet.get("TargetSpotCapacity", 0)
    kinds = fleet["InstanceTypeSpecifications"]
    weights = (processors(k["InstanceType"]) // (k.get("WeightedCapacity") or 1) for k in kinds)
    return units, max(1, min(weights, default=1))


def processors(instance_type: str) -> int:
    """By the name of the size: a large has two, an xlarge four, a 2xlarge eight."""
    size = instance_type.partition(".")[2]
    if found := _LARGE.fullmatch(size):
        return 4 * int(found[1])
    return _SIZES.get(size, _METAL if size.startswith("metal") else 1)
