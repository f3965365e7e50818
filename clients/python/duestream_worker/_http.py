"""One POST of JSON over a connection that each thread keeps."""

from __future__ import annotations

import json
import threading
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Dict, Optional
from urllib.parse import urlsplit


class Refused(Exception):
    """A daemon refuses the call, and would refuse it again: its status, its code, and what is allowed."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(f"{status} {code}: {detail}")
        self.status, self.code = status, code


class Unanswered(Exception):
    """Nobody answered, or not now: the same call is to be sent again."""

    retry_after = 0.0


class _Kept(threading.local):
    def __init__(self) -> None:
        self.by_url: Dict[str, HTTPConnection] = {}


_kept = _Kept()


def post(url: str, body: Dict[str, Any], token: Optional[str], timeout: float) -> Dict[str, Any]:
    """Raises `Refused`, `Unanswered`."""
    parts = urlsplit(url)
    make = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = _kept.by_url.setdefault(parts.scheme + parts.netloc, make(parts.netloc))
    connection.timeout = timeout
    if connection.sock is not None:
        connection.sock.settimeout(timeout)
    headers = {"Content-Type": "application/json", **({} if token is None else {"Authorization": f"Bearer {token}"})}
    try:
        connection.request("POST", parts.path, json.dumps(body).encode(), headers)
        response = connection.getresponse()
        text = response.read()
        answer = json.loads(text) if text else {}
    except (OSError, HTTPException, ValueError) as lost:
        connection.close()  # The next request opens it again.
        raise Unanswered(str(lost) or type(lost).__name__) from lost
    if response.status == 200 and isinstance(answer, dict):
        return answer
    if response.status == 429 or response.status >= 500:
        unanswered = Unanswered(str(response.status))
        after = response.getheader("Retry-After", "0")
        unanswered.retry_after = min(5.0, float(after)) if after.isdigit() else 0.0
        raise unanswered
    raise Refused(response.status, str(answer.get("code", "")), str(answer.get("detail", "")))
