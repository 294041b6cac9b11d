"""The daemon of Python workers gets ready while Java starts, instead of after it.

Getting ready takes a second, and Java starts the daemon only when the first task is there. So this
process starts one that will be the daemon, and the one that Java starts hands over to it what it
was given: its environment, and its ends of the pipes to Java.
"""

import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

PLACE = "DATALAKE_WORKERS_AHEAD"
"""Names the socket at which the process waits."""
_STANDARD = (0, 1, 2)
_DONE = b"."


def start_ahead() -> subprocess.Popen[bytes]:
    """Start the process that will be the daemon; it ends if this one does before it is needed."""
    place = Path(tempfile.mkdtemp(prefix="datalake-workers-")) / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen(1)
        os.environ[PLACE] = str(place)
        return subprocess.Popen(
            [sys.executable, "-m", __name__, str(listener.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            env=os.environ | {"PYTHONHASHSEED": "0"},  # as Spark has it
            process_group=0,  # Ctrl-C is not for it
        )


def hand_over() -> bool:
    """Let the process that waits be the daemon, and stay until it ends; False if there is none."""
    with socket.socket(socket.AF_UNIX) as other, suppress(OSError, KeyError):
        other.connect(os.environ[PLACE])
        given = {"environment": dict(os.environ), "arguments": sys.argv, "folder": os.getcwd()}
        socket.send_fds(other, [json.dumps(given).encode() + b"\n"], _STANDARD)
        if other.recv(1) == _DONE:
            with suppress(OSError):
                other.recv(1)
            return True
    return False


def main(listener: socket.socket) -> None:
    """Get ready, wait for what Java gives to its daemon, and be that daemon."""
    from pyspark import daemon

    from spark_resources.workers.preload import get_ready

    get_ready()
    ready, _, _ = select.select([listener, sys.stdin], [], [])
    shutil.rmtree(Path(os.environ[PLACE]).parent, ignore_errors=True)
    if listener not in ready:
        return  # whoever started this has ended
    other, _ = listener.accept()
    _take_over(other)
    daemon.manager()


def _take_over(other: socket.socket) -> None:
    message: bytes = b""
    given: list[int] = []
    while not message.endswith(b"\n"):
        data, pipes, _, _ = socket.recv_fds(other, 1 << 16, len(_STANDARD))
        message, given = message + data, given + pipes
    told = json.loads(message)
    for pipe, standard in zip(given, _STANDARD, strict=True):
        os.dup2(pipe, standard)
        os.close(pipe)
    os.environ.clear()
    os.environ.update(told["environment"])
    sys.argv[:] = told["arguments"]
    os.chdir(told["folder"])
    other.sendall(_DONE)
    other.detach()  # stays open until this process ends, which tells the one that waits


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
