"""Reading a line: what is an event, how its numbers come out, and why the rest is refused."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlake.rules.events import Reason, Reject
from eventlake.rules.parse import parse_line
from eventlake.settings.models import Limits

LIMITS = Limits()


def reject(line: bytes, limits: Limits = LIMITS) -> Reject:
    with pytest.raises(Reject) as caught:
        parse_line(line, limits)
    return caught.value


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (b"{}", {}),
        (b' \t{"a": 1}\r', {"a": 1}),
        (b'{"a":9007199254740993,"b":-9223372036854775809}', {"a": 2**53 + 1, "b": -(2**63) - 1}),
        (b'{"a":true,"b":null,"c":[],"d":{}}', {"a": True, "b": None, "c": [], "d": {}}),
        (b'{"a":1,"b":2,"a":3}', {"a": 3, "b": 2}),
        (b'{"a":"\\u0000","\\u0000":"\x7f"}', {"a": "\0", "\0": "\x7f"}),
        (b'{"a":"\\ud83d\\ude00\xf0\x9f\x98\x80"}', {"a": "😀😀"}),
        ('{"a":"\u2028\ufeff"}'.encode(), {"a": "\u2028\ufeff"}),
        # Looks like a minus zero, and is a text.
        (b'{"a":"-0, -0]","b":0}', {"a": "-0, -0]", "b": 0}),
    ],
)
def test_a_json_object_is_an_event(line: bytes, event: dict[str, Any]) -> None:
    assert parse_line(line, LIMITS) == event
    assert list(parse_line(line, LIMITS)) == list(event)


@pytest.mark.parametrize(
    "text", ["1e3", "1E+3", "0.10", "1.0", "-0", "-0.0", "0e0", "1e400", "1e-400", "7" * 5000]
)
@pytest.mark.parametrize("end", ["", " ", "\t", "\r"])
def test_numbers_keep_the_text_they_were_written_with(text: str, end: str) -> None:
    line = f'{{"a":{text}{end},"b":[{text}{end}],"c":{{"d":[[{text}]]}},"e":{text}{end}}}'.encode()
    event = parse_line(line, LIMITS)
    number = msgspec.Raw(text)
    assert event == {"a": number, "b": [number], "c": {"d": [[number]]}, "e": number}
    assert msgspec.json.encode(event["c"]["d"]) == f"[[{text}]]".encode()


@pytest.mark.parametrize(
    ("line", "reason", "words"),
    [
        (b"", Reason.NOT_JSON, "expecting value at character 1"),
        (b"hello", Reason.NOT_JSON, "expecting value at character 1"),
        (b'{"a":1', Reason.NOT_JSON, "at character 7"),
        (b'{"a":"x', Reason.NOT_JSON, "unterminated string at character 6"),
        (b'{"a":1} x', Reason.NOT_JSON, "something follows the end of the value at character 9"),
        (b'{"a":1}{"b":2}', Reason.NOT_JSON, "something follows the end of the value"),
        (b'{"a":1,}', Reason.NOT_JSON, "at character 8"),
        (b"{'a':1}", Reason.NOT_JSON, "at character 2"),
        (b'{"a":01}', Reason.NOT_JSON, "at character 7"),
        (b'{"a":NaN}', Reason.NOT_JSON, "NaN is no JSON value"),
        (b'{"a":[-Infinity]}', Reason.NOT_JSON, "-Infinity is no JSON value"),
        (b'{"a":"\x01"}', Reason.NOT_JSON, "invalid control character at character 7"),
        (b'{"a":"\t"}', Reason.NOT_JSON, "invalid control character at character 7"),
        (b'{"a":"\\x"}', Reason.NOT_JSON, "invalid \\escape at character 7"),
        (b'\xef\xbb\xbf{"a":1}', Reason.NOT_JSON, "BOM"),
        (b'{"a":1}\x00', Reason.NOT_JSON, "at character 8"),
        (b'{"a":' + b"7" * 5000 + b',"b":NaN}', Reason.NOT_JSON, "NaN is no JSON value"),
        (b'{"a":' + b"7" * 5000 + b',"b":"\\ud800"}', Reason.LONE_SURROGATE, "no character"),
        (b'{"a":-0,"b":}', Reason.NOT_JSON, "expecting value at character 13"),
        (b'{"a":"\xff"}', Reason.BAD_UTF8, "byte 7 is 0xff"),
        (b'{"\xc0\x80":1}', Reason.BAD_UTF8, "byte 3 is 0xc0"),
        (b'{"a":"\xed\xa0\x80"}', Reason.BAD_UTF8, "byte 7 is 0xed"),
        (b'{"a":"\xe4', Reason.BAD_UTF8, "byte 7 is 0xe4"),
        (b'{"a":"\\ud800"}', Reason.LONE_SURROGATE, "half of a surrogate pair"),
        (b'{"a":"\\ude00\\ud83d"}', Reason.LONE_SURROGATE, "half of a surrogate pair"),
        (b'{"\\ud800x":1}', Reason.LONE_SURROGATE, "half of a surrogate pair"),
        (b'{"a":[["\\udc00"]]}', Reason.LONE_SURROGATE, "half of a surrogate pair"),
        (b'{"a":"\\ud800","a":1}', Reason.LONE_SURROGATE, "half of a surrogate pair"),
        (b"[1,2]", Reason.NOT_AN_OBJECT, "it is [1,2]"),
        (b'"text"', Reason.NOT_AN_OBJECT, 'it is "text"'),
        (b"1.5", Reason.NOT_AN_OBJECT, "it is 1.5"),
        (b"null", Reason.NOT_AN_OBJECT, "it is null"),
        (b"[" + b"1," * 99 + b"1]", Reason.NOT_AN_OBJECT, "1,1…"),
    ],
)
def test_anything_else_is_refused_with_its_reason(line: bytes, reason: Reason, words: str) -> None:
    refused = reject(line)
    assert refused.reason is reason
    assert str(refused).startswith(reason.sentence)
    assert words in str(refused)


def test_a_line_may_be_as_long_as_the_limit() -> None:
    line = b'{"a":"%s"}' % (b"x" * (LIMITS.line_bytes - 8))
    assert len(parse_line(line, LIMITS)["a"]) == LIMITS.line_bytes - 8
    refused = reject(line + b" ")
    assert refused.reason is Reason.TOO_LONG
    assert "1048576 bytes" in str(refused)
    assert parse_line(b'{"a":[%s[]],"b":"{{{{{"}' % (b"[]," * 99), Limits(depth=3))  # not deep


@pytest.mark.parametrize(("opening", "closing"), [(b'{"a":', b"}"), (b"[", b"]")])
def test_an_event_may_be_as_deep_as_the_limit(opening: bytes, closing: bytes) -> None:
    limits = Limits(depth=5)
    assert parse_line(b'{"a":%s1%s}' % (opening * 4, closing * 4), limits)
    refused = reject(b'{"a":%s1%s}' % (opening * 5, closing * 5), limits)
    assert refused.reason is Reason.TOO_DEEP
    assert "5 levels" in str(refused)


@pytest.mark.parametrize("extra", [b"", b"-0,", b"7" * 5000 + b","])
@pytest.mark.parametrize("levels", [600, 100_000])
def test_bottomless_lines_are_refused_like_deep_ones(levels: int, extra: bytes) -> None:
    line = b'{"a":[%s%s%s]}' % (extra, b"[" * levels, b"]" * levels)
    assert reject(line).reason is Reason.TOO_DEEP


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(-(10**40), 10**40) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), JSON, max_size=4), st.booleans())
def test_what_python_writes_is_read_back(event: dict[str, Any], ascii_only: bool) -> None:
    line = json.dumps(event, ensure_ascii=ascii_only).encode()
    assert parse_line(line, Limits(depth=500)) == event


def strictly_json(line: bytes) -> bool:
    """Whether a line is JSON, by Python's own parser made strict: the judge of the next test."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        pairs = json.loads(line.decode(), parse_constant=refuse, object_pairs_hook=list)
        json.dumps(pairs, ensure_ascii=False).encode()
    except ValueError:
        return False
    return True


LINES = st.sampled_from(
    [
        b'{"a":"\\ud83d\\ude00","b":[-0,1.50,{"c":null}]}',
        b'{"type":"track","n":-12.5e-3,"t":"\xc3\xa9\\u00e9\\n","f":false}',
        b'{"a":{"b":{"a":{}}},"a":[[],[0]],"":" "}',
    ]
)
EDITS = st.lists(
    st.tuples(
        st.integers(0, 60),
        st.integers(0, 3),
        st.sampled_from([b"", b'"', b"\\", b"0", b"-", b".", b"e", b",", b"}", b"]", b"\\ud800",
                         b"\x00", b"\xff", b"\xed\xa0\x80", b" ", b"NaN", b"[", b"{", b"1", b":"]),
    ),
    max_size=3,
)  # fmt: skip


@given(LINES, EDITS)
@example(b'{"a":"\\ud800","a":1}', [])
@example(b'{"a":-}', [])
def test_exactly_what_is_json_is_accepted(line: bytes, edits: list[tuple[int, int, bytes]]) -> None:
    for at, cut, put in edits:
        line = line[:at] + put + line[at + cut :]
    try:
        accepted = isinstance(parse_line(line, LIMITS), dict)
    except Reject as refused:
        accepted = refused.reason is Reason.NOT_AN_OBJECT
    assert accepted == strictly_json(line)


def test_every_reason_has_its_sentence() -> None:
    sentences = [reason.sentence for reason in Reason]
    assert len(set(sentences)) == len(sentences)
    assert all(Reject(reason).args[0].endswith(".") for reason in Reason)
