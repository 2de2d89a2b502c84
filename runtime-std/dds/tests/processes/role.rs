//! The participant in a process.

use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tramontane::group::ControlEndpoints;
use tramontane::shared_memory::Root;
use tramontane::{Forming, StartOptions};
use tramontane_dds::{
    DataReader, DataWriter, DdsError, Domain, DomainParticipant, History, Level, Members, Octets,
    OutsideParticipant, ParticipantId, ReaderQos, Selection, TopicDescription, WriterQos,
};

use crate::support::{DATA, DOMAIN, LOGGED, NODE, OUTSIDE, PATIENCE, ROOT, SAID};

/// Does nothing unless the program was started again to run this participant.
#[test]
fn role() {
    let Ok(node) = std::env::var(NODE) else { return };
    let node: u32 = node.parse().expect("a number");
    let path = |name| PathBuf::from(std::env::var_os(name).expect("it is set"));
    let domain = Domain::read(&path(DOMAIN)).expect("a domain");
    if std::env::var(OUTSIDE).is_ok_and(|outside| !outside.is_empty()) {
        return write_outside(&domain, &Root::under(&path(ROOT)), node);
    }
    let is_logged = domain.topic(LOGGED).is_some();
    let data = is_logged.then(|| path(DATA).join(node.to_string()));
    // Over a network, a node must remember its membership.
    let state = Some(path(DATA).join(format!("state-{node}")));
    let options = StartOptions {
        root: Root::under(&path(ROOT)),
        data,
        forming: Forming { state, ..Forming::default() },
        time_limit: PATIENCE,
        ..StartOptions::new(node)
    };
    let participant = DomainParticipant::join(&domain, options).expect("it joins");
    let mut role = ParticipantRole { participant, writer: None, reader: None };
    say("joined");
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("text");
        let words: Vec<&str> = line.split(' ').collect();
        role.obey(&words);
    }
}

/// Writes endlessly as an external participant, and reports the samples that a majority has.
fn write_outside(domain: &Domain, root: &Root, node: u32) {
    let endpoints = ControlEndpoints::of(domain.group(), root).expect("addresses");
    let addresses = endpoints.addresses().skip(usize::try_from(node).expect("few"));
    let members = Members::at(addresses.take(1).cloned());
    let own = OutsideParticipant::connect(members).expect("it is taken");
    let topic = own.untyped_topic(LOGGED).expect("it is there");
    let mut writer = own.create_datawriter(&topic, WriterQos::of(Level::Logged)).expect("one");
    say(&format!("outside {}", own.id()));
    for number in 1_000_000_u64.. {
        writer.write(&Octets(number.to_le_bytes().to_vec())).expect("room");
        writer.wait_for_acknowledgments(PATIENCE).expect("a majority comes to have it");
        say(&format!("durable {number}"));
    }
}

fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{SAID}{what}").expect("somebody reads");
    out.flush().expect("somebody reads");
}

struct ParticipantRole {
    participant: DomainParticipant,
    writer: Option<DataWriter<Octets>>,
    /// A reader that exists before the samples that it receives.
    reader: Option<DataReader<Octets>>,
}

fn number(word: &str) -> u64 {
    word.parse().expect("a number")
}

/// Returns policies that request all samples of a logged topic.
fn all() -> ReaderQos {
    ReaderQos {
        durability: Level::Logged.durability(),
        presentation: Level::Logged.presentation(),
        history: History::KeepAll,
        ..ReaderQos::default()
    }
}

impl ParticipantRole {
    fn obey(&mut self, words: &[&str]) {
        match words {
            ["write", from, to] => self.write(number(from)..number(to)),
            ["list"] => self.list(),
            ["read"] => {
                let topic = self.participant.untyped_topic(LOGGED).expect("it is there");
                self.reader = Some(self.participant.create_datareader(&topic, all()).expect("one"));
                say("reads");
            }
            ["taken"] => {
                let reader = self.reader.as_ref().expect("it reads");
                say(&format!("taken {}", numbers(reader)));
            }
            ["from", first, count] => self.list_from(number(first), number(count)),
            ["matched"] => {
                let topic = self.participant.untyped_topic(LOGGED).expect("it is there");
                let reader = self.participant.create_datareader(&topic, all()).expect("one");
                let matched = reader.matched_publications().expect("no listener");
                let mut all: Vec<ParticipantId> =
                    matched.iter().map(|writer| writer.handle.participant).collect();
                all.sort_unstable();
                let names: Vec<String> = all.iter().map(ToString::to_string).collect();
                say(&format!("matched [{}]", names.join(", ")));
            }
            ["churn", name] => self.churn(name),
            ["create", name] => self.create(&described(name)),
            ["create", name, "outside"] => {
                self.create(&described(name).level(Level::Volatile).clients(true));
            }
            ["delete", name] => {
                let deleted = self.participant.delete_topic(name, PATIENCE);
                say(&match deleted {
                    Ok(()) => format!("deleted {name}"),
                    Err(error) => format!("not {name}: {error}"),
                });
            }
            ["topics"] => {
                let topics = self.participant.topics();
                let names: Vec<&str> = topics.iter().map(|topic| topic.name.as_str()).collect();
                let view = self.participant.status();
                say(&format!("topics {} at {:?}", names.join(","), view.members));
            }
            other => panic!("no such order: {other:?}"),
        }
    }

    fn create(&self, topic: &TopicDescription) {
        let (name, created) = (&topic.name, self.participant.create_untyped_topic(topic, PATIENCE));
        say(&match created {
            Ok(_) => format!("created {name}"),
            Err(error) => format!("not {name}: {error}"),
        });
    }

    /// Writes these numbers, and reports each once a majority has it on disk.
    fn write(&mut self, numbers: std::ops::Range<u64>) {
        let topic = self.participant.untyped_topic(LOGGED).expect("it is there");
        let participant = &self.participant;
        let writer = self.writer.get_or_insert_with(|| {
            participant.create_datawriter(&topic, WriterQos::of(Level::Logged)).expect("one")
        });
        for number in numbers {
            let sample = Octets(number.to_le_bytes().to_vec());
            // While other members are being removed, there may temporarily be no room.
            while let Err(error) = writer.write(&sample) {
                assert!(matches!(error, DdsError::Timeout(_)), "{error}");
            }
            writer.wait_for_acknowledgments(PATIENCE).expect("a majority comes to have it");
            say(&format!("durable {number}"));
        }
        say("written");
    }

    /// Prints the samples that a new reader receives.
    fn list(&self) {
        let topic = self.participant.untyped_topic(LOGGED).expect("it is there");
        let reader = self.participant.create_datareader(&topic, all()).expect("one");
        say(&format!("list {}", numbers(&reader)));
    }

    /// Prints the samples of a reader that begins at a position in the log, once it has received
    /// `count` samples.
    fn list_from(&self, first: u64, count: u64) {
        let topic = self.participant.untyped_topic(LOGGED).expect("it is there");
        let reader = self.participant.create_datareader_from(&topic, all(), first);
        let reader = reader.expect("the log has it");
        let (started, mut listed) = (Instant::now(), Vec::new());
        while u64::try_from(listed.len()).expect("few") < count {
            assert!(started.elapsed() < PATIENCE, "{} of {count} came", listed.len());
            std::thread::sleep(Duration::from_millis(1));
            let new = numbers(&reader);
            listed.extend(new.split(',').filter(|one| !one.is_empty()).map(str::to_owned));
        }
        assert_eq!(reader.sample_lost_status().total_count, 0);
        say(&format!("from {}", listed.join(",")));
    }

    /// Creates and deletes a topic repeatedly.
    fn churn(&self, name: &str) {
        let wanted = described(name);
        loop {
            self.participant.create_untyped_topic(&wanted, PATIENCE).expect("a place");
            say("created");
            self.participant.delete_topic(name, Duration::from_secs(60)).expect("it goes");
            say("deleted");
        }
    }
}

fn described(name: &str) -> TopicDescription {
    TopicDescription::new(name, "Octets").window(16).sample_max(256)
}

/// Returns all samples of a reader: the position of each in the topic's order, and its number.
fn numbers(reader: &DataReader<Octets>) -> String {
    let mut listed = Vec::new();
    for sample in reader.take(&Selection::default()) {
        if sample.info.valid_data {
            let bytes = sample.data().expect("bytes").0;
            let number = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
            listed.push(format!("{}:{number}", sample.info.ordinal));
        }
    }
    listed.join(",")
}
