"""`python twilio_agent.py 8080 TOOL`: a phone agent behind Twilio Media Streams that greets, listens and calls TOOL.

It posts the call to the address in TOOL_WEBHOOK (empty: nowhere), and stops speaking when the caller cuts in. Needs
`pip install websockets`.
"""

import asyncio
import base64
import json
import math
import os
import sys
import urllib.request

from websockets.asyncio.server import serve

QUIET, LOUD, FRAME = 0xFF, 40, 160  # µ-law: the high bits of an inverted byte grow with loudness
WEBHOOK = os.environ.get("TOOL_WEBHOOK", "http://127.0.0.1:8790/tools")


def tone(seconds):
    """µ-law: a tone stands in for speech."""
    levels = [math.sin(2 * math.pi * 440 * n / 8000) for n in range(int(8000 * seconds))]
    return bytes((0x9F if level < 0 else 0x1F) if abs(level) > 0.3 else QUIET for level in levels)


def is_speech(ulaw):
    return sum(~byte & 0x7F for byte in ulaw) / max(1, len(ulaw)) > LOUD


def call_tool(call, name):
    body = json.dumps({"name": name, "arguments": {}, "call_sid": call}).encode()
    headers = {"Content-Type": "application/json", "X-Rig-Token": os.environ.get("TOOL_TOKEN", "")}
    with urllib.request.urlopen(urllib.request.Request(WEBHOOK, body, headers), timeout=5) as answer:
        return json.load(answer)


async def agent(socket):
    call = stream = None
    spoken = quiet = playing = 0

    async def say(seconds, mark):
        ulaw = base64.b64encode(tone(seconds)).decode()
        await socket.send(json.dumps({"event": "media", "streamSid": stream, "media": {"payload": ulaw}}))
        await socket.send(json.dumps({"event": "mark", "streamSid": stream, "mark": {"name": mark}}))

    async for text in socket:
        message = json.loads(text)
        if message["event"] == "start":
            call, stream = message["start"]["callSid"], message["streamSid"]
            await say(0.5, "greeting")
            playing = 1
        elif message["event"] == "mark":
            playing -= 1
        elif message["event"] == "media":
            speech = is_speech(base64.b64decode(message["media"]["payload"]))
            spoken, quiet = (spoken + 1, 0) if speech else (spoken, quiet + 1)
            if speech and playing:
                await socket.send(json.dumps({"event": "clear", "streamSid": stream}))
            if spoken > 10 and quiet == 35:  # 0.7 s of silence behind at least 0.2 s of speech
                spoken = 0
                if WEBHOOK:
                    await asyncio.to_thread(call_tool, call, sys.argv[2])
                await say(1.0, "answer")
                playing += 1
        elif message["event"] == "stop":
            return


async def main():
    async with serve(agent, "127.0.0.1", int(sys.argv[1])) as server:
        print(f"listening on port {server.sockets[0].getsockname()[1]}", flush=True)
        await server.serve_forever()


asyncio.run(main())
