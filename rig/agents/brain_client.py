"""Asks the brain process what is heard in an utterance. One loopback connection per question."""

from __future__ import annotations

from typing import Protocol

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from rig.agents import brain_wire
from rig.agents.brain_wire import Impression

_ANSWER_TIMEOUT_S = 120.0


class BrainError(RuntimeError):
    """The brain refused, failed, or is gone; one line."""


class Ears(Protocol):
    """What an embedded agent hears with."""

    async def hear(self, pcm: bytes, rate_hz: int) -> Impression:
        """What is heard in PCM16 mono. Raises BrainError."""
        ...


class BrainClient:
    """The brain behind a loopback port."""

    def __init__(self, port: int, token: str, host: str = "127.0.0.1") -> None:
        self.host, self.port = host, port
        self.token = token

    async def hear(self, pcm: bytes, rate_hz: int) -> Impression:
        """What is heard in PCM16 mono. Raises BrainError."""
        try:
            with anyio.fail_after(_ANSWER_TIMEOUT_S):
                return await self._ask(pcm, rate_hz)
        except TimeoutError:
            raise BrainError(f"the brain gave no answer within {_ANSWER_TIMEOUT_S:g} s") from None
        except (OSError, anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, ValueError) as error:
            raise BrainError(f"the brain cannot be asked: {error or type(error).__name__}") from error

    async def _ask(self, pcm: bytes, rate_hz: int) -> Impression:
        async with await anyio.connect_tcp(self.host, self.port) as stream:
            await stream.send(brain_wire.request(self.token, pcm, rate_hz))
            buffered = BufferedByteReceiveStream(stream)
            (size,) = brain_wire.LENGTH.unpack(await buffered.receive_exactly(brain_wire.LENGTH.size))
            if size > brain_wire.MAX_ANSWER_BYTES:
                raise BrainError("the brain's answer is too long")
            heard = brain_wire.impression(await buffered.receive_exactly(size))
        if isinstance(heard, str):
            raise BrainError(f"the brain refused: {heard}")
        return heard
