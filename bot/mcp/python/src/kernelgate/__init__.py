"""Ask a kernelgate server whether a kernel is right and faster.

    import kernelgate
    result = kernelgate.check("softmax", files={"softmax.c": source})
    result.verdict   # "PASS", "DEFER" or "ERROR"

The server is ``kernelgate mcp --listen``; its address and a token come from the arguments or from
KERNELGATE_URL and KERNELGATE_TOKEN. Only the standard library is used.
"""

from __future__ import annotations

import base64
import html
import http.client
import json
import os
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional

from .record import record

__all__ = ["Client", "Failure", "Refused", "Result", "Shape", "Speedup", "check", "record"]


class Refused(Exception):
    """The server does not accept what was asked. The text says what to change."""


class _AskAgain(Exception):
    """The server cannot answer now, for example because its leader has changed."""


@dataclass(frozen=True)
class Speedup:
    """baseline/candidate - 1, as a share: 0.1 is 10 % faster."""

    mid: float
    low: Optional[float] = None
    high: Optional[float] = None


@dataclass(frozen=True)
class Shape:
    """The times on one problem size."""

    shape: str
    role: str
    status: str
    dims: str = ""
    goal: str = ""
    speedup: Optional[Speedup] = None
    baseline_us: Optional[float] = None
    candidate_us: Optional[float] = None
    roofline_share: Optional[float] = None


@dataclass(frozen=True)
class Failure:
    """Failures of one class at one shape."""

    gate: str
    kind: str
    count: int
    shape: str = ""
    first_bad: Optional[Dict[str, Any]] = None


@dataclass(frozen=True)
class Result:
    """A verdict.

    ``sums`` is all launches of a step of the program, where the policy asks about them. ``raw`` is the JSON as
    the server sent it, with keys that this client does not know.
    """

    kernel: str
    verdict: str
    reason: str
    summary: str
    text: str = field(repr=False)
    sums: List[Shape] = field(repr=False)
    shapes: List[Shape] = field(repr=False)
    failures: List[Failure] = field(repr=False)
    to_pass: List[str] = field(repr=False)
    raw: Dict[str, Any] = field(repr=False)

    @property
    def passed(self) -> bool:
        return self.verdict == "PASS"

    def _repr_markdown_(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(s)) + "</tr>" for s in self.sums + self.shapes
        )
        head = "".join(f"<th>{h}</th>" for h in ("shape", "role", "status", "baseline µs", "candidate µs", "speedup"))
        table = f"<table><tr>{head}</tr>{rows}</table>" if rows else ""
        steps = "".join(f"<li>{html.escape(step)}</li>" for step in self.to_pass)
        reason = f" ({html.escape(self.reason)})" if self.reason else ""
        return f"<p><b>{html.escape(self.verdict)}</b>{reason}: {html.escape(self.summary)}</p>{table}" + (
            f"<ul>{steps}</ul>" if steps else ""
        )


def _cells(s: Shape) -> List[str]:
    def number(x: Optional[float], form: str) -> str:
        return "" if x is None else form.format(x)

    speedup = ""
    if s.speedup is not None:
        speedup = f"{s.speedup.mid:+.1%}"
        if s.speedup.low is not None and s.speedup.high is not None:
            speedup += f" [{s.speedup.low:+.1%}, {s.speedup.high:+.1%}]"
    return [s.shape, s.role, s.status, number(s.baseline_us, "{:.4g}"), number(s.candidate_us, "{:.4g}"), speedup]


class Client:
    """A connection to one server with one token.

    A call without an answer is repeated for ``patience`` seconds. Nothing is submitted twice by that.
    """

    def __init__(
        self, url: Optional[str] = None, token: Optional[str] = None, timeout: float = 120, patience: float = 60
    ) -> None:
        self.url = url or os.environ.get("KERNELGATE_URL", "")
        self._token = token or os.environ.get("KERNELGATE_TOKEN", "")
        self._timeout = timeout
        self._patience = patience
        if not self.url or not self._token:
            raise Refused("the address and the token of the server are missing: set KERNELGATE_URL and KERNELGATE_TOKEN")

    def check(
        self,
        kernel: str,
        files: Optional[Mapping[str, str]] = None,
        *,
        tarball: Optional[bytes] = None,
        ref: str = "",
        intent: str = "probe",
        idempotency_key: str = "",
    ) -> Result:
        """Submit an implementation, wait for the end, and return the result.

        Send one of files, tarball (the bytes of a .tar or .tar.gz of files below the kernel's folder) and ref.
        """
        asked: Dict[str, Any] = {"kernel": kernel, "intent": intent}
        if files:
            asked["files"] = dict(files)
        if tarball is not None:
            asked["tarball"] = base64.b64encode(tarball).decode()
        if ref:
            asked["ref"] = ref
        if idempotency_key:
            asked["idempotency_key"] = idempotency_key
        status = self.call("submit", asked)
        while status["state"] != "done":
            status = self.call("status", {"handle": status["handle"], "wait_seconds": 50})
        return _result(*self._call("verdict", {"handle": status["handle"]}))

    def describe(self, kernel: str = "") -> Dict[str, Any]:
        """What is asked of a kernel; without one, the list of kernels."""
        return self.call("describe", {"kernel": kernel} if kernel else {})

    def history(self, kernel: str = "") -> List[Dict[str, Any]]:
        """What was submitted with this token, the newest first."""
        tried: List[Dict[str, Any]] = self.call("history", {"kernel": kernel} if kernel else {})["tried"]
        return tried

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Dict[str, Any]:
        """Call one of the seven tools and return its structured content."""
        return self._call(tool, arguments)[0]

    def _call(self, tool: str, arguments: Mapping[str, Any]) -> "tuple[Dict[str, Any], str]":
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": dict(arguments)}}
        until, pause = time.monotonic() + self._patience, 0.1
        while True:
            try:
                return self._once(request)
            except _AskAgain as again:
                if time.monotonic() + pause > until:
                    raise Refused(str(again)) from None
            time.sleep(pause)
            pause = min(2 * pause, 2)

    def _once(self, request: Mapping[str, Any]) -> "tuple[Dict[str, Any], str]":
        answer = self._post(request)
        if "error" in answer:
            raise Refused(answer["error"].get("message", "the server refuses the call"))
        content = answer["result"]
        text = "\n".join(part.get("text", "") for part in content.get("content", []))
        if content.get("isError"):
            raise _AskAgain(text) if content.get("_meta", {}).get("kernelgate/ask-again") else Refused(text)
        return content["structuredContent"], text

    def _post(self, message: Mapping[str, Any]) -> Dict[str, Any]:
        request = urllib.request.Request(
            self.url,
            data=json.dumps(message).encode(),
            headers={
                "Authorization": "Bearer " + self._token,
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": "2025-06-18",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=self._timeout) as response:
                if response.headers.get_content_type() == "application/json":
                    return dict(json.loads(response.read()))
                for line in response:
                    if line.startswith(b"data:"):
                        event = json.loads(line[len(b"data:") :])
                        if event.get("id") == message["id"]:
                            return dict(event)
        except urllib.error.HTTPError as error:
            text = f"{error.code}: {error.read().decode(errors='replace').strip()}"
            raise _AskAgain(text) if error.code == 503 else Refused(text) from None
        except (urllib.error.URLError, http.client.HTTPException, ConnectionError) as error:
            raise _AskAgain(f"no answer from {self.url}: {error}") from None
        raise _AskAgain("the server ended the connection without an answer")


def _known(kind: Any, data: Mapping[str, Any]) -> Dict[str, Any]:
    """Leave out keys of later versions."""
    return {key: value for key, value in data.items() if key in kind.__dataclass_fields__}


def _row(data: Mapping[str, Any]) -> Shape:
    values = _known(Shape, data)
    if "speedup" in values:
        values["speedup"] = Speedup(**_known(Speedup, values["speedup"]))
    return Shape(**values)


_SUMS = {"weighted": "all launches of a step", "weighted_warm": "all launches of a warm step"}


def _result(raw: Dict[str, Any], text: str) -> Result:
    sums = [{"status": "", **raw[key], "shape": label} for key, label in _SUMS.items() if key in raw]
    return Result(
        kernel=raw["kernel"],
        verdict=raw["outcome"],
        reason=raw.get("reason", ""),
        summary=raw["summary"],
        text=text,
        sums=[_row(s) for s in sums if s["role"] != "info"],
        shapes=[_row(s) for s in raw.get("shapes", [])],
        failures=[Failure(**_known(Failure, f)) for f in raw.get("failures", [])],
        to_pass=raw.get("to_pass", []),
        raw=raw,
    )


def check(kernel: str, files: Optional[Mapping[str, str]] = None, **more: Any) -> Result:
    """Client().check with the address and the token of the environment."""
    return Client().check(kernel, files, **more)
