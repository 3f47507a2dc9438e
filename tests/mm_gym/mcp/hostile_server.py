"""An MCP server over stdio, written on bare lines, that misbehaves as its environment says.

`ACT` names what its tool `act` does: echo, say (`SAY`), die, hang, flood, garbage, line (endless), bomb (a
picture of 25 million pixels in 70 bytes), parts (two thousand texts), deep
(lists in lists without end), broken_picture, big (`BYTES` of text), internal, malformed. `GRADE`
is its evaluation's JSON, `PIDS` a file that gets its process id, `CHILD` makes it start a child that ignores
signals, `LISTED` is JSON of further tools, `START` makes it die or hang at once. Not a test module.
"""

import base64
import json
import os
import signal
import struct
import subprocess
import sys
import time
import zlib


def text(value, **more):
    return {"content": [{"type": "text", "text": value}], "isError": False, **more}


def png(width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b""))
        + chunk(b"IEND", b"")
    )


def picture(data):
    block = {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": "image/png"}
    return {"content": [block], "isError": False}


def write(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def act(arguments):
    kind = os.environ.get("ACT", "echo")
    if kind == "die":
        sys.stderr.write("about to \x1b[31mdie\n")
        sys.stderr.flush()
        os._exit(7)
    elif kind == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(1_000)
    elif kind == "flood":
        note = {
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": {"level": "info", "data": "x" * 9_000},
        }
        while True:
            write(json.dumps(note).encode() + b"\n")
    elif kind == "garbage":
        while True:
            write(b"this is no message\n")
    elif kind == "line":
        while True:
            write(b"x" * 65_536)
    elif kind == "bomb":
        return picture(png(5_000, 5_000))
    elif kind == "parts":
        return {"content": text("so").get("content") * 2_000, "isError": False}
    elif kind == "deep":
        return b'{"content": [], "structuredContent": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    elif kind == "broken_picture":
        return picture(b"\x89PNG\r\n\x1a\nnothing more")
    elif kind == "big":
        return text("y" * int(os.environ["BYTES"]))
    elif kind == "internal":
        raise RuntimeError("boom")
    elif kind == "malformed":
        return {"content": "not a list"}
    elif kind == "say":
        return text(os.environ["SAY"])
    return text(json.dumps(arguments))


def answer(method, params):
    if method == "initialize":
        version = params["protocolVersion"]
        info = {"name": "hostile", "version": "0"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
        tools = [{"name": name, "inputSchema": schema} for name in ("act", "setup", "evaluate")]
        return {"tools": tools + json.loads(os.environ.get("LISTED", "[]"))}
    if method == "tools/call":
        name = params["name"]
        if name == "setup":
            return text("ready")
        if name == "evaluate":
            return text("graded", structuredContent=json.loads(os.environ.get("GRADE", '{"reward": 1.0}')))
        return act(params.get("arguments") or {})
    return None


def main():
    if os.environ.get("START") == "die":
        sys.exit("no licence found")
    if os.environ.get("START") == "hang":
        time.sleep(1_000)
    children = []
    if os.environ.get("CHILD"):
        code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"
        children.append(subprocess.Popen([sys.executable, "-S", "-c", code]).pid)
    if os.environ.get("PIDS"):
        with open(os.environ["PIDS"], "w") as file:
            file.write(" ".join(map(str, [os.getpid(), *children])))
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            result = answer(message["method"], message.get("params") or {})
            if isinstance(result, bytes):
                write(b'{"jsonrpc": "2.0", "id": %d, "result": %s}\n' % (message["id"], result))
                continue
            if result is None:
                reply["error"] = {"code": -32601, "message": "no such method"}
            else:
                reply["result"] = result
        except RuntimeError as error:
            reply["error"] = {"code": -32603, "message": str(error)}
        write(json.dumps(reply).encode() + b"\n")


main()
