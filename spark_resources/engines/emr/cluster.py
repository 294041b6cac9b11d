"""The request for a cluster like another one, for one step only (`RunJobFlow`)."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

VENDOR_TAG = {"Key": "vendor", "Value": "segment"}
# A cluster ends with its step. If EMR misses that, it ends after an idle hour.
IDLE_SECONDS = 3600

_AS_THEY_ARE = (
    "ReleaseLabel",
    "LogEncryptionKmsKeyId",
    "Configurations",
    "ServiceRole",
    "SecurityConfiguration",
    "AutoScalingRole",
    "ScaleDownBehavior",
    "CustomAmiId",
    "EbsRootVolumeSize",
    "EbsRootVolumeIops",
    "EbsRootVolumeThroughput",
    "RepoUpgradeOnBoot",
    "OSReleaseLabel",
    "ExtendedSupport",
    "MonitoringConfiguration",
)
_NETWORK = (
    "Ec2KeyName",
    "EmrManagedMasterSecurityGroup",
    "EmrManagedSlaveSecurityGroup",
    "ServiceAccessSecurityGroup",
    "AdditionalMasterSecurityGroups",
    "AdditionalSlaveSecurityGroups",
)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cluster:
    """The description of a cluster by EMR, as needed to start another one like it."""

    described: Json
    groups: tuple[Json, ...] = ()
    fleets: tuple[Json, ...] = ()
    bootstrap_actions: tuple[Json, ...] = ()
    managed_scaling: Json | None = None

    @property
    def id(self) -> str:
        return str(self.described["Id"])

    @property
    def state(self) -> str:
        return str(self.described["Status"]["State"])

    @property
    def release(self) -> str:
        return str(self.described.get("ReleaseLabel") or "")

    @property
    def log_uri(self) -> str | None:
        """The folder of its logs; EMR may report old URI schemes of S3."""
        uri = str(self.described.get("LogUri") or "")
        path = uri.partition("://")[2]
        return f"s3://{path.rstrip('/')}" if path else None

    @property
    def instance_types(self) -> frozenset[str]:
        of_fleets = (one for f in self.fleets for one in f.get("InstanceTypeSpecifications", ()))
        return frozenset(one["InstanceType"] for one in (*self.groups, *of_fleets))


def cluster_like(standing: Cluster, name: str, step: Json, tags: Mapping[str, str]) -> Json:
    """The same nodes, software, roles and network; it ends by itself when its step does."""
    like = standing.described
    attributes = like["Ec2InstanceAttributes"]
    # EMR refuses custom automatic scaling beside managed scaling.
    scaled_by_emr = {"AutoScalingRole"} if standing.managed_scaling else set()
    return {
        "Name": name,
        **_chosen(like, (name for name in _AS_THEY_ARE if name not in scaled_by_emr)),
        **({"LogUri": f"{standing.log_uri}/"} if standing.log_uri else {}),
        "Applications": [_chosen(a, ("Name", "Args", "AdditionalInfo")) for a in _apps(like)],
        "BootstrapActions": [
            {
                "Name": action["Name"],
                "ScriptBootstrapAction": {
                    "Path": action["ScriptPath"],
                    "Args": action.get("Args", []),
                },
            }
            for action in standing.bootstrap_actions
        ],
        "JobFlowRole": attributes["IamInstanceProfile"],
        "Instances": {
            **_chosen(attributes, _NETWORK),
            **_nodes(standing, attributes),
            "KeepJobFlowAliveWhenNoSteps": False,
            "TerminationProtected": False,
        },
        **({"ManagedScalingPolicy": standing.managed_scaling} if standing.managed_scaling else {}),
        "AutoTerminationPolicy": {"IdleTimeout": IDLE_SECONDS},
        "VisibleToAllUsers": True,
        "Tags": _tags(like.get("Tags", ()), tags),
        "Steps": [{**step, "ActionOnFailure": "TERMINATE_CLUSTER"}],
    }


def _apps(like: Json) -> list[Json]:
    found: list[Json] = like.get("Applications", [])
    return found


def _nodes(standing: Cluster, attributes: Json) -> Json:
    if standing.fleets:
        subnets = attributes.get("RequestedEc2SubnetIds") or [attributes.get("Ec2SubnetId")]
        placed: Json = {"Ec2SubnetIds": subnets} if any(subnets) else {}
        return {**placed, "InstanceFleets": [_fleet(fleet) for fleet in standing.fleets]}
    placed = _chosen(attributes, ("Ec2SubnetId",))
    if not placed and attributes.get("Ec2AvailabilityZone"):
        placed = {"Placement": {"AvailabilityZone": attributes["Ec2AvailabilityZone"]}}
    return {**placed, "InstanceGroups": [_group(group, standing) for group in standing.groups]}


def _group(group: Json, standing: Cluster) -> Json:
    role = group["InstanceGroupType"]
    scaling = None if standing.managed_scaling else group.get("AutoScalingPolicy")
    return {
        **_chosen(
            group, ("Name", "Market", "InstanceType", "BidPrice", "Configurations", "CustomAmiId")
        ),
        "InstanceRole": role,
        # One master is enough for a temporary cluster; a group scaled to zero needs one node.
        "InstanceCount": 1 if role == "MASTER" else max(1, group["RequestedInstanceCount"]),
        **_disks(group),
        **({"AutoScalingPolicy": _chosen(scaling, ("Constraints", "Rules"))} if scaling else {}),
    }


def _fleet(fleet: Json) -> Json:
    targets = _chosen(fleet, ("TargetOnDemandCapacity", "TargetSpotCapacity"))
    return {
        **_chosen(fleet, ("Name", "InstanceFleetType", "LaunchSpecifications", "Context")),
        **_chosen(fleet, ("ResizeSpecifications",)),
        **(targets if any(targets.values()) else {"TargetOnDemandCapacity": 1}),
        "InstanceTypeConfigs": [
            {
                **_chosen(one, ("InstanceType", "WeightedCapacity", "Configurations", "Priority")),
                **_chosen(one, ("BidPrice", "BidPriceAsPercentageOfOnDemandPrice", "CustomAmiId")),
                **_disks(one),
            }
            for one in fleet["InstanceTypeSpecifications"]
        ],
    }


def _disks(of: Json) -> Json:
    """EMR describes volumes one by one; requests have kinds and numbers."""
    volumes = Counter(
        tuple(sorted(_given(device["VolumeSpecification"]).items()))
        for device in of.get("EbsBlockDevices") or ()
    )
    if not volumes:
        return {}
    configs = [
        {"VolumeSpecification": dict(volume), "VolumesPerInstance": number}
        for volume, number in volumes.items()
    ]
    optimized = _chosen(of, ("EbsOptimized",))
    return {"EbsConfiguration": {"EbsBlockDeviceConfigs": configs, **optimized}}


def _tags(standing: Iterable[Mapping[str, str]], own: Mapping[str, str]) -> list[dict[str, str]]:
    """The same tags without those that only AWS may set."""
    kept = {tag["Key"]: tag["Value"] for tag in standing if not tag["Key"].startswith("aws:")}
    tags = {**kept, **own, VENDOR_TAG["Key"]: VENDOR_TAG["Value"]}
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _chosen(of: Mapping[str, Any], names: Iterable[str]) -> Json:
    return _given({name: of.get(name) for name in names})


def _given(of: Mapping[str, Any]) -> Json:
    """The values that are set; EMR returns empty strings and lists for the others."""
    return {name: value for name, value in of.items() if value not in (None, "", [], {})}


SUPPORTED = "emr-spark-8.1.0"
"""The release to recommend; any with Spark 4 is usable."""
_SPARK_RELEASE = re.compile(r"emr-spark-(\d+)\.\d+\.\d+(?:[.-].*)?")


def is_supported(release: str) -> bool:
    """Spark 4 is in the releases that are named after Spark, from 8 on."""
    found = _SPARK_RELEASE.fullmatch(release)
    return found is not None and int(found[1]) >= 8


def why_not(release: str) -> str:
    return (
        f"it runs release {release or 'unknown'}, whose Spark is older than 4.0. Our jobs need "
        f"Spark 4: create the cluster with release {SUPPORTED} or newer, and set `emr_cluster_id`"
    )
