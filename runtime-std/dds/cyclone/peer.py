"""A participant of Cyclone DDS, for the tests of the gateway.

peer.py write DOMAIN TOPIC WRITER COUNT
    waits for a reader, writes samples, and stays until its input ends
peer.py read DOMAIN TOPIC COUNT
    prints "WRITER NUMBER" a sample, and ends after so many

Says "ready" once it takes part.
"""

import sys
import time
from dataclasses import dataclass

from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import int32
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

LIMIT_S = 60


@dataclass
class Numbered(IdlStruct, typename="Numbered"):
    writer: int32
    number: int32


QOS = Qos(
    Policy.Reliability.Reliable(duration(seconds=10)),
    Policy.History.KeepAll,
    Policy.Durability.Volatile,
)


def say(text):
    print(text, flush=True)


def write(topic, writer, count):
    end = DataWriter(topic.participant, topic, qos=QOS)
    say("ready")
    deadline = time.monotonic() + LIMIT_S
    while not end.get_matched_subscriptions():
        if time.monotonic() > deadline:
            sys.exit("no reader came")
        time.sleep(0.01)
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
            sys.exit(f"{seen} of {count} samples came")
        seen += take(end)
        time.sleep(0.005)
    # What comes after that is one too many.
    time.sleep(0.5)
    take(end)


def take(end):
    """Prints what came, and says how much. That an instance ended is no sample."""
    samples = [sample for sample in end.take(N=100) if isinstance(sample, Numbered)]
    for sample in samples:
        say(f"{sample.writer} {sample.number}")
    return len(samples)


def main():
    way, domain, name = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    participant = DomainParticipant(domain)
    topic = Topic(participant, name, Numbered, qos=QOS)
    if way == "write":
        write(topic, int(sys.argv[4]), int(sys.argv[5]))
    else:
        read(topic, int(sys.argv[4]))


main()
