"""The console over small lakes: every page and its JSON twin, what is refused, who may do what."""

import io
import json
import logging
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow.csv as pc_csv
import pyarrow.parquet as pq
import pytest

from datalake_assets.console.access import (
    OPERATORS_VARIABLE,
    PROXIES_VARIABLE,
    TOKEN_VARIABLE,
    USER_HEADER_VARIABLE,
    VIEW_TOKEN_VARIABLE,
    Access,
)
from datalake_assets.console.app import Console
from datalake_assets.console.pages import PAGES
from eventlake.api import EventLake
from eventlake.lake import Lake
from eventlake.rules.errors import LakeError, UsageError
from eventlake.rules.suppression import IdKind
from eventlake.runs.open_runs import opened_run
from eventlake.sample import WEB_SHOP, SampleSpec, write_archive
from eventlake.state.report import RunFacts
from eventlake.state.suppression import WHOLE_LAKE, change
from tests.support.lakes.archive import Archive
from tests.support.lakes.jobs import drained
from tests.support.lakes.settings import lake_in
from tests.support.servers.console import Answer, Client, serving

TODAY = datetime.now(UTC).date()
NASTY = '<script>alert("x")</script>\'"&\U0001f600'
OPERATOR, VIEWER = "operator-token-of-tests", "viewer-token-of-tests"
TOKENS = {TOKEN_VARIABLE: OPERATOR, VIEW_TOKEN_VARIABLE: VIEWER}


def event(id: str, day: object = TODAY, **more: Any) -> dict[str, Any]:
    found = {"type": "track", "messageId": id, "receivedAt": f"{day}T00:00:00Z", "userId": "u1"}
    return found | more


def _archive(folder: Path) -> Archive:
    return Archive(folder / "data/segment-logs" / WEB_SHOP.id)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Two days of the sample, the second with an event whose name is full of HTML."""
    folder = tmp_path_factory.mktemp("console")
    lake = lake_in(folder, WEB_SHOP)
    first = TODAY - timedelta(days=1)
    sample = SampleSpec(first_day=first, days=2, events_per_day=150, files_per_day=2, hours=3)
    archive = _archive(folder)
    for arrived in (1, 2):
        write_archive(folder / "data", sample, arrived=arrived)
        if arrived == 2:
            bad = event("bad", userId=NASTY, event=NASTY, receivedAt="=cmd()")
            archive.day(str(TODAY)).file("zz", *[event("nasty", event=NASTY, userId="secret"), bad])
        drained(lake.settings, dagster_run_id=f"dagster-{arrived}")
    return lake


@pytest.fixture(scope="module")
def client(lake: Lake) -> Iterator[Client]:
    with serving(Console(EventLake(lake), Access(), dagster="http://dagster.example")) as client:
        yield client


@pytest.fixture(scope="module")
def run(client: Client) -> str:
    return str(client.get("/history.json").json["runs"][0]["run_id"])


def paths(run: str) -> list[str]:
    filled = {"{run}": run, "{database}": "web_shop", "{table}": "page", "{column}": "message_id"}
    return [re.sub(r"{\w+}", lambda m: filled[m[0]], path) for page in PAGES for path in page.paths]


def test_every_page_and_twin_answers_safely(client: Client, run: str) -> None:
    for path in paths(run):
        answer = client.get(path)
        assert answer.status == 200, (path, answer.text)
        assert "script-src 'self'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        if path.endswith(".json"):
            assert answer.json
            continue
        inline = re.findall(r"<script(?![^>]*\bsrc=)|\sstyle=|\son\w+=|<style", answer.text)
        assert inline == [], path
        hosts = set(re.findall(r'(?:href|src|action)="(https?://[^/"]+)', answer.text))
        assert hosts <= {"http://dagster.example"}, path


def test_pages_say_what_the_api_says(client: Client, lake: Lake, run: str) -> None:
    my = EventLake(lake)
    reports = list(my.reports())
    shown = client.get("/history.json").json["runs"]
    assert [one["run_id"] for one in shown] == [one.run_id for one in reports]
    assert [one["rows"] for one in shown] == [one.source.row_count for one in reports]
    rows = sum(table.size().rows for table in my.tables("web_shop"))
    assert client.get("/overview.json").json["rows"] == rows
    assert sum(one["rows"] or 0 for one in client.get("/tables.json").json["tables"]) == rows
    (trend,) = client.get("/health.json").json["sources"]
    assert sum(trend["rows_by_day"].values()) == rows
    page = client.get("/tables/web_shop/page.json").json
    assert (
        page["rows"] == my.table("web_shop.page").size().rows == sum(page["rows_by_day"].values())
    )
    assert {one["name"]: one["fill"] for one in page["columns"]}["message_id"] == 1
    found = client.get(f"/history/{run}.json").json
    assert sum(one["rows"] for one in found["tables"]) == found["line"]["rows"]
    assert client.get("/history/dagster-2.json").json["run_id"] == run
    assert (
        f"http://dagster.example/runs/{found['dagster_run_id']}"
        in client.get(f"/history/{run}").text
    )


def test_filters_of_the_history(client: Client) -> None:
    assert client.get("/history.json?kind=replay").json["found"] == 0
    assert client.get("/history.json?status=finished&days=7").json["found"] == 2
    assert "No such run" in client.get("/history?status=failed").text


def test_an_event_tells_its_story(client: Client, run: str) -> None:
    (story,) = client.get("/find.json?q=nasty").json["stories"]
    assert [one["status"] for one in story["occurrences"]] == ["succeeded"]
    assert story["rows"][0]["run_id"] == run
    assert "is in no table" in client.get("/find?q=nowhere").text


def test_names_full_of_html_are_text(client: Client, run: str) -> None:
    table = client.get("/tables.json?q=script").json["tables"][0]["name"].replace(".", "/")
    for path in (
        "/tables",
        f"/tables/{table}",
        f"/records/{run}?id=bad",
        f"/records/{run}?text=alert",
    ):
        text = client.get(path).text
        assert NASTY not in text
        assert "<script>alert" not in text
        assert "alert" in text, path
    q = client.get("/find?q=%3Cscript%3Ealert(1)%3C/script%3E").text
    assert "<script>alert" not in q
    assert "&lt;script&gt;alert(1)" in q


def test_pages_of_records_are_linked_to_the_last(client: Client, run: str) -> None:
    total = sum(client.get(f"/records/{run}.json").json["log"]["counts"].values())
    path, seen = f"/records/{run}.json", list[tuple[str, int]]()
    while path:
        page = client.get(path).json
        seen += [(one["raw_file"], one["raw_line"]) for one in page["records"]]
        path = f"/records/{run}.json?after={page['after']}" if page["after"] else ""
    assert len(seen) == len(set(seen)) == total
    rejected = client.get(f"/records/{run}.json?status=rejected").json
    assert {one["status"] for one in rejected["records"]} == {"rejected"}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/history?days=8", 400),
        ("/history?page=0", 400),
        ("/history?page=1e9", 400),
        ("/history?page=99999999999999", 400),
        ("/history?status=%3Cb%3E", 400),
        ("/history?source=nobody", 404),
        ("/health?days=-1", 400),
        ("/records/latest?after=1", 400),
        ("/records/latest?after=-1--1", 400),
        ("/records/latest?after=a-b", 400),
        ("/records/latest?status=lost", 400),
        ("/records/latest?download=exe", 400),
        ("/records/latest?download=csv&sample=0", 400),
        ("/records/nobody", 422),
        ("/records/..%2F..%2Fetc", 404),
        ("/records/.hidden", 422),
        ("/history/nobody", 422),
        (f"/find?q={'x' * 501}", 400),
        ("/find?q=a%00b", 400),
        ("/tables/web_shop/nobody", 422),
        ("/tables/..%2F..%2F/passwd", 404),
        ("/tables/../page", 422),
        ("/tables/web_shop/..", 422),
        ("/tables?database=..", 400),
        ("/replay?table=nobody", 400),
        ("/replay?job=nobody", 422),
        ("/static/../app.py", 404),
        ("/static/..%2Fapp.py", 404),
        ("/nowhere", 404),
    ],
)
def test_what_no_page_would_ask_is_refused(client: Client, path: str, status: int) -> None:
    answer = client.get(path)
    assert answer.status == status, answer.text
    assert "Traceback" not in answer.text
    assert "content-security-policy" in answer.headers


def form_of(answer: Answer) -> str:
    return re.findall(r'name="csrf" value="(\w+)"', answer.text)[0]


def test_forms_of_other_sites_are_refused(client: Client) -> None:
    csrf = form_of(client.get("/sql"))
    assert client.post("/sql", {"q": "SELECT 1", "csrf": csrf}).status == 200
    for wrong in ("", "0" * 64, csrf[:-1]):
        assert client.post("/sql", {"q": "SELECT 1", "csrf": wrong}).status == 403
    own = {"q": "SELECT 1", "csrf": csrf}
    assert client.post("/sql", own, Origin="https://evil.example").status == 403
    assert client.post("/sql", own, Host="evil.example").status == 403
    assert client.get("/", Host="evil.example").status == 403
    assert client.post("/sql", own | {"q": "x" * 120_000}).status == 413
    assert client.post("/sql", own | {"q": "x" * 30_000}).status == 400
    assert client.post("/", own).status == 405
    assert client.get("/sql.json?q=SELECT+1").json["ran"] is False


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_text('lake.yaml')",
        "COPY (SELECT 1) TO '/tmp/out.csv'",
        "ATTACH '/tmp/x.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "PRAGMA database_list",
        "CREATE TABLE t AS SELECT 1",
        "DELETE FROM web_shop.page",
        "SELECT 1; DROP TABLE web_shop.page",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '/tmp/out.csv'",
        "SELECT",
    ],
)
def test_sql_only_reads_tables(client: Client, sql: str) -> None:
    csrf = form_of(client.get("/sql"))
    answer = client.post("/sql.json", {"q": sql, "csrf": csrf})
    assert (answer.status, answer.json["ran"], answer.json["rows"]) == (200, False, [])
    assert answer.json["error"]
    assert client.post("/sql", {"q": sql, "csrf": csrf, "download": "csv"}).status == 422


def test_sql_shows_an_answer_and_says_that_there_is_more(client: Client) -> None:
    csrf = form_of(client.get("/sql"))
    found = client.post("/sql", {"q": "SELECT '<b>' AS a, 1.50 AS n", "csrf": csrf}).text
    assert "&lt;b&gt;" in found
    assert "1.50" in found
    many = client.post("/sql.json", {"q": "FROM range(5000)", "csrf": csrf}).json
    assert (len(many["rows"]), many["more"]) == (1_000, True)
    file = client.post("/sql", {"q": "FROM range(5000)", "csrf": csrf, "download": "parquet"})
    assert pq.read_table(io.BytesIO(file.body)).num_rows == 5_000


def test_downloads_have_all_records_and_no_formulas(
    client: Client, run: str, caplog: pytest.LogCaptureFixture
) -> None:
    total = sum(client.get(f"/records/{run}.json").json["log"]["counts"].values())
    with caplog.at_level(logging.INFO, "datalake.console.audit"):
        files = {
            kind: client.get(f"/records/{run}?download={kind}")
            for kind in ("csv", "jsonl", "parquet")
        }
    assert pc_csv.read_csv(io.BytesIO(files["csv"].body), parse_options=_lines()).num_rows == total
    assert len(files["jsonl"].body.splitlines()) == total
    assert pq.read_table(io.BytesIO(files["parquet"].body)).num_rows == total
    assert (
        files["csv"].headers["content-disposition"] == f'attachment; filename="records-{run}.csv"'
    )
    assert not re.search(rb'(^|,)"[=+@-]', files["csv"].body, re.MULTILINE)
    sample = client.get(f"/records/{run}?download=jsonl&sample=7").body.splitlines()
    assert len(sample) == 7
    lines = [json.loads(record.message) for record in caplog.records]
    assert [(one["action"], one["user"], one["format"]) for one in lines] == [
        ("download", "local", kind) for kind in files
    ]


def _lines() -> pc_csv.ParseOptions:
    return pc_csv.ParseOptions(newlines_in_values=True)


def test_payloads_of_suppressed_people_are_never_shown(tmp_path: Path) -> None:
    lake = lake_in(tmp_path, WEB_SHOP)
    archive = _archive(tmp_path)
    lines = [
        event("mine", event="Seen", userId="hidden", properties={"note": "private"}),
        event("mine", event="Seen", userId="hidden", properties={"note": "private"}),
        event("other", event="Seen", userId="open", properties={"note": "public"}),
    ]
    archive.day(str(TODAY)).file("a", *lines)
    drained(lake.settings)
    with serving(Console(EventLake(lake), Access())) as client:
        where = ("/records/latest", "/records/latest?id=mine", "/records/latest?text=private")
        table = "/tables/web_shop/track_seen"
        texts = [client.get(path).text for path in (*where, table)]
        assert any("private" in unescape(text) for text in texts)
        now = datetime.now(UTC)
        change(lake.storage, lambda e: e.with_ids(["hidden"], IdKind.USER, WHOLE_LAKE, now), now)
        for path in (*where[:2], table):
            assert "private" not in client.get(path).text, path
        assert client.get("/records/latest.json?text=private").json["records"] == []
        for kind in ("csv", "jsonl", "parquet"):
            assert b"private" not in client.get(f"/records/latest?download={kind}").body
        assert b"private" not in client.get("/records/latest?id=mine&download=jsonl").body
        assert "public" in client.get(table).text
        asked = {"q": "SELECT * FROM web_shop.track_seen", "csrf": form_of(client.get("/sql"))}
        (shown,) = client.post("/sql.json", asked).json["rows"]
        assert "public" in shown
        for kind in ("csv", "jsonl", "parquet"):
            body = client.post("/sql", asked | {"download": kind}).body
            assert b"private" not in body and b"public" in body
        raw = {"q": "SELECT record_payload FROM __segment_datalake.sync_records"}
        answer = client.post("/sql.json", asked | raw).json
        assert {one for (one,) in answer["rows"]} == {None}, answer["error"]
        records = client.get("/tables/__segment_datalake/sync_records")
        assert records.status == 200
        assert "private" not in records.text
        hidden = {"q": """SELECT * FROM track_seen, "__scan_web_shop.track_seen" """}
        assert "track_seen" in client.post("/sql.json", asked | hidden).json["error"]
        assert (
            EventLake(lake)
            .sql("SELECT note FROM (SELECT properties_note AS note FROM track_seen) ORDER BY 1")
            .num_rows
            == 2
        )


def test_other_addresses_need_a_token_or_a_proxy() -> None:
    for environ in ({}, {OPERATORS_VARIABLE: "anna"}):
        with pytest.raises(UsageError, match="open to everybody"):
            Access.of("0.0.0.0", environ)
    with pytest.raises(UsageError, match="has 5 characters"):
        Access.of("127.0.0.1", {TOKEN_VARIABLE: "short"})
    assert Access.of("0.0.0.0", TOKENS).tokens
    assert Access.of("0.0.0.0", {USER_HEADER_VARIABLE: "X-User"}).user_header


def test_a_token_gives_a_role(lake: Lake) -> None:
    with serving(Console(EventLake(lake), Access.of("0.0.0.0", TOKENS))) as client:
        assert client.get("/overview.json").status == 401
        assert client.get("/").headers["location"] == "/login"
        assert client.post("/login", {"token": "wrong"}).status == 403
        for token, sql in ((OPERATOR, 200), (VIEWER, 403)):
            bearer = {"Authorization": f"Bearer {token}"}
            assert client.get("/overview.json", **bearer).status == 200
            assert (
                client.get("/sql", **bearer).status == client.get("/replay", **bearer).status == sql
            )
            assert client.post("/sql.json", {"q": "SELECT 1"}, **bearer).status == sql
            entered = client.post("/login", {"token": token})
            cookie = entered.headers["set-cookie"]
            assert token not in cookie
            assert "HttpOnly" in cookie
            assert "SameSite=strict" in cookie
            own = {"Cookie": cookie.split(";")[0]}
            assert client.get("/sql", **own).status == sql
            assert client.post("/sql", {"q": "SELECT 1"}, **own).status == 403  # without the form's
        assert client.get("/", Cookie="datalake_console=0").headers["location"] == "/login"


@pytest.mark.parametrize(
    ("proxies", "name", "overview", "sql"),
    [
        ("127.0.0.1", "anna", 200, 200),
        ("127.0.0.1", "ben", 200, 403),
        ("127.0.0.1", "", 401, 401),
        ("10.0.0.1", "anna", 401, 401),
    ],
)
def test_a_proxy_names_the_user(
    lake: Lake, proxies: str, name: str, overview: int, sql: int
) -> None:
    environ = {
        USER_HEADER_VARIABLE: "X-User",
        PROXIES_VARIABLE: proxies,
        OPERATORS_VARIABLE: "anna",
    }
    with serving(
        Console(EventLake(lake), Access.of("0.0.0.0", environ)), **{"X-User": name}
    ) as client:
        assert client.get("/").status == overview
        assert client.get("/sql").status == sql


def test_a_dry_run_is_started_watched_and_shown(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    go = threading.Event()
    started: list[list[str]] = []
    names = ("rows_in", "row_count", "duplicates", "rejected", "suppressed", "skipped")
    printed = json.dumps([{**dict.fromkeys(names, 3), "tables": []}])
    popen = subprocess.Popen

    def fake(command: list[str], **options: Any) -> Any:
        started.append(command[3:])
        script = "import sys; sys.stdin.read(); print(sys.argv[1]); sys.stderr.write('step 1')"
        waiting: Any = popen(
            [sys.executable, "-c", script, printed], **options | {"stdin": subprocess.PIPE}
        )
        threading.Thread(target=lambda: (go.wait(), waiting.stdin.close()), daemon=True).start()
        return waiting

    monkeypatch.setattr(subprocess, "Popen", fake)
    csrf = form_of(client.get("/replay"))
    days = {"from": "2026-10-01", "to": "2026-10-02"}
    form = {"csrf": csrf, "source": "web_shop", "table": ["page", "group"], **days}
    assert client.post("/replay", form | {"to": "2026-10-01"}).status == 422
    with caplog.at_level(logging.INFO, "datalake.console.audit"):
        answer = client.post("/replay", form | {"action": "dry-run"})
    assert json.loads(caplog.records[0].message)["action"] == "dry run"
    words = "replay --source web_shop --from 2026-10-01 --to 2026-10-02 --table page --table group"
    assert started == [["--config", "lake.yaml", *words.split(), "--dry-run", "--json"]]
    where = answer.headers["location"]
    assert 'data-live="3"' in client.get(where).text
    assert client.post("/replay", form).status == 422  # one at a time
    go.set()
    (job,) = client.console.replays.jobs.values()
    assert job.process.wait(60) == 0
    text = client.get(where).text
    assert "What it would change" in text
    assert "step 1" in text
    assert "data-live" not in text


def test_a_lake_that_only_fails_says_why_and_what_to_do(tmp_path: Path) -> None:
    lake = lake_in(tmp_path, {"id": "S1", "slug": "shop", "fail_above_rejected_percent": 0})
    Archive(tmp_path / "data/segment-logs/S1").day(str(TODAY)).file(
        "a", *map(event, "0123456789" * 10), "{"
    )
    for _ in range(2):
        with pytest.raises(LakeError, match="1 of 101 rows were rejected"):
            drained(lake.settings)
    with serving(Console(EventLake(lake), Access())) as client:
        (source,) = client.get("/overview.json").json["sources"]
        assert source["level"] == "failing"
        assert "1 of 101 rows were rejected" in " ".join(source["problems"])
        runs = client.get("/history.json").json["runs"]
        assert [one["status"] for one in runs] == ["failed", "failed"]
        assert client.get("/health.json").json["sources"][0]["synced_by_day"][str(TODAY)] == {
            "runs": 2, "failed": 2, "rows_in": 0, "rows": 0, "duplicates": 0, "rejected": 0,
            "rescued": 0,
        }  # fmt: skip
        page = unescape(client.get(f"/history/{runs[0]['run_id']}").text)
        assert "Correct the files or `raw`" in page
        assert "What became of" not in page
        for path in ("/", "/health", "/tables", "/records", "/replay"):
            assert client.get(path).status == 200


def test_health_of_the_past_has_the_syncs_of_today(tmp_path: Path) -> None:
    lake = lake_in(tmp_path, WEB_SHOP)
    day = str(TODAY - timedelta(days=50))
    _archive(tmp_path).day(day).file("a", event("a", day, event="Seen"), "{")
    drained(lake.settings)
    with serving(Console(EventLake(lake), Access())) as client:
        found = client.get("/health.json").json
        (source,) = found["sources"]
        assert (found["until"], found["is_past"]) == (day, True)
        assert source["rows_by_day"][day] == 1
        assert source["synced_by_day"][str(TODAY)]["rejected"] == 1
        assert source["total"]["rejected"] == 1


def test_a_lake_before_its_first_sync_and_one_whose_sync_is_under_way(tmp_path: Path) -> None:
    lake = lake_in(tmp_path, WEB_SHOP)
    with serving(Console(EventLake(lake), Access())) as client:
        for page in PAGES:
            if "{" not in page.path:
                answer = client.get(page.path)
                assert answer.status == 200, (page.path, answer.text)
        assert "needs attention" in client.get("/").text.lower()
        _archive(tmp_path).day(str(TODAY)).file("a", event("a"))
        source = lake.settings.sources[0]
        facts = RunFacts.of(lake.settings, source, "1790899200000000000", datetime.now(UTC))
        with opened_run(lake.storage, facts, 0):
            assert client.get("/history.json").json["running"][0]["alive"] is True
            assert "writes its report when it ends" in client.get(f"/history/{facts.run_id}").text
