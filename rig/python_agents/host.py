"""Runs a user's agent class and serves its calls to the rig. Standard library alone: it is started by its path under
the user's own interpreter (Python 3.9 or later), which need not have the rig installed.

Messages are those of the rig socket (docs/bring-your-own-agent.md), each as a 4-byte big-endian length, one byte
(0 text, 1 binary) and the payload, over loopback TCP; the first one must be the token from RIG_AGENT_TOKEN.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import hmac
import importlib
import importlib.util
import inspect
import json
import os
import struct
import sys
import tempfile
import threading
import traceback
import types
import wave
from collections.abc import Callable
from typing import Any

LENGTH = struct.Struct("!IB")
TEXT, BINARY = 0, 1
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
VERSION = 1
KNOWN = {"text": True, "probe": True, "takes_setup": True}
"""Capabilities that a class may declare, with their defaults."""


class Turn:
    """One turn of the caller, as `respond` is given it."""

    def __init__(
        self, pcm: bytes, rate_hz: int, text: str | None, instructions: str, tools: list[dict[str, Any]]
    ) -> None:
        self.pcm = pcm
        """PCM16 little-endian mono; empty when the turn is text."""
        self.rate_hz = rate_hz
        self.text = text
        """The caller's words when the turn is text, else None."""
        self.instructions = instructions
        self.tools = tools
        """List of {"name", "description", "parameters"} (JSON Schema)."""


class UnusableError(Exception):
    """Why a class cannot be used; one line."""


def load(driver: str, folder: str) -> tuple[type, str | None]:
    """The class that `module:Class` or `file.py:Class` names, and its file."""
    place, _, name = driver.rpartition(":")
    if not place or not name.isidentifier():
        raise UnusableError(f"driver {driver!r}: write it as module:Class or file.py:Class")
    sys.path[0] = folder  # ours would hide the user's modules
    try:
        if place.endswith(".py"):
            path = os.path.join(folder, place)
            if not os.path.isfile(path):
                raise UnusableError(f"driver {driver!r}: there is no file {path}")
            spec = importlib.util.spec_from_file_location("rig_user_agent", path)
            if spec is None or spec.loader is None:
                raise UnusableError(f"driver {driver!r}: {path} is no Python file")
            module = importlib.util.module_from_spec(spec)
            sys.modules["rig_user_agent"] = module
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(place)
    except UnusableError:
        raise
    except BaseException as error:  # noqa: BLE001 - a user's module may raise anything, SystemExit too
        traceback.print_exc()
        raise UnusableError(f"driver {driver!r} cannot be imported: {shown(error)}") from None
    found = getattr(module, name, None)
    if found is None:
        raise UnusableError(f"driver {driver!r}: {place} has no {name}")
    if not inspect.isclass(found):
        raise UnusableError(f"driver {driver!r}: {name} is a {type(found).__name__}, not a class")
    return found, getattr(module, "__file__", None)


def shown(error: BaseException) -> str:
    """One line."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


def made(cls: type, arguments: dict[str, str]) -> Any:
    """One instance, VoxParity's drivers behind the same face."""
    agent = cls(**arguments)
    return Foreign(agent) if hasattr(getattr(agent, "capabilities", None), "family") else agent


def declared(cls: type, arguments: dict[str, str]) -> dict[str, bool]:
    """What the class declares. Raises UnusableError with every fault, a line each."""
    problems = []
    if inspect.isabstract(cls):
        left = ", ".join(sorted(getattr(cls, "__abstractmethods__", ())))
        problems.append(f"{cls.__name__} is abstract: {left} not written")
    elif not callable(getattr(cls, "respond", None)):
        problems.append(f"{cls.__name__} has no method respond(self, turn)")
    if problems:
        raise UnusableError("\n".join(problems))
    try:
        agent = made(cls, arguments)
    except BaseException as error:  # noqa: BLE001 - as above
        traceback.print_exc()
        given = ", ".join(arguments) or "no arguments"
        raise UnusableError(f"{cls.__name__} cannot be made with {given}: {shown(error)}") from None
    try:
        inspect.signature(agent.respond).bind(None)
    except TypeError:
        problems.append(f"{cls.__name__}.respond must take one argument, the turn")
    stated = getattr(agent, "capabilities", {})
    if not isinstance(stated, dict):
        problems.append(f"{cls.__name__}.capabilities must be a dict, not {type(stated).__name__}")
        stated = {}
    for name, value in stated.items():
        if name not in KNOWN:
            problems.append(f"{cls.__name__}.capabilities: unknown {name!r}; there are {', '.join(KNOWN)}")
        elif not isinstance(value, bool):
            problems.append(f"{cls.__name__}.capabilities: {name} must be True or False")
    if not problems and callable(getattr(agent, "preflight", None)):
        try:
            agent.preflight()
        except BaseException as error:  # noqa: BLE001 - as above
            traceback.print_exc()
            problems.append(f"{cls.__name__}.preflight: {shown(error)}")
    if problems:
        raise UnusableError("\n".join(problems))
    return {**KNOWN, **stated}


class Foreign:
    """A driver with `respond(ctx)`, `capabilities` and `preflight` as VoxParity has them."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        stated = driver.capabilities
        if not getattr(stated, "audio_in", True):
            raise ValueError("its capabilities say audio_in=False: it takes no audio")
        self.capabilities = {
            "text": bool(getattr(stated, "text_twin", True)),
            "probe": bool(getattr(stated, "perception_probe", True)),
        }

    def preflight(self) -> None:
        if callable(getattr(self.driver, "preflight", None)):
            self.driver.preflight()

    def respond(self, turn: Turn) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = None
            if turn.text is None:
                path = os.path.join(folder, "turn.wav")
                with wave.open(path, "wb") as file:
                    file.setnchannels(1)
                    file.setsampwidth(2)
                    file.setframerate(turn.rate_hz)
                    file.writeframes(turn.pcm)
            result = self.driver.respond(self.context(turn, path))
        calls = [
            {"name": call.tool, "arguments": dict(call.args or {})} for call in getattr(result, "tool_calls", ()) or ()
        ]
        return {"text": getattr(result, "text", "") or "", "calls": calls}

    @staticmethod
    def context(turn: Turn, path: str | None) -> Any:
        tools = [
            types.SimpleNamespace(
                name=tool["name"],
                description=tool["description"],
                parameters=tool["parameters"],
                params=[
                    types.SimpleNamespace(
                        name=name,
                        type=about.get("type"),
                        description=about.get("description", ""),
                        required=name in tool["parameters"].get("required", ()),
                        enum=about.get("enum"),
                    )
                    for name, about in tool["parameters"].get("properties", {}).items()
                ],
            )
            for tool in turn.tools
        ]
        return types.SimpleNamespace(
            system_prompt=turn.instructions, tools=tools, history=[], text_input=turn.text, audio_path=path, item=None,
            variant_id=None,
        )  # fmt: skip


class Call:
    """One session of the rig with one instance of the class."""

    def __init__(
        self, cls: type, arguments: dict[str, str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.cls, self.arguments = cls, arguments
        self.reader, self.writer = reader, writer
        self.agent: Any = None
        self.heard, self.rate_hz = bytearray(), 24000
        self.instructions = ""
        self.tools: list[dict[str, Any]] = []
        self.answering: asyncio.Future[None] | None = None
        self.calls = 0

    async def serve(self, token: str) -> None:
        try:
            kind, payload = await self.receive()
            if kind != TEXT or not hmac.compare_digest(payload, token.encode()):
                return
            while True:
                kind, payload = await self.receive()
                if kind == BINARY:
                    self.heard += payload
                elif await self.control(json.loads(payload)):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            if self.answering is not None:
                self.answering.cancel()
            self.writer.close()

    async def receive(self) -> tuple[int, bytes]:
        size, kind = LENGTH.unpack(await self.reader.readexactly(LENGTH.size))
        if size > MAX_MESSAGE_BYTES:
            raise ConnectionError("message too long")
        return kind, await self.reader.readexactly(size)

    def send(self, message: bytes | dict[str, Any]) -> None:
        payload, kind = (message, BINARY) if isinstance(message, bytes) else (json.dumps(message).encode(), TEXT)
        self.writer.write(LENGTH.pack(len(payload), kind) + payload)

    async def control(self, message: dict[str, Any]) -> bool:
        kind = message["type"]
        if kind == "session.setup":
            await self.setup(message)
        elif kind == "turn.start":
            self.heard.clear()
        elif kind == "turn.commit":
            self.answer("respond", Turn(bytes(self.heard), self.rate_hz, None, self.instructions, self.tools))
            self.heard.clear()
        elif kind == "turn.text":
            self.answer("respond", Turn(b"", self.rate_hz, message["text"], self.instructions, self.tools))
        elif kind == "tool.result":
            self.answer("tool_result", message["call_id"], message["output"])
        elif kind == "turn.cancel" and self.answering is not None:
            self.answering.cancel()
        return bool(kind == "session.close")

    async def setup(self, message: dict[str, Any]) -> None:
        self.instructions, self.tools = message["instructions"], message["tools"]
        self.rate_hz = message["audio"]["input_rate_hz"]
        try:
            self.agent = made(self.cls, self.arguments)
            if hasattr(self.agent, "setup"):
                await awaited(self.agent.setup, self.instructions, self.tools)
        except Exception as error:  # noqa: BLE001 - told to the rig, and kept in the log
            traceback.print_exc()
            self.send({"type": "error", "kind": "configuration", "code": "setup_failed", "message": shown(error)})
            return
        self.send({"type": "session.ready", "version": VERSION, "agent": self.cls.__name__})

    def answer(self, method: str, *arguments: Any) -> None:
        if self.answering is None or self.answering.done():
            self.answering = asyncio.ensure_future(self.give(method, *arguments))

    async def give(self, method: str, *arguments: Any) -> None:
        """One answer. What the class raises or returns wrongly is an error of the turn, never the host's end."""
        try:
            if method == "tool_result" and not hasattr(self.agent, method):
                reply = None
            else:
                reply = await awaited(getattr(self.agent, method), *arguments)
            for message in messages(reply, self.calls):
                self.calls += isinstance(message, dict) and message["type"] == "tool.call"
                self.send(message)
            self.send({"type": "turn.end"})
        except asyncio.CancelledError:
            self.send({"type": "turn.end", "reason": "cancelled"})
        except BadReplyError as error:
            self.send({"type": "error", "kind": "protocol", "code": "bad_reply", "message": str(error)})
        except Exception as error:  # noqa: BLE001 - as above
            traceback.print_exc()
            self.send({"type": "error", "kind": "transient", "code": "agent_raised", "message": shown(error)})


class BadReplyError(Exception):
    """A reply that is none."""


def messages(reply: Any, calls_before: int) -> list[bytes | dict[str, Any]]:
    """What a reply of `respond` is on the wire."""
    if reply is None:
        return []
    if isinstance(reply, str):
        reply = {"text": reply}
    if not isinstance(reply, dict):
        raise BadReplyError(f"respond returned a {type(reply).__name__}; return a str, a dict or None")
    unknown = set(reply) - {"text", "calls", "audio", "rate_hz", "transcript"}
    if unknown:
        raise BadReplyError(f"respond returned unknown keys: {', '.join(sorted(map(str, unknown)))}")
    found: list[bytes | dict[str, Any]] = []
    for number, call in enumerate(reply.get("calls") or (), start=calls_before):
        if not isinstance(call, dict) or not isinstance(call.get("name"), str):
            raise BadReplyError('a call must be {"name": str, "arguments": dict}')
        try:
            arguments = json.loads(json.dumps(call.get("arguments", {}), allow_nan=False))
        except (TypeError, ValueError) as error:
            raise BadReplyError(f"arguments of {call['name']} are no JSON: {error}") from None
        found.append({"type": "tool.call", "call_id": f"call-{number}", "name": call["name"], "arguments": arguments})
    audio = reply.get("audio")
    if audio:
        if not isinstance(audio, bytes) or len(audio) % 2:
            raise BadReplyError("audio must be bytes of PCM16 mono")
        if reply.get("rate_hz", 24000) != 24000:
            raise BadReplyError("audio must be at 24000 Hz")
        found.append(bytes(audio))
    for key, kind in (("transcript", "reply.transcript"), ("text", "reply.text")):
        if reply.get(key):
            if not isinstance(reply[key], str):
                raise BadReplyError(f"{key} must be a str, not {type(reply[key]).__name__}")
            found.append({"type": kind, "text": reply[key]})
    return found


async def awaited(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function or coroutine function; plain ones run in a thread, so that calls go side by side."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    result = await asyncio.get_running_loop().run_in_executor(None, lambda: function(*arguments))
    return await result if inspect.isawaitable(result) else result


async def host(cls: type, arguments: dict[str, str], token: str, announce: Callable[[dict[str, Any]], None]) -> None:
    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Call(cls, arguments, reader, writer).serve(token)

    server = await asyncio.start_server(session, "127.0.0.1", 0, limit=2**20)
    announce({"ready": True, "port": server.sockets[0].getsockname()[1]})
    async with server:
        await server.serve_forever()


def end_with_parent() -> None:
    """Ends this process when its standard input closes: the rig is gone."""

    def wait() -> None:
        while os.read(0, 4096):
            pass
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--argument", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--describe", action="store_true")
    chosen = parser.parse_args()
    # What the user's code prints belongs into the log, not between our two lines of JSON.
    said = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def announce(message: dict[str, Any]) -> None:
        said.write(json.dumps(message) + "\n")
        said.flush()

    arguments = dict(text.split("=", 1) for text in chosen.argument)
    try:
        cls, path = load(chosen.driver, chosen.folder)
        if chosen.describe:
            found: dict[str, Any] = {"capabilities": declared(cls, arguments), "python": sys.version.split()[0]}
            if path is not None:
                with open(path, "rb") as file:
                    found["source_sha256"] = hashlib.sha256(file.read()).hexdigest()
            announce({"ready": True, **found})
            return
    except UnusableError as problem:
        announce({"ready": False, "problems": str(problem).splitlines()})
        return
    token = os.environ.pop("RIG_AGENT_TOKEN")
    end_with_parent()
    asyncio.run(host(cls, arguments, token, announce))


if __name__ == "__main__":
    main()
