"""What only Azure has: conditions, blocks, pages, directories, lost answers, secrets."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from eventlake.azure import sessions
from eventlake.azure.access import AzureAccess, forget_sessions
from eventlake.rules.errors import InsufficientPermissions, InvalidSetting, ServiceTrouble
from eventlake.settings.azure import SignIn
from eventlake.storage import adls_listing
from eventlake.storage.adls import AdlsStorage
from tests.support.servers.azure_answers import Reply, answering
from tests.support.servers.azurite import ACCOUNT, HOST, KEY, Azurite, sas_of

MB = 1 << 20
Patch = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: Patch) -> None:
    monkeypatch.setattr(sessions.Retries, "get_backoff_time", lambda *_: 0.0)


@pytest.mark.parametrize("status", [500, 503])
def test_trouble_of_the_service_is_retried(
    adls: AdlsStorage, monkeypatch: Patch, status: int
) -> None:
    busy = Reply(status, "ServerBusy", "The server is busy.")
    with answering(monkeypatch, "PUT", "lake/a", *[busy] * 3) as asked:
        adls.write("a", b"x")
    assert len(asked) == 4
    assert adls.read("a") == b"x"
    trouble = pytest.raises(ServiceTrouble, match=r"did not answer as it should.*ServerBusy")
    with answering(monkeypatch, "GET", "lake/a", *[busy] * 20) as asked, trouble:
        adls.read("a")
    assert len(asked) == 8


@pytest.mark.parametrize("first", [True, False])
def test_a_file_is_created_though_the_answer_was_lost(
    adls: AdlsStorage, monkeypatch: Patch, first: bool
) -> None:
    if not first:
        adls.write("m/1", b"another's")
    with answering(monkeypatch, "PUT", "lake/m/1", Reply(500, done=True)):
        assert adls.create("m/1", b"mine") is first
    assert adls.read("m/1") == (b"mine" if first else b"another's")


def test_a_change_whose_answer_was_lost_is_made_once(adls: AdlsStorage, monkeypatch: Patch) -> None:
    adls.write("n", b"0")
    with answering(monkeypatch, "PUT", "lake/n", Reply(500, done=True)):
        adls.update("n", lambda old: (old or b"") + b"1")
    assert adls.read("n") == b"01"


def test_a_file_that_vanishes_while_it_is_changed_is_made_anew(adls: AdlsStorage) -> None:
    adls.write("n", b"0")
    seen: list[bytes | None] = []

    def change(old: bytes | None) -> bytes:
        if not seen:
            adls.delete("n")
        seen.append(old)
        return b"new"

    adls.update("n", change)
    assert (seen, adls.read("n")) == ([b"0", None], b"new")


def test_a_container_that_is_not_there_is_a_wrong_setting(azurite: Azurite) -> None:
    nowhere = AdlsStorage(f"abfss://no-such-container@{ACCOUNT}/lake")
    for ask in (nowhere.read, nowhere.exists, nowhere.files, nowhere.folders, nowhere.open_input):
        with pytest.raises((InvalidSetting, FileNotFoundError), match="no-such-container"):
            ask("a")
    with pytest.raises(InvalidSetting, match=r"`storage`.* has no container no-such-container"):
        nowhere.write("a", b"")


def test_one_place_has_one_uri() -> None:
    short, full = AdlsStorage(f"abfss://lake@{ACCOUNT}/a/"), AdlsStorage(f"abfss://lake@{HOST}/a")
    assert short == full
    assert short.full("b") == f"abfss://lake@{HOST}/a/b"


class TestBlocks:
    """Files that are written in blocks."""

    @pytest.fixture(autouse=True)
    def _small_blocks(self, monkeypatch: Patch) -> None:
        monkeypatch.setattr(sessions, "PART_BYTES", 5 * MB)

    def test_they_are_committed_together(self, adls: AdlsStorage, monkeypatch: Patch) -> None:
        data = bytes(range(256)) * (12 * MB // 256)
        with answering(monkeypatch, "PUT", "comp=block&") as blocks, adls.open_output("o/x") as out:
            out.write(data)
        assert len(blocks) == 3
        assert adls.read("o/x") == data

    @pytest.mark.parametrize("part", ["comp=block&", "comp=blocklist"])
    def test_a_lost_block_fails_the_file(
        self, adls: AdlsStorage, monkeypatch: Patch, part: str
    ) -> None:
        lost, trouble = [Reply(500)] * 50, pytest.raises(ServiceTrouble)
        with answering(monkeypatch, "PUT", part, *lost), trouble, adls.open_output("o/x") as out:
            out.write(bytes(12 * MB))
        assert adls.files("") == []


class TestCopies:
    """Large files may be copied in the background."""

    STARTED = Reply(202, headers={"x-ms-copy-id": "1", "x-ms-copy-status": "pending"}, done=True)

    def copying(self, status: str) -> Reply:
        headers = {"x-ms-copy-id": "1", "x-ms-copy-status": status, "Content-Length": "1"}
        return Reply(200, headers=headers)

    def test_a_copy_is_awaited(self, adls: AdlsStorage, monkeypatch: Patch) -> None:
        adls.write("a", b"x")
        replies = [self.copying("pending"), self.copying("pending"), self.copying("success")]
        with (
            answering(monkeypatch, "PUT", "lake/b", self.STARTED),
            answering(monkeypatch, "HEAD", "lake/b", *replies) as asked,
        ):
            adls.copy("a", "b")
        assert len(asked) == 3
        assert adls.read("b") == b"x"

    def test_another_run_may_be_copying(self, adls: AdlsStorage, monkeypatch: Patch) -> None:
        adls.write("a", b"x")
        exists = Reply(409, "BlobAlreadyExists")
        replies = [self.copying("pending"), self.copying("success")]
        with (
            answering(monkeypatch, "PUT", "lake/b", exists),
            answering(monkeypatch, "HEAD", "lake/b", *replies) as asked,
        ):
            adls.move_into_place("a", "b")
        assert len(asked) == 2

    def test_a_failed_copy_is_an_error(self, adls: AdlsStorage, monkeypatch: Patch) -> None:
        adls.write("a", b"x")
        with (
            answering(monkeypatch, "PUT", "lake/b", self.STARTED),
            answering(monkeypatch, "HEAD", "lake/b", self.copying("failed")),
            pytest.raises(ServiceTrouble, match="ended with status failed"),
        ):
            adls.copy("a", "b")


class TestListing:
    def test_pages_are_put_together(self, adls: AdlsStorage, monkeypatch: Patch) -> None:
        monkeypatch.setattr(adls_listing, "PAGE", 7)
        names = [f"raw/{day}/{n:02}.gz" for day in range(3) for n in range(9)]
        adls.each(lambda name: adls.write(name, b""), names)
        with answering(monkeypatch, "GET", "comp=list") as asked:
            assert [file.path for file in adls.files("raw")] == names
        assert len(asked) == 4
        assert adls.folders("raw") == ["0", "1", "2"]

    def test_pages_are_read_as_azures_client_does(
        self, azurite: Azurite, adls: AdlsStorage
    ) -> None:
        odd = ["a b+c%41&<>.gz", "ü/日本.gz", "'quoted\"", "plain"]
        for name in odd:
            adls.write(f"odd/{name}", name.encode())
        found = azurite.client(adls.container).list_blobs(name_starts_with="lake/odd/")
        expected = [
            (one.name, one.size, one.etag.strip('"'), one.last_modified.timestamp())
            for one in found
        ]
        listed = adls_listing.Listing(adls.client).deep("lake/odd/")
        assert [(o.path, o.size, o.stamp, o.modified_ns / 1e9) for o in listed] == expected
        assert sorted(name for name, *_ in expected) == sorted(f"lake/odd/{name}" for name in odd)

    def test_names_that_xml_cannot_hold_are_decoded(self) -> None:
        page = adls_listing.read_page(
            b"<EnumerationResults><Blobs><Blob><Name Encoded='true'>a%2Fb%EF%BF%BE.gz</Name>"
            b"<Properties><Etag>0x1</Etag><Content-Length>5</Content-Length></Properties></Blob>"
            b"</Blobs></EnumerationResults>"
        )
        assert [(file.path, file.size) for file in page.files] == [("a/b\ufffe.gz", 5)]


MODIFIED = "<Last-Modified>Thu, 19 Nov 2026 03:55:24 GMT</Last-Modified><Etag>0x8DE1</Etag>"


def listing(*names: str, prefixes: tuple[str, ...] = ()) -> Reply:
    """A page of an account with hierarchical namespace; names ending in a slash are directories."""
    blobs = [
        f"<Blob><Name>{name.rstrip('/')}</Name><Properties>{MODIFIED}"
        f"<ResourceType>{'directory' if name.endswith('/') else 'file'}</ResourceType>"
        f"<Content-Length>{0 if name.endswith('/') else 3}</Content-Length>"
        "<BlobType>BlockBlob</BlobType></Properties></Blob>"
        for name in names
    ]
    blobs += [
        f"<BlobPrefix><Name>{name}</Name><Properties>{MODIFIED}"
        "<ResourceType>directory</ResourceType><Content-Length>0</Content-Length></Properties>"
        "</BlobPrefix>"
        for name in prefixes
    ]
    body = (
        "<?xml version='1.0' encoding='utf-8'?><EnumerationResults ServiceEndpoint='https://x/' "
        f"ContainerName='lake'><Blobs>{''.join(blobs)}</Blobs><NextMarker /></EnumerationResults>"
    )
    return Reply(200, body=body.encode())


DIRECTORY = Reply(200, headers={"x-ms-meta-hdi_isfolder": "true", "Content-Length": "0"})
GONE = Reply(202)


class TestHierarchicalNamespace:
    """Azurite has none, so these are answers of Azure."""

    def test_directories_are_no_files(self, adls: AdlsStorage, monkeypatch: Patch) -> None:
        page = listing("lake/a/", "lake/a/b/", "lake/a/b/x", "lake/a/y")
        with answering(monkeypatch, "GET", "comp=list", page):
            assert [file.path for file in adls.files("a")] == ["a/b/x", "a/y"]
        with answering(monkeypatch, "GET", "comp=list", listing(prefixes=("lake/a/b/",))):
            assert adls.folders("a") == ["b"]
        both = listing("lake/a/y", prefixes=("lake/a/b/",))
        with answering(monkeypatch, "GET", "comp=list", both):
            assert [file.path for file in adls.files("a", recursive=False)] == ["a/y"]

    def test_an_empty_directory_exists(self, adls: AdlsStorage, monkeypatch: Patch) -> None:
        with (
            answering(monkeypatch, "HEAD", "lake/a", DIRECTORY),
            answering(monkeypatch, "GET", "comp=list", listing("lake/a/")),
        ):
            assert adls.exists("a")

    def test_a_folder_goes_with_its_directories(
        self, adls: AdlsStorage, monkeypatch: Patch
    ) -> None:
        page = listing("lake/a/b/", "lake/a/b/c/", "lake/a/b/c/x", "lake/a/y")
        with (
            answering(monkeypatch, "GET", "comp=list", page),
            answering(monkeypatch, "HEAD", "lake/a", DIRECTORY),
            answering(monkeypatch, "DELETE", "lake/a", *[GONE] * 5) as deleted,
        ):
            adls.delete_folder("a")
        gone = [url.partition("/lake/")[2] for url in deleted]
        assert sorted(gone[:2]) == ["a/b/c/x", "a/y"]
        assert gone[2:] == ["a/b/c", "a/b", "a"]

    def test_empty_directories_are_deleted_and_others_stay(
        self, adls: AdlsStorage, monkeypatch: Patch
    ) -> None:
        page = listing("lake/a/", "lake/a/b/", "lake/a/c/", "lake/a/c/x", "lake/a/d/")
        full = Reply(409, "DirectoryIsNotEmpty")  # another process has just written into it
        with (
            answering(monkeypatch, "GET", "comp=list", page),
            answering(monkeypatch, "DELETE", "lake/a", GONE, full, full) as deleted,
        ):
            adls.delete_empty_folders("")
        gone = [url.partition("/lake/")[2] for url in deleted]
        assert gone == ["a/b", "a/d", "a"]


SECRETS: list[tuple[SignIn, str, Callable[[str], str]]] = [
    (SignIn.ACCOUNT_KEY, "AZURE_STORAGE_KEY", lambda container: KEY),
    (
        SignIn.SAS,
        "AZURE_STORAGE_SAS_TOKEN",
        lambda container: sas_of(container, "racwdl"),
    ),
]


@pytest.mark.parametrize(("sign_in", "variable", "secret"), SECRETS)
def test_it_signs_in_with_a_secret_of_the_environment(
    azurite: Azurite,
    monkeypatch: Patch,
    sign_in: SignIn,
    variable: str,
    secret: Callable[[str], str],
) -> None:
    container = azurite.container()
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azurite.endpoint_only)
    storage = AdlsStorage(f"abfss://{container}@{ACCOUNT}/lake", AzureAccess(sign_in))
    forget_sessions()
    monkeypatch.setenv(variable, secret(container))
    storage.write("a", b"x")
    storage.copy("a", "b")
    assert [file.path for file in storage.files("")] == ["a", "b"]
    with storage.open_input("b") as file:
        assert file.read() == b"x"
    assert secret(container) not in f"{storage!r}{pickle.dumps(storage)!r}"
    monkeypatch.delenv(variable)
    forget_sessions()
    with pytest.raises(InvalidSetting, match=rf"`azure\.secret`.*variable {variable} is not set"):
        storage.read("a")


def test_a_sas_to_read_is_refused_by_name_of_the_permission(
    azurite: Azurite, monkeypatch: Patch
) -> None:
    container = azurite.container()
    storage = AdlsStorage(f"abfss://{container}@{ACCOUNT}/lake", AzureAccess(SignIn.SAS))
    storage_of_all = AdlsStorage(storage.uri)
    storage_of_all.write("a", b"x")
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azurite.endpoint_only)
    sas = sas_of(container, "rl")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", sas)
    forget_sessions()
    assert storage.read("a") == b"x"
    wanted = r"permissions racwdl \(cw for this request\)"
    for path, words in (("segment-stage/x", "upload staging data to"), ("x", "upload blobs to")):
        begins = rf"Eventlake does not have permissions to {words} container {container}.*{wanted}"
        with pytest.raises(InsufficientPermissions, match=begins) as refused:
            storage.write(path, b"x")
        assert "sig=" not in str(refused.value)
    with pytest.raises(InsufficientPermissions, match="delete blobs from container"):
        storage.delete("a")
    assert [file.path for file in storage.files("")] == ["a"]


def test_a_sas_does_not_show_in_errors_of_arrow(azurite: Azurite, monkeypatch: Patch) -> None:
    container = azurite.container()
    storage = AdlsStorage(f"abfss://{container}@{ACCOUNT}/lake", AzureAccess(SignIn.SAS))
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azurite.endpoint_only)
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", sas_of(container, "wl"))
    forget_sessions()
    storage.write("a", b"x")
    with pytest.raises(InsufficientPermissions, match="download blobs from") as refused:
        storage.open_input("a")
    assert "sig=" not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("secret", ["wrong", "expired"])
def test_a_wrong_secret_is_a_wrong_setting(
    azurite: Azurite, monkeypatch: Patch, secret: str
) -> None:
    container = azurite.container()
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azurite.endpoint_only)
    monkeypatch.setenv("AZURE_STORAGE_KEY", f"{'A' * 86}==")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", sas_of(container, "racwdl", hours=-1))
    sign_in = SignIn.ACCOUNT_KEY if secret == "wrong" else SignIn.SAS
    storage = AdlsStorage(f"abfss://{container}@{ACCOUNT}/lake", AzureAccess(sign_in))
    forget_sessions()
    for ask in (storage.read, storage.exists, storage.files, storage.open_input):
        with pytest.raises(InvalidSetting, match="Eventlake has invalid Azure credentials"):
            ask("a")


def test_a_process_that_is_forked_has_clients_of_its_own(
    adls: AdlsStorage, tmp_path: Path, monkeypatch: Patch
) -> None:
    adls.write("a", b"x")
    here = adls.client
    assert adls.client is here
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert adls.client is not here
    assert adls.read("a") == b"x"


def test_secrets_are_read_again_in_time(adls: AdlsStorage, monkeypatch: Patch) -> None:
    here = adls.client
    monkeypatch.setattr(sessions, "_RENEWED_SECONDS", -1.0)
    assert adls.client is not here
