"""Documentation and deployment files agree with the code."""

import re
import shlex
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import botocore.session
import duckdb
import jmespath  # type: ignore[import-untyped]
import pytest
import yaml
from botocore import xform_name

from datalake_assets.cli import dev
from datalake_assets.cli.app import load
from datalake_assets.instance.home import URL_VARIABLE, VARIABLE
from datalake_assets.sensors.reload import WEBSERVER_VARIABLE
from eventlake.settings.file import FILE_VARIABLE, load_settings
from scripts.aws_policies import TEMPLATE, policies, template
from tests.support.aws.stack import deploy
from tests.support.repo import ROOT, blocks
from tests.support.servers.aws import AwsServer
from tests.support.terminal import datalake

DOC = ROOT / "docs/aws.md"
TEXT = DOC.read_text()
EVERYWHERE = {"--region", "--output", "--query"}  # options of all commands of the AWS command line


COMMANDS = [
    shlex.split(line)
    for block in blocks(TEXT, "sh")
    for line in block.replace("\\\n", " ").splitlines()
    if line.strip()
]
SPANS = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL))
COMMANDS += [
    shlex.split(span)
    for span in SPANS
    if re.match(r"(aws|datalake) [a-z]", span) and "…" not in span
]
OURS = [words[1:] for words in COMMANDS if words[0] == "datalake"]
AWS = [words[1:] for words in COMMANDS if words[0] == "aws"]
DEPLOYS = [words for words in AWS if words[:2] == ["cloudformation", "deploy"]]


def options(words: list[str]) -> dict[str, list[str]]:
    """Each option with its values."""
    found: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("--"):
            found[word] = []
        elif found:
            found[next(reversed(found))].append(word)
    return found


def parameters(words: list[str]) -> dict[str, str]:
    """The parameters of the template that a deployment gives."""
    given = options(words)["--parameter-overrides"]
    return dict(entry.split("=", 1) for entry in given)


def test_every_command_is_of_a_tested_kind() -> None:
    assert {words[0] for words in COMMANDS} == {"aws", "datalake"}
    assert len(OURS) >= 8
    assert len(DEPLOYS) == 2


@pytest.mark.parametrize("words", OURS, ids=" ".join)
def test_our_commands_have_the_options_they_are_shown_with(words: list[str]) -> None:
    command: Any = load(words[0])
    words = words[1:]
    while words and hasattr(command, "commands"):
        command, words = command.commands[words[0]], words[1:]
    known = {name for parameter in command.params for name in parameter.opts}
    assert options(words).keys() <= known
    taken = {name for p in command.params if p.required for name in p.opts if name[0] == "-"}
    assert not words or taken <= options(words).keys()


@pytest.mark.parametrize(
    "words", [w for w in AWS if w not in DEPLOYS and w[0] != "s3"], ids=lambda w: " ".join(w[:2])
)
def test_commands_of_aws_exist_with_their_options(words: list[str]) -> None:
    service, operation, *rest = words
    model = botocore.session.get_session().get_service_model(service)
    found = {xform_name(name, "-"): name for name in model.operation_names}
    shape = model.operation_model(found[operation]).input_shape
    members = {f"--{xform_name(member, '-')}" for member in (shape.members if shape else ())}
    assert options(rest).keys() <= members | EVERYWHERE
    needed = {
        f"--{xform_name(member, '-')}" for member in (shape.required_members if shape else ())
    }
    assert needed <= options(rest).keys()


@pytest.mark.parametrize("words", DEPLOYS, ids=["first", "again"])
def test_deployments_name_the_template_and_give_valid_parameters(words: list[str]) -> None:
    given = options(words)
    assert ROOT / given["--template-file"][0] == TEMPLATE
    assert given["--capabilities"] == ["CAPABILITY_IAM"]
    for name, value in parameters(words).items():
        known = template()["Parameters"][name]
        listed = value.split(",") if known["Type"] == "CommaDelimitedList" else [value]
        assert all(re.fullmatch(known.get("AllowedPattern", ".*"), one) for one in listed), name


def test_the_page_gives_needed_parameters_and_mentions_existing_ones() -> None:
    needed = {name for name, known in template()["Parameters"].items() if "Default" not in known}
    assert needed <= parameters(DEPLOYS[0]).keys()
    mentioned = {m[1] for span in SPANS if (m := re.match(r"([A-Z][A-Za-z]+)=", span))}
    assert {"CreateBucket", "RawFolder", "KmsKeyArn"} <= mentioned
    assert mentioned <= template()["Parameters"].keys()
    assert set(SPANS) >= policies().keys()


def test_the_stack_of_the_page_can_be_deployed_and_outputs_the_settings(aws: AwsServer) -> None:
    network = {"VpcId", "SubnetIds"}
    given = {k: v for k, v in parameters(DEPLOYS[0]).items() if k not in network}
    stack = deploy(aws, **given)
    (asking,) = [options(words) for words in AWS if words[1] == "describe-stacks"]
    found = stack.client("cloudformation").describe_stacks(StackName=asking["--stack-name"][0])
    (settings,) = jmespath.search(asking["--query"][0], found)
    keys = [line.split(":")[0] for line in settings.splitlines()]
    assert keys == [line.split(":")[0] for line in blocks(TEXT, "yaml")[0].splitlines()][1:8]


@pytest.mark.parametrize("number", range(len(blocks(TEXT, "yaml"))))
def test_settings_of_the_page_load(number: int, tmp_path: Path) -> None:
    (tmp_path / "lake.yaml").write_text(blocks(TEXT, "yaml")[number])
    settings = load_settings(None, {}, tmp_path)
    assert settings.storage_uri == "s3://acme-events"
    assert settings.catalog == "glue" and settings.on_emr


def test_the_comparison_with_old_tables_runs() -> None:
    (query,) = blocks(TEXT, "sql")
    with duckdb.connect() as memory:
        for database in ("ios_prod", "ios_prod_lake"):
            memory.execute(f"create schema {database}")
            memory.execute(f"create table {database}.track_order_completed (day text)")
            memory.execute(f"insert into {database}.track_order_completed values ('2026-11-15')")
        assert memory.execute(query).fetchall() == [("2026-11-15", 1, 1)]


DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()


def test_compose_starts_each_part_of_dagster_once_with_the_variables_that_are_read() -> None:
    ours = {name: one for name, one in COMPOSE["services"].items() if name != "postgres"}
    assert ours.keys() == {part.value for part in dev.Part}
    for name, service in ours.items():
        assert service["command"][:3] == ["datalake", "serve", name]
        assert service["image"] == "datalake"
        assert "deploy" not in service  # one of each: two daemons would do everything twice
    given = COMPOSE["x-datalake"]["environment"]
    read = {FILE_VARIABLE, VARIABLE, URL_VARIABLE, WEBSERVER_VARIABLE}
    assert read | {dev.CODE_VARIABLE} == {name for name, value in given.items() if value}
    for variable, part in [(dev.CODE_VARIABLE, "code"), (WEBSERVER_VARIABLE, "webserver")]:
        assert given[variable] == f"{part}:{COMPOSE['services'][part]['command'][-1]}"


def test_only_this_machine_reaches_the_ui_and_no_other_port_is_open() -> None:
    ports = {name: one.get("ports") for name, one in COMPOSE["services"].items()}
    assert ports.pop("webserver") == ["127.0.0.1:3000:3000"]
    assert set(ports.values()) == {None}


def test_the_example_has_the_variables_without_default_and_volumes_are_declared() -> None:
    asked = set(re.findall(r"\$\{(\w+):\?", (DEPLOY / "compose.yaml").read_text()))
    example = set(re.findall(r"^(\w+)=", (DEPLOY / "env.example").read_text(), re.MULTILINE))
    assert asked == example
    used = {
        volume.split(":")[0]
        for service in COMPOSE["services"].values()
        for volume in service["volumes"]
        if not volume.startswith("$")
    }
    assert used == set(COMPOSE["volumes"])


def test_the_image_copies_existing_files_and_all_packages() -> None:
    copied = re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.MULTILINE)
    names = [name for line in copied for name in line.split()]
    assert names and all((ROOT / name).exists() for name in names)
    packages = {path.parent.name for path in ROOT.glob("*/py.typed")}
    assert packages <= set(names)
    assert "USER datalake" in DOCKERFILE


@pytest.mark.parametrize("part", dev.Part)
def test_the_command_of_every_part_starts_it(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lake.yaml").write_text(
        "workspace_id: W1\nstorage: ./data\nsources: [{id: S1, slug: shop}]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "home"))
    monkeypatch.setenv(dev.CODE_VARIABLE, "code:4000")
    monkeypatch.setattr("os.execve", execve := Mock())
    monkeypatch.setattr("signal.signal", lambda *_: None)  # Ctrl-C stays as it is here
    words = COMPOSE["services"][part]["command"][1:]
    datalake(*words)
    [(_, command, _)] = [call.args for call in execve.mock_calls]
    assert command[1] == "-m"
    assert (tmp_path / "home/dagster.yaml").read_bytes() == (ROOT / "dagster.yaml").read_bytes()
