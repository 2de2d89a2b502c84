"""The load of `peers` on servers: the same requests, each of which writes one value, in the
protocols of Redis, NATS JetStream and etcd.

A client sends a batch of requests, and the next batch once all are answered. A server's answer
means that the value is replicated, and durable if the server promises that.
"""

import json
import select
import socket
import struct
import time


class ServerClient:
    """A connection with a batch of requests in flight."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest, self.in_flight, self.sent = b"", 0, 0.0

    def receive(self):
        data = self.socket.recv(1 << 18)
        if not data:
            raise ConnectionError("the server closed the connection")
        return self.rest + data

    def wait(self):
        while self.in_flight:
            self.read()


class RedisClient(ServerClient):
    """SET, and WAIT for a number of replicas after each batch."""

    def __init__(self, port, value, replicas):
        super().__init__(port)
        self.value, self.replicas, self.batches = value, replicas, {}

    @staticmethod
    def encoded(*words):
        bulks = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        return b"*%d\r\n%s" % (len(words), bulks)

    def send(self, count):
        if count not in self.batches:
            batch = self.encoded(b"SET", b"key", self.value) * count
            if self.replicas:
                batch += self.encoded(b"WAIT", b"%d" % self.replicas, b"0")
            self.batches[count] = batch
        self.in_flight = count + (self.replicas > 0)
        self.socket.sendall(self.batches[count])

    def read(self):
        *lines, self.rest = self.receive().split(b"\r\n")
        for line in lines:
            if line != b"+OK" and line != b":%d" % self.replicas:
                raise ConnectionError(f"Redis answered {line.decode()}")
        self.in_flight -= len(lines)


class NatsClient(ServerClient):
    """Publishes to a stream, which acknowledges each message."""

    def __init__(self, port, value):
        super().__init__(port)
        self.inbox = b"answers.%d" % self.socket.getsockname()[1]
        self.message = b"PUB log %s %d\r\n%s\r\n" % (self.inbox, len(value), value)
        self.socket.sendall(b'CONNECT {"verbose":false,"pedantic":false}\r\n'
                            b"SUB %s 1\r\n" % self.inbox)

    def ask(self, subject, request):
        """Sends a request to JetStream itself, and returns its answer."""
        request = json.dumps(request).encode()
        self.socket.sendall(b"PUB $JS.API.%s %s %d\r\n%s\r\n" % (
            subject.encode(), self.inbox, len(request), request))
        self.socket.settimeout(1)
        while not (answers := [line for line in self.lines() if line.startswith(b"{")]):
            pass
        return json.loads(answers[0])

    def lines(self):
        *lines, self.rest = self.receive().split(b"\r\n")
        if b"PING" in lines:
            self.socket.sendall(b"PONG\r\n")
        return lines

    def send(self, count):
        self.in_flight = count
        self.socket.sendall(self.message * count)

    def read(self):
        for line in self.lines():
            if line.startswith(b"{"):
                if b'"error"' in line:
                    raise ConnectionError(f"JetStream answered {line.decode()}")
                self.in_flight -= 1


class EtcdClient(ServerClient):
    """Calls Put of etcd's gRPC over HTTP/2, as far as this call needs it."""

    DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
    END_STREAM, END_HEADERS, ACK = 1, 4, 1
    FRAME_MAX, WINDOW_SETTING = 16384, 4

    def __init__(self, port, value):
        super().__init__(port)
        self.stream, self.windows, self.unsent, self.answered = 1, {}, [], set()
        # Bytes that the server takes on a new stream.
        self.window_first = 65535
        put = self.field(1, b"key") + self.field(2, value)
        self.message = b"\0" + struct.pack(">I", len(put)) + put
        names = {":method": "POST", ":scheme": "http", ":path": "/etcdserverpb.KV/Put",
                 ":authority": "etcd", "content-type": "application/grpc", "te": "trailers"}
        # Literals that are not indexed (RFC 7541, 6.2.2).
        self.headers = b"".join(b"\0" + b"".join(bytes([len(text)]) + text.encode()
                                                 for text in pair) for pair in names.items())
        self.windows[0] = self.window_first
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.frame(self.SETTINGS)
                            + self.frame(self.WINDOW, 0, 0, struct.pack(">I", 1 << 30)))

    @staticmethod
    def field(number, content):
        """Encodes a field of a message, whose length is a number of 7 bits per byte."""
        length, encoded = len(content), bytearray([number << 3 | 2])
        while length > 127:
            encoded.append(length & 127 | 128)
            length >>= 7
        return bytes(encoded) + bytes([length]) + content

    @staticmethod
    def frame(kind, flags=0, stream=0, content=b""):
        return struct.pack(">I", len(content) << 8 | kind) + struct.pack(
            ">BI", flags, stream) + content

    def send(self, count):
        self.in_flight = count
        frames = []
        for _ in range(count):
            frames.append(self.frame(self.HEADERS, self.END_HEADERS, self.stream, self.headers))
            self.windows[self.stream] = self.window_first
            self.unsent.append((self.stream, self.message))
            self.stream += 2
        self.socket.sendall(b"".join(frames) + self.sendable())

    def sendable(self):
        """Returns the frames of data for which the server has room."""
        frames, unsent = [], []
        for stream, data in self.unsent:
            while data:
                size = min(len(data), self.FRAME_MAX, self.windows[0], self.windows[stream])
                if size <= 0:
                    unsent.append((stream, data))
                    break
                flags = self.END_STREAM if size == len(data) else 0
                frames.append(self.frame(self.DATA, flags, stream, data[:size]))
                data = data[size:]
                self.windows[0] -= size
                self.windows[stream] -= size
        self.unsent = unsent
        return b"".join(frames)

    def set(self, settings):
        for setting, number in struct.iter_unpack(">HI", settings):
            if setting == self.WINDOW_SETTING:
                for stream in self.windows.keys() - {0}:
                    self.windows[stream] += number - self.window_first
                self.window_first = number

    def read(self):
        data, at, answer = self.receive(), 0, b""
        while len(data) - at >= 9:
            length, flags, stream = struct.unpack_from(">IBI", data, at)
            kind, length = length & 255, length >> 8
            if len(data) - at < 9 + length:
                break
            content = data[at + 9:at + 9 + length]
            at += 9 + length
            if kind == self.DATA:
                self.answered.add(stream)
            elif kind == self.HEADERS and flags & self.END_STREAM:
                if stream not in self.answered:
                    raise ConnectionError("etcd refused a write")
                self.answered.discard(stream)
                self.windows.pop(stream)
                self.in_flight -= 1
            elif kind == self.WINDOW and stream in self.windows:
                self.windows[stream] += struct.unpack(">I", content)[0]
            elif kind in (self.SETTINGS, self.PING) and not flags & self.ACK:
                if kind == self.SETTINGS:
                    self.set(content)
                    content = b""
                answer += self.frame(kind, self.ACK, 0, content)
            elif kind in (self.RESET, self.GOAWAY):
                raise ConnectionError(f"etcd ended a call: {content!r}")
        self.rest = data[at:]
        answer += self.sendable()
        if answer:
            self.socket.sendall(answer)


def run(connect, clients, pipeline, seconds):
    """Returns the answers per second, and the sorted times in us from each batch to its answer."""
    poll, connected, times, answers = select.epoll(), {}, [], 0
    for _ in range(clients):
        client = connect()
        client.send(1)
        client.wait()
        connected[client.socket.fileno()] = client
        poll.register(client.socket, select.EPOLLIN)
    begun = now = time.perf_counter()
    for client in connected.values():
        client.sent = now
        client.send(pipeline)
    while connected:
        for number, _ in poll.poll():
            client = connected[number]
            client.read()
            if client.in_flight:
                continue
            now = time.perf_counter()
            times.append((now - client.sent) * 1e6)
            answers += pipeline
            if now - begun < seconds:
                client.sent = now
                client.send(pipeline)
            else:
                poll.unregister(number)
                connected.pop(number).socket.close()
    return answers / (now - begun), sorted(times)
