"""Who listens at `spark://…`, found out before Spark waits for it."""

import socket
from collections.abc import Iterator

import pytest

from eventlake.rules.errors import InvalidSetting, ServiceTrouble
from spark_resources.engines.cluster.master import Master, masters, own_address_to, reach
from tests.support.ports import reserved_port


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def unused() -> Iterator[int]:
    with reserved_port() as port:
        yield port


def test_there_may_be_several_masters() -> None:
    assert masters("spark://one:7077,other:7078") == [Master("one", 7077), Master("other", 7078)]


def test_the_first_that_answers_is_taken_and_tells_our_own_address(
    listening: int, unused: int
) -> None:
    reached = reach(f"spark://127.0.0.1:{unused},127.0.0.1:{listening}")
    assert reached.master.port == listening
    assert reached.own_address == "127.0.0.1"


def test_nobody_there_is_told_at_once_with_what_to_do(unused: int) -> None:
    engine = f"spark://127.0.0.1:{unused}"
    with pytest.raises(ServiceTrouble) as caught:
        reach(engine)
    told = str(caught.value)
    assert told.startswith(
        f"Spark did not answer as it should: there is no Spark master at {engine}"
    )
    assert "Connection refused" in told
    assert "correct `engine`" in told


def test_a_name_that_nobody_knows_is_a_wrong_setting() -> None:
    with pytest.raises(InvalidSetting, match=r"no-such-host\.invalid has no address"):
        reach("spark://no-such-host.invalid:7077")


def test_executors_are_told_the_address_that_leads_to_them() -> None:
    assert own_address_to("127.0.0.1", "?") == "127.0.0.1"
    assert own_address_to("no-such-host.invalid", "10.0.0.9") == "10.0.0.9"
