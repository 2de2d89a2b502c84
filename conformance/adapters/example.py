#!/usr/bin/env python3
"""A small multicast with its adapter: the first node orders every message, and sends it to all.
It survives no failure, and does not claim to. `docs/write-an-adapter.md` explains it.
"""
import hashlib
import json
import os
import socket
import sys
import threading
import time

FEATURES = ["stats", "several-groups", "order-across-groups", "outside-senders",
            "empty-messages", "large-messages"]
posts = 0
speaking = threading.Lock()


def say(**line):
    """Writes one line to the driver, whole and at once."""
    with speaking:
        print(json.dumps(line), flush=True)


def post(stream, frame):
    """Sends one line to another process."""
    global posts
    posts += 1
    stream.sendall(json.dumps(frame).encode() + b"\n")


def serve(listener):
    """Decides the order: under a lock, passes each message to all processes in turn."""
    ordering = threading.Lock()
    members = []

    def attend(stream):
        for line in stream.makefile():
            with ordering:
                for member in members:
                    post(member, json.loads(line))

    while stream := listener.accept()[0]:
        with ordering:
            post(stream, "welcome")
            members.append(stream)
        threading.Thread(target=attend, args=[stream], daemon=True).start()


def connect():
    """Connects to the first node, which may still be starting."""
    stream = socket.socket(socket.AF_UNIX)
    while stream.connect_ex("order") != 0:
        time.sleep(0.01)
    return stream


def deliver(stream, mine):
    """Delivers messages for a group of this node, in the order of arrival."""
    for line in stream:
        frame = json.loads(line)
        if frame["sender"] == node:
            say(type="ok", message=frame["message"])  # It has its place.
        group = next((group for group in frame["groups"] if group in mine), None)
        if group:
            payload = frame["payload"]
            told = {"message": payload.split(" ")[0] or None, "bytes": len(payload)}
            if payload:
                told["digest"] = hashlib.sha256(payload.encode()).hexdigest()[:16]
            say(type="deliver", sender=frame["sender"], group=group, **told)


init = json.loads(sys.stdin.readline())
node = init["node"]
os.chdir(init["shared"])  # A socket's whole path may be too long.
if node == init["nodes"][0]["node"]:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("order")
    listener.listen()
    threading.Thread(target=serve, args=[listener], daemon=True).start()
uplink = connect()
downlink = uplink.makefile()
downlink.readline()  # Welcome: from here on this node gets everything.
mine = [group["group"] for group in init["groups"] if node in group["members"]]
threading.Thread(target=deliver, args=[downlink, mine], daemon=True).start()
say(type="init_ok", name="example", version="1", features=FEATURES)
for line in sys.stdin:
    command = json.loads(line)
    if command["type"] == "multicast":
        payload = ((command["message"] + " ") * command["bytes"])[: command["bytes"]]
        post(uplink, {"sender": node, "payload": payload} | command)
    elif command["type"] == "stats":
        say(type="stats", posts=posts)
    elif command["type"] == "stop":
        break
    else:
        say(type="error", code="unsupported", definite=True)
say(type="halt", reason="done")
os._exit(0)
