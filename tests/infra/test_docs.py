"""Documentation and deployment files agree with the code."""

import re
import shlex
from pathlib import Path
from typing import Any

import botocore.session
import duckdb
import jmespath  # type: ignore[import-untyped]
import pytest
import yaml
from botocore import xform_name
from typer.testing import CliRunner

from datalake_assets.cli import serve
from datalake_assets.cli.app import app, load
from datalake_assets.instance.home import URL_VARIABLE, VARIABLE
from datalake_assets.instance.storage import Bookkeeping
from datalake_assets.jobs.sync import SCHEDULES_VARIABLE
from datalake_assets.sensors.reload import WEBSERVER_VARIABLE
from eventlake.settings.file import FILE_VARIABLE, load_settings
from scripts.aws_policies import TEMPLATE, policies, template
from tests.support.aws.stack import deploy
from tests.support.repo import ROOT, blocks
from tests.support.servers.aws import AwsServer

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


def test_every_command_is_of_a_kind_that_is_tried_here() -> None:
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
def test_deployments_name_the_template_and_its_parameters(words: list[str]) -> None:
    given = options(words)
    assert ROOT / given["--template-file"][0] == TEMPLATE
    assert given["--capabilities"] == ["CAPABILITY_IAM"]
    assert parameters(words).keys() <= template()["Parameters"].keys()


def test_the_first_deployment_gives_all_that_has_no_default() -> None:
    needed = {name for name, said in template()["Parameters"].items() if "Default" not in said}
    assert needed <= parameters(DEPLOYS[0]).keys()


@pytest.mark.parametrize("words", DEPLOYS, ids=["first", "again"])
def test_values_of_parameters_are_ones_that_the_template_takes(words: list[str]) -> None:
    for name, value in parameters(words).items():
        said = template()["Parameters"][name]
        listed = value.split(",") if said["Type"] == "CommaDelimitedList" else [value]
        assert all(re.fullmatch(said.get("AllowedPattern", ".*"), one) for one in listed), name


def test_parameters_that_are_mentioned_exist() -> None:
    mentioned = {m[1] for span in SPANS if (m := re.match(r"([A-Z][A-Za-z]+)=", span))}
    assert {"CreateBucket", "RawFolder", "KmsKeyArn"} <= mentioned
    assert mentioned <= template()["Parameters"].keys()


def test_the_stack_of_the_page_is_deployed_and_tells_the_settings(aws: AwsServer) -> None:
    network = {"VpcId", "SubnetId"}
    given = {k: v for k, v in parameters(DEPLOYS[0]).items() if k not in network}
    stack = deploy(aws, **given)
    (asking,) = [options(words) for words in AWS if words[1] == "describe-stacks"]
    told = stack.client("cloudformation").describe_stacks(StackName=asking["--stack-name"][0])
    (settings,) = jmespath.search(asking["--query"][0], told)
    keys = [line.split(":")[0] for line in settings.splitlines()]
    assert keys == [line.split(":")[0] for line in blocks(TEXT, "yaml")[0].splitlines()][1:8]


@pytest.mark.parametrize("number", range(len(blocks(TEXT, "yaml"))))
def test_settings_of_the_page_load(number: int, tmp_path: Path) -> None:
    (tmp_path / "lake.yaml").write_text(blocks(TEXT, "yaml")[number])
    settings = load_settings(None, {}, tmp_path)
    assert (settings.storage_uri, settings.catalog, settings.engine) == (
        "s3://acme-events",
        "glue",
        "emr",
    )


def test_the_comparison_with_old_tables_runs() -> None:
    (query,) = blocks(TEXT, "sql")
    with duckdb.connect() as memory:
        for database in ("ios_prod", "ios_prod_lake"):
            memory.execute(f"create schema {database}")
            memory.execute(f"create table {database}.track_order_completed (day text)")
            memory.execute(f"insert into {database}.track_order_completed values ('2026-11-15')")
        assert memory.execute(query).fetchall() == [("2026-11-15", 1, 1)]


def test_the_policies_are_mentioned() -> None:
    assert set(SPANS) >= policies().keys()


DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()


def test_every_part_of_dagster_is_there_once() -> None:
    ours = {name: one for name, one in COMPOSE["services"].items() if name != "postgres"}
    assert ours.keys() == {part.value for part in serve.Part}
    for name, service in ours.items():
        assert service["command"][:3] == ["datalake", "serve", name]
        assert service["image"] == "datalake"
        assert "deploy" not in service  # one of each: two daemons would do everything twice


def test_the_variables_are_those_that_are_read() -> None:
    told = COMPOSE["x-datalake"]["environment"]
    ours = {FILE_VARIABLE, VARIABLE, URL_VARIABLE, WEBSERVER_VARIABLE, SCHEDULES_VARIABLE}
    assert ours | {serve.CODE_VARIABLE} == {name for name, value in told.items() if value}
    assert told[serve.CODE_VARIABLE] == "code:4000"
    assert COMPOSE["services"]["code"]["command"][-1] == "4000"
    assert told[WEBSERVER_VARIABLE] == "webserver:3000"
    assert COMPOSE["services"]["webserver"]["command"][-1] == "3000"


def test_only_this_machine_reaches_the_ui_and_nothing_else_is_open() -> None:
    ports = {name: one.get("ports") for name, one in COMPOSE["services"].items()}
    assert ports.pop("webserver") == ["127.0.0.1:3000:3000"]
    assert set(ports.values()) == {None}


def test_what_has_no_default_is_in_the_example() -> None:
    asked = set(re.findall(r"\$\{(\w+):\?", (DEPLOY / "compose.yaml").read_text()))
    example = set(re.findall(r"^(\w+)=", (DEPLOY / "env.example").read_text(), re.MULTILINE))
    assert asked == example


def test_the_image_copies_what_there_is() -> None:
    copied = re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.MULTILINE)
    names = [name for line in copied for name in line.split()]
    assert names and all((ROOT / name).exists() for name in names)
    packages = {path.parent.name for path in ROOT.glob("*/py.typed")}
    assert packages <= set(names)
    assert "USER datalake" in DOCKERFILE


def test_volumes_are_declared() -> None:
    used = {
        volume.split(":")[0]
        for service in COMPOSE["services"].values()
        for volume in service["volumes"]
        if not volume.startswith("$")
    }
    assert used == set(COMPOSE["volumes"])


@pytest.mark.parametrize("part", serve.Part)
def test_every_command_is_taken(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lake.yaml").write_text(
        "workspace_id: W1\nstorage: ./data\nsources: [{id: S1, slug: shop}]\n"
    )
    handed: list[list[str]] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "home"))
    monkeypatch.setenv(serve.CODE_VARIABLE, "code:4000")
    monkeypatch.setattr("os.execve", lambda _, command, environ: handed.append(command))
    monkeypatch.setattr("signal.signal", lambda *_: None)  # Ctrl-C stays as it is here
    words = COMPOSE["services"][part]["command"][1:]
    assert CliRunner().invoke(app, words).exit_code == 0
    [command] = handed
    assert command[1] == "-m"
    assert (tmp_path / "home/dagster.yaml").read_bytes() == (ROOT / "dagster.yaml").read_bytes()


def test_the_instance_file_names_our_storage() -> None:
    custom = yaml.safe_load((ROOT / "dagster.yaml").read_text())["storage"]["custom"]
    assert (custom["module"], custom["class"]) == (Bookkeeping.__module__, Bookkeeping.__name__)
