"""A multicast over datagrams: the first node orders every message, and sends it to all. Each
datagram is resent until it is acknowledged. With `--trust` it is sent once, which fails only if the
network loses packets. The program claims `crash` so that plans of random faults apply to it, but
survives no crash.
"""
import hashlib
import json
import os
import socket
import sys
import threading
import time

FEATURES = ["crash", "network"]
AGAIN_S = 0.02
TRUSTS = "--trust" in sys.argv
init = json.loads(sys.stdin.readline())
names = [node["node"] for node in init["nodes"]]
places = [(node["address"], 9100 + place) for place, node in enumerate(init["nodes"])]
mine = names.index(init["node"])
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.bind(places[mine])
state = threading.RLock()
sent = [0] * len(names)
expected = [0] * len(names)
early = [{} for _ in names]
unacknowledged = [{} for _ in names]


def say(**line):
    with state:
        print(json.dumps(line), flush=True)


def put(to, datagram):
    link.sendto(json.dumps([mine, *datagram]).encode(), places[to])


def send(to, frame):
    with state:
        unacknowledged[to][sent[to]] = frame
        put(to, [sent[to], frame])
        sent[to] += 1


def again():
    while True:
        time.sleep(AGAIN_S)
        with state:
            for to, frames in enumerate(unacknowledged):
                for number, frame in list(frames.items())[:20]:
                    put(to, [number, frame])


def receive():
    while True:
        origin, number, frame = json.loads(link.recv(65536))
        with state:
            if frame is None:
                unacknowledged[origin].pop(number, None)
            elif TRUSTS:
                take(frame)
            else:
                put(origin, [number, None])
                if number >= expected[origin]:
                    early[origin][number] = frame
                while expected[origin] in early[origin]:
                    take(early[origin].pop(expected[origin]))
                    expected[origin] += 1


def take(frame):
    if not frame["ordered"]:
        for to in range(len(names)):
            send(to, frame | {"ordered": True})
        return
    payload = frame["payload"]
    digest = hashlib.sha256(payload.encode()).hexdigest()[:16]
    say(type="deliver", sender=frame["sender"], group="g0", message=payload.split(" ")[0],
        bytes=len(payload), digest=digest)
    if frame["sender"] == names[mine]:
        say(type="ok", message=payload.split(" ")[0])


threading.Thread(target=receive, daemon=True).start()
if not TRUSTS:
    threading.Thread(target=again, daemon=True).start()
say(type="init_ok", name="datagrams", version="1", features=FEATURES)
for line in sys.stdin:
    command = json.loads(line)
    if command["type"] == "multicast":
        payload = ((command["message"] + " ") * command["bytes"])[: command["bytes"]]
        send(0, {"ordered": False, "sender": names[mine], "payload": payload})
    elif command["type"] == "stop":
        break
    else:
        say(type="error", code="unsupported", definite=True)
say(type="halt", reason="done")
os._exit(0)
