"""`python device_agent.py TOOL HEARS SPEAKS`: an agent at two sound devices that listens, calls TOOL and answers.

HEARS and SPEAKS are names of devices (`rig device list`). It posts the call to the address in TOOL_WEBHOOK. Needs
`pip install pyaudio`.
"""

import array
import json
import math
import os
import sys
import urllib.request

import pyaudio

RATE, BLOCK = 48000, 960  # 20 ms
WEBHOOK = os.environ.get("TOOL_WEBHOOK", "http://127.0.0.1:8790/tools")
LOUD, QUIET_BLOCKS = 300, 35


def device(audio, name):
    names = [audio.get_device_info_by_index(number)["name"] for number in range(audio.get_device_count())]
    return names.index(name)


def call_tool(name):
    body = json.dumps({"name": name, "arguments": {}}).encode()
    headers = {"Content-Type": "application/json", "X-Rig-Token": os.environ.get("TOOL_TOKEN", "")}
    try:
        with urllib.request.urlopen(urllib.request.Request(WEBHOOK, body, headers), timeout=5) as answer:
            print(name, json.load(answer), flush=True)
    except OSError as error:
        print(name, error, flush=True)


def tone(seconds):
    return array.array("h", (int(9000 * math.sin(2 * math.pi * 440 * n / RATE)) for n in range(int(RATE * seconds))))


def main():
    tool, hears, speaks = sys.argv[1:]
    audio = pyaudio.PyAudio()
    common = {"format": pyaudio.paInt16, "channels": 1, "rate": RATE, "frames_per_buffer": BLOCK}
    microphone = audio.open(input=True, input_device_index=device(audio, hears), **common)
    speaker = audio.open(output=True, output_device_index=device(audio, speaks), **common)
    print("listening", flush=True)
    spoken = quiet = 0
    answer, silence = b"", bytes(2 * BLOCK)
    while True:
        heard = array.array("h", microphone.read(BLOCK, exception_on_overflow=False))
        loud = sum(map(abs, heard)) > LOUD * len(heard)
        spoken, quiet = (spoken + 1, 0) if loud else (spoken, quiet + 1)
        if spoken > 10 and quiet == QUIET_BLOCKS:  # 0.7 s of silence behind at least 0.2 s of speech
            spoken = 0
            call_tool(tool)
            answer = tone(1.0).tobytes()
        speaker.write((answer[: 2 * BLOCK] or silence).ljust(2 * BLOCK, b"\0"))
        answer = answer[2 * BLOCK :]


main()
