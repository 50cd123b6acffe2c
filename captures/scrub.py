"""Masks secrets in everything that is written: cassettes, capture lines, messages. Logs: see `log_scrub`.

A secret is masked by its value, in any of its usual encodings, and so is every part of it of `PART` characters or
more. This module knows no vendor, reads no environment and finds no secret by itself: it is given the values.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

import numpy as np

MASK = "[secret]"
PART = 8
"""Shortest part of a secret that must not be readable, in characters."""

_BASE64_PART = 10
"""Base64 characters fixed by 8 bytes, whatever their alignment."""
_REACH = 16
"""No part looked for is longer than this many bytes."""
_KNOWN = 4096
"""Most neighbourhoods remembered in one search: silence in base64 repeats one, over and over."""
_SMALL = 128
"""Up to so many bytes, looking at every window is quicker than setting arrays to work."""
_SLICE = 1 << 20
"""Large buffers are searched in slices of this many bytes, so that no single call keeps the interpreter long."""

_SENSITIVE = r"[\w-]{0,40}(?:key|token|secret|signature|sig|passw|auth|credential)[\w-]{0,40}"
_NOT_SECRET = re.compile(r"model|deployment|version|voice|language", re.IGNORECASE)
_PATTERNS = (
    re.compile(r"(\bauthorization[\"']?\s{0,8}[:=]\s{0,8}[\"']?(?:[a-z]{1,16} )?)([^\s\"',;)]+)", re.IGNORECASE),
    re.compile(r"(\b(?:bearer|basic)\s{1,8})([\w.~+/=-]{8,})", re.IGNORECASE),
    re.compile(r"(api[-_]?key[\"']?\s{0,8}[:=,]\s{0,8}b?[\"']?)([^\s\"'&,;)]{8,})", re.IGNORECASE),
    re.compile(rf"([?&]{_SENSITIVE}=)([^&\s\"'#]+)", re.IGNORECASE),
    re.compile(r"(://)([^/\s@\"']+)(?=@)"),
)


class Scrubber:
    """Masks the given secrets. Immutable, and safe to share between threads.

    Secrets shorter than `PART` are masked whole where they stand as a word of their own; empty ones are ignored.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        grams: set[bytes] = set()
        short: set[bytes] = set()
        for secret in secrets:
            plain = secret.encode("utf-8", "surrogateescape")
            for form in _spellings(plain):
                if len(form) < PART:
                    short.add(form)
                else:
                    grams |= _parts(form, PART)
            for run in _base64_runs(plain):
                for form in _spellings(run):
                    if len(form) >= PART:
                        grams |= _parts(form, min(len(form), _BASE64_PART))
        short.discard(b"")
        self._grams = frozenset(grams)
        self._lengths = sorted({len(gram) for gram in grams})
        # Any 8 bytes hold a whole 4-byte word aligned to the buffer: looking at these alone finds every part.
        words = {int.from_bytes(gram[at : at + 4], "little") for gram in grams for at in range(len(gram) - 3)}
        self._words = np.array(sorted(words), dtype=np.uint32)
        self._table = np.zeros(1 << 16, dtype=np.bool_)
        self._table[_slots(self._words)] = True
        escaped = b"|".join(re.escape(form) for form in sorted(short, key=len, reverse=True))
        self._short = re.compile(rb"(?<![A-Za-z0-9])(?:" + escaped + rb")(?![A-Za-z0-9])") if short else None

    def may_hold(self, payload: bytes) -> bool:
        """True when `payload` holds a part of a secret of `PART` characters or more, in any encoding.

        Fast on large payloads; does not look for secrets shorter than `PART`.
        """
        return next(self._hits(payload), None) is not None

    def scrub_bytes(self, payload: bytes) -> bytes:
        """`payload` with every secret masked; the same object when it holds none."""
        spans = _merged(self._hits(payload))
        if spans:
            payload = _masked(payload, spans)
        if self._short is not None:
            payload = self._short.sub(MASK.encode(), payload)
        return payload

    def scrub_short(self, payload: bytes) -> bytes:
        """`payload` with the secrets shorter than `PART` masked, for callers that have asked `may_hold` before."""
        return payload if self._short is None else self._short.sub(MASK.encode(), payload)

    def mask(self, text: str) -> str:
        """`text` with the given secrets masked, and nothing else: for what an agent said or did."""
        payload = text.encode("utf-8", "surrogatepass")
        scrubbed = self.scrub_bytes(payload)
        # A mask beside a cut character would leave bytes that are no UTF-8.
        return text if scrubbed == payload else scrubbed.decode("utf-8", "replace")

    def scrub_text(self, text: str) -> str:
        """`text` with the given secrets masked, and whatever looks like a credential: for messages and logs."""
        text = self.mask(text)
        for pattern in _PATTERNS:
            text = pattern.sub(_mask_value, text)
        return text

    def mask_values(self, value: Any) -> Any:
        """A JSON-like value with all its strings and keys masked (`mask`); members of enums stay."""
        if type(value) is str:
            return self.mask(value)
        if isinstance(value, dict):
            return {self.mask_values(key): self.mask_values(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.mask_values(item) for item in value]
        return value

    def _hits(self, payload: bytes) -> Iterator[tuple[int, int]]:
        """Spans of `payload` that hold one part; they may overlap."""
        if not self._grams:
            return
        if len(payload) <= _SMALL:
            for length in self._lengths:
                for start in range(len(payload) - length + 1):
                    if payload[start : start + length] in self._grams:
                        yield start, start + length
            return
        known: dict[tuple[int, bytes], list[tuple[int, int]]] = {}
        for base in range(0, len(payload), _SLICE):
            piece = payload if len(payload) <= _SLICE else payload[base : base + _SLICE + _REACH]
            words = np.frombuffer(piece, "<u4", count=len(piece) // 4)
            found = np.flatnonzero(self._table[_slots(words)])
            found = found[np.isin(words[found], self._words)]
            for at in (found * 4).tolist():
                first = max(0, at - _REACH)
                around = piece[first : at + _REACH]
                spans = known.get((at - first, around))
                if spans is None:
                    spans = _merged(self._spans_around(around, at - first))
                    if len(known) < _KNOWN:
                        known[at - first, around] = spans
                for start, end in spans:
                    yield base + first + start, base + first + end

    def _spans_around(self, around: bytes, at: int) -> Iterator[tuple[int, int]]:
        for length in self._lengths:
            for start in range(max(0, at + 4 - length), at + 1):
                if around[start : start + length] in self._grams:
                    yield start, start + length


def is_secret(name: str, value: str) -> bool:
    """True for a field (query parameter, header) to be treated as a secret: by its name, or because it is long.

    Long is 20 characters, unless the name says that it is a model, deployment, version, voice or language. A short
    value under a plain name is not: masking `day=friday` would alter what an agent said.
    """
    named = re.fullmatch(_SENSITIVE, name, re.IGNORECASE) is not None
    return named or (len(value) >= 20 and not _NOT_SECRET.search(name))


def secrets_in_url(url: str) -> list[str]:
    """Values in `url` that are to be treated as secrets: its password, a lone user name, credential-like parameters.

    A parameter counts when its name says so, or when its value is long (20 characters) and its name does not say
    that it is a model, deployment, version, voice or language.
    """
    try:
        parts = urlsplit(url)
        fields = parse_qsl(parts.query)
    except ValueError:
        return []
    found = [unquote(parts.password or parts.username or "")]
    found += [value for name, value in fields if is_secret(name, value)]
    return list(dict.fromkeys(value for value in found if value))


def _slots(words: np.ndarray[Any, np.dtype[np.uint32]]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """A 16-bit hash of each word (multiplicative, Knuth)."""
    return (words * np.uint32(2654435761)) >> np.uint32(16)


def _spellings(plain: bytes) -> set[bytes]:
    """`plain` as it stands in plain text, in URLs, in JSON and in a printed Python value."""
    text = plain.decode("utf-8", "surrogateescape")
    spelt = {quote(plain, safe=""), quote(plain), quote_plus(plain), json.dumps(text)[1:-1], repr(text)[1:-1]}
    spelt |= {json.dumps(text, ensure_ascii=False)[1:-1]}
    spelt |= {form.replace("/", "\\/") for form in spelt}
    spelt |= {re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), form) for form in spelt if "%" in form}
    return {plain} | {form.encode("utf-8", "surrogateescape") for form in spelt}


def _base64_runs(plain: bytes) -> Iterator[bytes]:
    """The characters that `plain` fixes inside any base64 text holding it: standard and URL-safe, three alignments."""
    for shift in range(3):
        coded = base64.b64encode(b"\0" * shift + plain)
        run = coded[-(-8 * shift // 6) : 8 * (shift + len(plain)) // 6]
        yield run
        yield run.translate(bytes.maketrans(b"+/", b"-_"))


def _parts(form: bytes, length: int) -> set[bytes]:
    return {form[at : at + length] for at in range(len(form) - length + 1)}


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(set(spans)):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


_ESCAPE = re.compile(rb"\\(?:u[0-9a-fA-F]{4}|[^u])", re.DOTALL)


def _masked(payload: bytes, spans: list[tuple[int, int]]) -> bytes:
    """`payload` with `spans` replaced. Characters and JSON escapes that a span would cut go with it."""
    pieces, kept_to = [], 0
    for start, end in spans:
        start, end = _whole_escapes(payload, *_whole_characters(payload, start, end))
        start = max(start, kept_to)
        pieces += [payload[kept_to:start], MASK.encode()]
        kept_to = max(end, start)
    return b"".join([*pieces, payload[kept_to:]])


def _whole_characters(payload: bytes, start: int, end: int) -> tuple[int, int]:
    """The span widened to hold whole UTF-8 characters (at most 3 bytes each way, should it be no UTF-8)."""
    widest = start - 3, end + 3
    while max(widest[0], 0) < start and payload[start] & 0xC0 == 0x80:
        start -= 1
    while end < min(widest[1], len(payload)) and payload[end] & 0xC0 == 0x80:
        end += 1
    return start, end


def _whole_escapes(payload: bytes, start: int, end: int) -> tuple[int, int]:
    """The span widened to hold whole escapes. Escapes are read from the run of backslashes that begins them."""
    for edge in (start, end):
        for back in range(1, 6):
            at = edge - back
            if at < 0 or payload[at : at + 1] != b"\\":
                continue
            run = at
            while run and payload[run - 1 : run] == b"\\":
                run -= 1
            escape = _ESCAPE.match(payload, at) if (at - run) % 2 == 0 else None
            if escape and at < edge < escape.end():
                start, end = min(start, at), max(end, escape.end())
            break
    return start, end


def _mask_value(match: re.Match[str]) -> str:
    return match[1] + MASK
