"""What only S3 has: conditions, parts, pages, lost answers, keys that expire."""

import pickle
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse

from eventlake.aws.access import AwsAccess, forget_sessions
from eventlake.rules.errors import InsufficientPermissions, InvalidSetting, ServiceTrouble
from eventlake.storage import s3 as s3_module
from eventlake.storage.s3 import S3Storage
from tests.support.aws.enforced import Body
from tests.support.servers.aws import AwsServer

FIVE_MB = 5 << 20


def uploads(aws: AwsServer) -> list[str]:
    page = aws.client("s3").list_multipart_uploads(Bucket="lake-bucket")
    return [upload["Key"] for upload in page.get("Uploads", ())]


def begin(aws: AwsServer, *keys: str) -> None:
    for key in keys:
        aws.client("s3").create_multipart_upload(Bucket="lake-bucket", Key=key)


@contextmanager
def answers(storage: S3Storage, operation: str, *statuses: int, done: bool) -> Iterator[list[int]]:
    """The first requests of a kind are answered like this, whether they were carried out or not."""
    left, asked = list(statuses), []
    events = storage.client.meta.events

    def answer(request: Any, **_: Any) -> AWSResponse | None:
        asked.append(1)
        if not left:
            return None
        if done:
            storage.client._endpoint.http_session.send(request)
        return AWSResponse(request.url, left.pop(0), {}, Body(b""))

    events.register(f"before-send.s3.{operation}", answer)
    try:
        yield asked
    finally:
        events.unregister(f"before-send.s3.{operation}", answer)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0.0)


@pytest.mark.parametrize("status", [500, 503])
def test_trouble_of_the_service_is_retried(s3: S3Storage, status: int) -> None:
    with answers(s3, "PutObject", status, status, status, done=False) as asked:
        s3.write("a", b"x")
    assert len(asked) == 4
    assert s3.read("a") == b"x"
    trouble = pytest.raises(ServiceTrouble, match="did not answer as it should")
    with answers(s3, "GetObject", *[status] * 20, done=False) as asked, trouble:
        s3.read("a")
    assert len(asked) == 8


@pytest.mark.parametrize("first", [True, False])
def test_a_file_is_created_though_the_answer_was_lost(s3: S3Storage, first: bool) -> None:
    if not first:
        s3.write("m/1", b"another's")
    with answers(s3, "PutObject", 500, done=True):
        assert s3.create("m/1", b"mine") is first
    assert s3.read("m/1") == (b"mine" if first else b"another's")


def test_a_change_whose_answer_was_lost_is_made_once(s3: S3Storage) -> None:
    s3.write("n", b"0")
    with answers(s3, "PutObject", 500, done=True):
        s3.update("n", lambda old: (old or b"") + b"1")
    assert s3.read("n") == b"01"


def test_a_file_that_vanishes_while_it_is_changed_is_created_again(s3: S3Storage) -> None:
    s3.write("n", b"0")
    seen: list[bytes | None] = []

    def change(old: bytes | None) -> bytes:
        if not seen:
            s3.delete("n")
        seen.append(old)
        return b"new"

    s3.update("n", change)
    assert (seen, s3.read("n")) == ([b"0", None], b"new")


def test_a_bucket_that_is_not_there_is_a_wrong_setting(aws: AwsServer) -> None:
    nowhere = S3Storage("s3://no-such-bucket/lake")
    for ask in (nowhere.read, nowhere.exists, nowhere.files, nowhere.folders, nowhere.open_input):
        with pytest.raises((InvalidSetting, FileNotFoundError), match="no-such-bucket"):
            ask("a")
    with pytest.raises(InvalidSetting, match="no-such-bucket"):
        nowhere.write("a", b"")


def test_a_bucket_elsewhere_is_found(aws: AwsServer) -> None:
    aws.bucket("far-away", region="ap-southeast-2")
    far = S3Storage("s3://far-away", AwsAccess("eu-west-1"))
    far.write("a", b"x")
    with far.open_input("a") as file:
        assert file.read() == b"x"
    assert far.fs.region == "ap-southeast-2"


class TestUploads:
    """Files that are written in parts."""

    @pytest.fixture(autouse=True)
    def _small_parts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(s3_module, "PART_BYTES", FIVE_MB)

    def test_one_that_fails_is_aborted(self, aws: AwsServer, s3: S3Storage) -> None:
        with pytest.raises(RuntimeError), s3.open_output("o/x") as out:
            out.write(bytes(2 * FIVE_MB + 1))
            raise RuntimeError("the task is killed")
        assert (uploads(aws), s3.files("")) == ([], [])

    @pytest.mark.parametrize("operation", ["UploadPart", "CompleteMultipartUpload"])
    def test_a_lost_part_fails_it(self, aws: AwsServer, s3: S3Storage, operation: str) -> None:
        trouble = pytest.raises(ServiceTrouble)
        with answers(s3, operation, *[500] * 50, done=False), trouble, s3.open_output("o/x") as out:
            out.write(bytes(2 * FIVE_MB + 1))
        assert (uploads(aws), s3.files("")) == ([], [])

    def test_those_of_a_dead_run_or_folder_are_aborted(self, aws: AwsServer, s3: S3Storage) -> None:
        begin(aws, "lake/d/v/R1/x", "lake/d/ids/R1-0.arrow", "lake/d/v/R2/x", "other/R1")
        begin(aws, "lake/stage/R1/x", "lake/stage/R1/y", "lake/stage/R10/x")
        s3.discard_partial_writes("d", "R1")
        s3.delete_folder("stage/R1")
        assert sorted(uploads(aws)) == ["lake/d/v/R2/x", "lake/stage/R10/x", "other/R1"]

    def test_an_abort_that_is_refused_is_raised(self, aws: AwsServer, s3: S3Storage) -> None:
        begin(aws, "lake/d/versions/R1/x")
        refused = pytest.raises(InsufficientPermissions)
        with answers(s3, "AbortMultipartUpload", 403, done=False), refused:
            s3.discard_partial_writes("d", "R1")
        assert uploads(aws) == ["lake/d/versions/R1/x"]

    def test_another_process_may_abort_first(
        self, aws: AwsServer, s3: S3Storage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        begin(aws, "lake/d/versions/R1/x", "lake/d/versions/R1/y")
        listing = s3.client.list_multipart_uploads

        def then_aborted(**asked: Any) -> Any:
            page = listing(**asked)
            for found in page["Uploads"]:
                s3.client.abort_multipart_upload(
                    Bucket="lake-bucket", Key=found["Key"], UploadId=found["UploadId"]
                )
            return page

        monkeypatch.setattr(s3.client, "list_multipart_uploads", then_aborted)
        s3.discard_partial_writes("d", "R1")
        monkeypatch.undo()
        assert uploads(aws) == []

    @pytest.mark.parametrize(
        ("size", "parts"), [(5 * 1024**3, 0), (5 * 1024**3 + 1, 11), (6 * 1024**3, 12)]
    )
    def test_s3_copies_5_gib_in_one_request(self, s3: S3Storage, size: int, parts: int) -> None:
        """Such files are too large for a test, so the answers of S3 are made up."""
        bodies: dict[str, dict[str, Any]] = {
            "HeadObject": {"ContentLength": size, "ETag": "e"},
            "CreateMultipartUpload": {"UploadId": "u"},
            "UploadPartCopy": {"CopyPartResult": {"ETag": "e"}},
        }
        asked: list[str] = []
        copied: list[tuple[int, int]] = []

        def answer(model: Any, params: Any, **_: Any) -> tuple[AWSResponse, dict[str, Any]]:
            asked.append(model.name)
            if model.name == "UploadPartCopy":
                first, last = params["headers"]["x-amz-copy-source-range"][6:].split("-")
                copied.append((int(first), int(last)))
            return AWSResponse("", 200, {}, Body(b"")), bodies.get(model.name, {})

        s3.client.meta.events.register("before-call.s3", answer)
        s3.copy("a", "b")
        assert asked.count("CopyObject") == (parts == 0)
        assert len(copied) == parts
        assert sum(last + 1 - first for first, last in copied) == (size if parts else 0)

    def test_a_large_file_is_copied_in_parts(
        self, aws: AwsServer, s3: S3Storage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(s3_module, "LARGEST", 2 * FIVE_MB)
        monkeypatch.setattr(s3_module, "COPY_PART_BYTES", FIVE_MB)
        data = bytes(range(256)) * (FIVE_MB // 64)
        s3.write("a", data)
        with answers(s3, "UploadPartCopy", done=False) as parts:
            s3.move_into_place("a", "b")
        assert (len(parts), s3.read("b") == data, uploads(aws)) == (4, True, [])


class TestListing:
    """A thousand keys a request, and several requests at once."""

    DAYS, FILES = 12, 400

    @pytest.fixture
    def filled(self, aws: AwsServer, s3: S3Storage) -> S3Storage:
        keys = [f"raw/{day}/{n:03}.gz" for day in range(self.DAYS) for n in range(self.FILES)]
        keys += ["raw/readme", "raw/00", "raw/zz/1", "raw-other/1"]
        aws.fill("lake-bucket", [f"lake/{key}" for key in keys])
        return s3

    def test_many_files_are_listed_by_few_parallel_requests(
        self, filled: S3Storage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        requests: list[dict[str, Any]] = []
        five_at_once, parts = threading.Event(), count(1)
        listing = filled.client.list_objects_v2

        def counted(**asked: Any) -> Any:
            requests.append(asked)
            if "StartAfter" in asked and "Delimiter" not in asked:
                if next(parts) == 5:
                    five_at_once.set()
                assert five_at_once.wait(30)
            return listing(**asked)

        monkeypatch.setattr(filled.client, "list_objects_v2", counted)
        files = filled.files("raw")
        expected = [f"raw/{d}/{n:03}.gz" for d in range(self.DAYS) for n in range(self.FILES)]
        assert [f.path for f in files] == sorted([*expected, "raw/readme", "raw/00", "raw/zz/1"])
        assert five_at_once.is_set()
        assert len(requests) <= len(files) // 1000 + self.DAYS + 4

    def test_pages_are_read_as_botocore_does(self, aws: AwsServer, s3: S3Storage) -> None:
        odd = ["a b+c%41&<>.gz", "ü/日本.gz", "'quoted\"", "plain"]
        for name in odd:
            s3.write(f"odd/{name}", name.encode())
        plain = AwsAccess("us-west-2").client("s3")  # one that reads its pages itself
        page = plain.list_objects_v2(Bucket="lake-bucket", Prefix="lake/odd/")
        expected = [
            (o["Key"], o["Size"], o["ETag"].strip('"'), o["LastModified"].timestamp())
            for o in page["Contents"]
        ]
        found = [(f"lake/{f.path}", f.size, f.stamp, f.modified_ns / 1e9) for f in s3.files("odd")]
        assert found == expected
        assert len(found) == len(odd)

    def test_pages_are_read_by_our_own_reader(self, s3: S3Storage) -> None:
        s3.write("a", b"x")
        assert [file.path for file in s3.files("")] == ["a"]
        page = s3.client.list_objects_v2(Bucket="lake-bucket", Prefix="lake/a")
        [found] = page["Contents"]
        assert isinstance(found["LastModified"], str)  # botocore makes a datetime of it

    def test_an_error_that_is_not_xml_is_left_to_botocore(self, s3: S3Storage) -> None:
        s3.write("a", b"x")
        with answers(s3, "ListObjectsV2", 503, 500, done=False) as asked:
            assert [file.path for file in s3.files("")] == ["a"]
        assert len(asked) == 3

    def test_folders_go_over_many_pages_and_many_are_deleted(self, filled: S3Storage) -> None:
        assert len(filled.folders("raw")) == self.DAYS + 1
        filled.delete_folder("raw")
        assert [file.path for file in filled.files("")] == ["raw-other/1"]

    def test_refused_deletions_fail(self, s3: S3Storage, monkeypatch: pytest.MonkeyPatch) -> None:
        refused = {"Key": "lake/a/1", "Code": "AccessDenied", "Message": "Access Denied"}
        monkeypatch.setattr(s3.client, "delete_objects", lambda **_: {"Errors": [refused]})
        s3.write("a/1", b"")
        with pytest.raises(Exception, match="does not have permissions to delete S3 objects"):
            s3.delete_folder("a")


class TestKeys:
    """Of an assumed role, which are good for an hour."""

    @pytest.fixture
    def assumed(self, aws: AwsServer) -> S3Storage:
        access = AwsAccess(role_arn=aws.role(), external_id="P3IMS7SBDH")
        return S3Storage(f"s3://{aws.bucket()}", access)

    def test_arrow_gets_new_ones_before_they_expire(
        self, assumed: S3Storage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assumed.write("a", b"x")
        first = assumed.fs
        assert assumed.fs is first
        later = datetime.now(UTC) + timedelta(minutes=51)
        monkeypatch.setattr("botocore.credentials._local_now", lambda: later)
        assumed.access.session().get_credentials()._time_fetcher = lambda: later
        assert assumed.fs is not first
        assert assumed.fs != first
        with assumed.open_input("a") as file:
            assert file.read() == b"x"

    def test_they_do_not_travel(self, assumed: S3Storage) -> None:
        assumed.write("a", b"x")
        assert assumed.open_input("a").read() == b"x"
        keys = assumed.access.credentials()
        travelled = pickle.dumps(assumed)
        for secret in (keys.access_key, keys.secret_key, keys.token):
            assert secret.encode() not in travelled
            assert secret not in repr(assumed)
        forget_sessions()  # as in another process
        assert pickle.loads(travelled).read("a") == b"x"
        assert pickle.loads(travelled).access.credentials() != keys


class _Forbidding:
    def open_input_file(self, *_: Any, **__: Any) -> None:
        raise OSError("When reading: AWS Error ACCESS_DENIED during HeadObject operation: No body.")

    open_input_stream = open_input_file


def test_a_refused_open_may_be_missing(s3: S3Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    s3.write("there", b"x")
    monkeypatch.setattr(S3Storage, "fs", _Forbidding())
    for opener in (s3.open_input, s3.open_stream):
        with pytest.raises(FileNotFoundError, match="s3://lake-bucket/lake/missing"):
            opener("missing")
        with pytest.raises(InsufficientPermissions, match="s3:GetObject"):
            opener("there")


@pytest.mark.parametrize(("path", "there"), [("there", True), ("missing", False), ("the", False)])
def test_a_refused_read_may_be_missing(s3: S3Storage, path: str, there: bool) -> None:
    """S3 refuses missing files to users that may list only some folders."""
    s3.write("there", b"x")
    refused = pytest.raises(InsufficientPermissions) if there else nullcontext()
    with answers(s3, "GetObject", 403, done=False), refused:
        assert s3.read(path) is None
    with answers(s3, "HeadObject", 403, done=False), refused:
        assert not s3.exists(path)
