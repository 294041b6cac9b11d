"""A file that is written to S3 in parts, whole or not at all."""

import io
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

PART_BYTES = 16 << 20
_AT_ONCE = 4


class S3Output(io.RawIOBase):
    """Goes up in parts while it is written, or at once where it is small.

    Nothing of it is there until `finish`. Arrow's own stream would do, but it always finishes:
    what failed half-way would look like a file.
    """

    def __init__(self, client: Any, **place: str) -> None:
        super().__init__()
        self._client, self._place = client, place
        self._pending = bytearray()
        self._upload = ""
        self._pool: ThreadPoolExecutor | None = None
        self._parts: list[Future[dict[str, Any]]] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self._pending += data
        while len(self._pending) >= PART_BYTES:
            self._send(bytes(self._pending[:PART_BYTES]))
            del self._pending[:PART_BYTES]
        return size

    def finish(self) -> None:
        """Put the file in place."""
        if not self._upload:
            self._client.put_object(**self._place, Body=bytes(self._pending))
            return
        if self._pending:
            self._send(bytes(self._pending))
        parts = [part.result() for part in self._parts]
        self._close_pool()
        self._client.complete_multipart_upload(
            **self._place, UploadId=self._upload, MultipartUpload={"Parts": parts}
        )

    def abort(self) -> None:
        """Leave nothing behind; what cannot be done now is done when the run is wound up."""
        self._close_pool()
        if self._upload:
            with suppress(Exception):  # the error that led here is the one to be told
                self._client.abort_multipart_upload(**self._place, UploadId=self._upload)

    def _send(self, data: bytes) -> None:
        if self._pool is None:
            self._upload = self._client.create_multipart_upload(**self._place)["UploadId"]
            self._pool = ThreadPoolExecutor(_AT_ONCE)
        if len(self._parts) >= _AT_ONCE:
            self._parts[-_AT_ONCE].result()  # so much is held in memory, and no more
        self._parts.append(self._pool.submit(self._sender(data, len(self._parts) + 1)))

    def _sender(self, data: bytes, number: int) -> Callable[[], dict[str, Any]]:
        def send() -> dict[str, Any]:
            sent = self._client.upload_part(
                **self._place, UploadId=self._upload, PartNumber=number, Body=data
            )
            return {"PartNumber": number, "ETag": sent["ETag"]}

        return send

    def _close_pool(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
