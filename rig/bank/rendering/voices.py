"""Turns text into speech at 24 kHz with an offline synthesiser: hibari-tts or Debian's flite.

A voice is a name from a recipe. `hibari@0.80` is hibari's one speaker synthesised slower or faster and resampled by the
factor, so that pitch and formants move while the rate stays: another speaker to the ear. Nothing here reads a bank.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from rig.bank.rendering.levels import RATE_HZ, Samples

# Name → factor of pitch and formants against hibari's own speaker.
HIBARI_VOICES = {"hibari": 1.0, "hibari@0.80": 0.80, "hibari@0.90": 0.90, "hibari@1.12": 1.12}
FLITE_VOICES = {"flite:slt": "slt", "flite:rms": "rms", "flite:awb": "awb"}
# Vocal tract of each flite speaker against an adult woman's: men's formants lie some 15 % lower.
_FLITE_TRACTS = {"flite:slt": 1.0, "flite:rms": 0.86, "flite:awb": 0.88}
VOICES = frozenset(HIBARI_VOICES) | frozenset(FLITE_VOICES)
_FLITE_TIMEOUT_S = 60
_NO_HIBARI = "hibari-tts is not installed: pip install 'voice-agent-rig[render]'"


class SynthesisError(RuntimeError):
    """The synthesiser is missing or failed; the message says which and what to install."""


def resampled(samples: Samples, ratio: float) -> Samples:
    """Samples × `ratio` in number, band-limited."""
    if ratio == 1.0:
        return samples
    import samplerate  # of the extra `render`; the names of voices are known without it

    return np.asarray(samplerate.resample(samples.astype(np.float32), ratio, "sinc_best"), dtype=np.float64)


def tract_of(voice: str) -> float:
    """Resonances of a voice's vocal tract against an adult woman's."""
    return HIBARI_VOICES.get(voice) or _FLITE_TRACTS[voice]


def engine_of(voice: str) -> str:
    """Name and version of the synthesiser behind a voice, as the manifest states it; raises SynthesisError."""
    if voice not in HIBARI_VOICES:
        return _flite_version()
    try:
        return f"hibari-tts-{version('hibari-tts')}"
    except PackageNotFoundError:
        raise SynthesisError(_NO_HIBARI) from None


def synthesise(voice: str, text: str, seed: int) -> Samples:
    """Speech of `text`, untrimmed; flite has no use for the seed. Raises SynthesisError.

    hibari's `speed` moves durations in steps and not in proportion, so that the rate of `hibari@…` differs a little
    from hibari's own.
    """
    if voice in HIBARI_VOICES:
        factor = HIBARI_VOICES[voice]
        raw = np.asarray(_hibari()(text, speed=1.0 / factor, seed=seed), dtype=np.float64)
        return resampled(raw, 1.0 / factor)
    if voice in FLITE_VOICES:
        raw, raw_rate_hz = _flite(FLITE_VOICES[voice], text)
        return resampled(raw, RATE_HZ / raw_rate_hz)
    raise SynthesisError(f"unknown voice {voice!r}; known: {', '.join(sorted(VOICES))}")


@cache
def _hibari() -> Any:
    try:
        from hibari import Hibari
    except ImportError:
        raise SynthesisError(_NO_HIBARI) from None
    return Hibari()


def _flite_path() -> str:
    path = shutil.which("flite")
    if path is None:
        raise SynthesisError("flite is not installed: apt-get install flite")
    return path


@cache
def _flite_version() -> str:
    answer = subprocess.run([_flite_path(), "--version"], capture_output=True, text=True, timeout=_FLITE_TIMEOUT_S)
    for line in (answer.stdout + answer.stderr).splitlines():
        if "version:" in line:
            return line.split("version:")[1].split()[0]
    raise SynthesisError("flite --version names no version")


def _flite(name: str, text: str) -> tuple[Samples, int]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "speech.wav"
        command = [_flite_path(), "-voice", name, "-t", text, "-o", str(out)]
        done = subprocess.run(command, capture_output=True, timeout=_FLITE_TIMEOUT_S)
        if done.returncode or not out.exists():
            raise SynthesisError(f"flite ended with {done.returncode}: {done.stderr.decode(errors='replace')[:200]}")
        samples, rate_hz = soundfile.read(out, dtype="float64", always_2d=False)
    return np.asarray(samples), int(rate_hz)
