"""A participant of Cyclone DDS, for the tests of the gateway.

peer.py write DOMAIN TOPIC WRITER COUNT
    waits for a reader, writes samples, and stays until its input ends
peer.py read DOMAIN TOPIC COUNT
    prints "WRITER NUMBER" for each sample, and ends after COUNT samples
peer.py write-sizes DOMAIN TOPIC SIZE...
    waits for a reader, writes samples of these sizes, and stays until its input ends
peer.py read-sizes DOMAIN TOPIC COUNT
    prints the size of each sample, and ends after COUNT samples, or at one with wrong bytes
peer.py mismatch DOMAIN TOPIC WHICH
    creates a writer and a reader that differ from the gateway's in one policy, and stays until its
    input ends

Prints "ready" once it takes part.
"""

import select
import sys
import time
from dataclasses import dataclass

from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import appendable, key
from cyclonedds.idl.types import int32, sequence, uint8
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

LIMIT_S = 60


@dataclass
class Numbered(IdlStruct, typename="Numbered"):
    writer: int32
    number: int32


@dataclass
class Octets(IdlStruct, typename="Octets"):
    octets: sequence[uint8]


@dataclass
class Keyed(IdlStruct, typename="Numbered"):
    writer: int32
    key("writer")
    number: int32


@dataclass
@appendable
class Appendable(IdlStruct, typename="Numbered"):
    writer: int32
    number: int32


@dataclass
class Other(IdlStruct, typename="Other"):
    writer: int32
    number: int32


QOS = Qos(
    Policy.Reliability.Reliable(duration(seconds=10)),
    Policy.History.KeepAll,
    Policy.Durability.Volatile,
)


def say(text):
    print(text, flush=True)


def await_match(end):
    deadline = time.monotonic() + LIMIT_S
    while not end.get_matched_subscriptions():
        if time.monotonic() > deadline:
            sys.exit("no reader came")
        time.sleep(0.01)


def write(topic, writer, count):
    end = DataWriter(topic.participant, topic, qos=QOS)
    say("ready")
    await_match(end)
    for number in range(1, count + 1):
        end.write(Numbered(writer=writer, number=number))
        time.sleep(0.002)
    sys.stdin.read()


def read(topic, count):
    end = DataReader(topic.participant, topic, qos=QOS)
    say("ready")
    deadline = time.monotonic() + LIMIT_S
    seen = 0
    while seen < count:
        if time.monotonic() > deadline:
            sys.exit(f"{seen} of {count} samples arrived")
        seen += take(end)
        time.sleep(0.005)
    # Any further sample is one too many.
    time.sleep(0.5)
    take(end)


def take(end):
    """Prints the received samples, and returns their number. Ends of instances do not count."""
    samples = [sample for sample in end.take(N=100) if isinstance(sample, Numbered)]
    for sample in samples:
        say(f"{sample.writer} {sample.number}")
    return len(samples)


def pattern(size):
    return (bytes(range(251)) * (size // 251 + 1))[:size]


def write_sizes(topic, sizes):
    end = DataWriter(topic.participant, topic, qos=QOS)
    say("ready")
    await_match(end)
    for size in sizes:
        end.write(Octets(octets=pattern(size)))
    sys.stdin.read()


def read_sizes(topic, count):
    end = DataReader(topic.participant, topic, qos=QOS)
    say("ready")
    deadline = time.monotonic() + LIMIT_S
    while count > 0:
        if time.monotonic() > deadline:
            sys.exit(f"{count} samples did not come")
        for sample in end.take(N=100):
            if not isinstance(sample, Octets):
                continue
            octets = bytes(sample.octets)
            if octets != pattern(len(octets)):
                sys.exit(f"a sample of {len(octets)} bytes came with other bytes")
            say(len(octets))
            count -= 1
        time.sleep(0.005)


def mismatch(participant, name, which):
    kind = {"keyed": Keyed, "appendable": Appendable, "type": Other}.get(which, Numbered)
    policy = {
        "best-effort": Policy.Reliability.BestEffort,
        "transient-local": Policy.Durability.TransientLocal,
        "xcdr2": Policy.DataRepresentation(use_xcdrv2_representation=True),
    }.get(which)
    # The other policies equal the gateway's.
    kept = [own for own in QOS if policy is None or own.__scope__ != policy.__scope__]
    qos = Qos(*kept, *([policy] if policy else []))
    topic = Topic(participant, name, kind)
    ends = DataWriter(participant, topic, qos=qos), DataReader(participant, topic, qos=qos)
    say("ready")
    while not select.select([sys.stdin], [], [], 0.02)[0]:
        ends[0].write(kind(writer=1, number=1))
        for sample in ends[1].take(N=100):
            say(sample)


def main():
    way, domain, name = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    participant = DomainParticipant(domain)
    if way == "mismatch":
        return mismatch(participant, name, sys.argv[4])
    kind = Octets if way.endswith("sizes") else Numbered
    topic = Topic(participant, name, kind, qos=QOS)
    numbers = [int(word) for word in sys.argv[4:]]
    if way == "write":
        write(topic, *numbers)
    elif way == "read":
        read(topic, *numbers)
    elif way == "write-sizes":
        write_sizes(topic, numbers)
    else:
        read_sizes(topic, *numbers)


main()
