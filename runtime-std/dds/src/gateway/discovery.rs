//! Discovery on RTPS: finds the participants that are gateways, and the writers and readers that do
//! not match.
//!
//! A gateway's participant creates its writer of marks ([`marks_topic`]) before its writer of
//! samples. RTPS announces both in that order, before the first sample, so a gateway recognises the
//! samples of another gateway.

use std::collections::BTreeSet;
use std::fmt;

use rustdds::qos::QosPolicyId;
use rustdds::{
    DomainParticipant, DomainParticipantStatusEvent, DomainParticipantStatusListener,
    EndpointDescription, GUID, QosPolicies, QosPolicyBuilder, StatusEvented as _,
};

use super::rtps::qos;

/// Maximum number of mismatched writers and readers that are remembered.
const MISMATCHES_MAX: usize = 1_024;

/// Values of the last byte of a GUID for writers and readers whose type has a key.
const WITH_KEY: [u8; 2] = [0x02, 0x07];

/// Returns the RTPS topic on which the gateways of a topic announce how much of the group's order
/// they have forwarded.
pub(super) fn marks_topic(domain: &str, topic: &str, writes: &str) -> String {
    format!("tramontane/{domain}/{topic}/{writes}")
}

/// An RTPS writer or reader that exchanges nothing with the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The RTPS topic.
    pub topic: String,
    /// Whether this is a writer rather than a reader.
    pub is_writer: bool,
    /// The RTPS GUID in hexadecimal.
    pub guid: String,
    /// The differences, each with a remedy.
    pub why: Vec<String>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.is_writer { "writer" } else { "reader" };
        let Self { topic, guid, why, .. } = self;
        write!(out, "RTPS {end} {guid} of topic \"{topic}\" does not match: {}", why.join("; "))
    }
}

/// The RTPS topics of a mirror.
#[derive(Debug)]
pub(super) struct MirroredTopics {
    pub(super) reads: String,
    pub(super) writes: String,
    pub(super) type_name: String,
    pub(super) sample_max: usize,
}

/// The participants known on RTPS.
pub(super) struct Discovery {
    listener: DomainParticipantStatusListener,
    mirrored: Vec<MirroredTopics>,
    /// Writers of marks, each given by its topic and its participant's prefix.
    gateways: BTreeSet<(String, [u8; 12])>,
    refused: BTreeSet<[u8; 16]>,
    mismatches: Vec<Mismatch>,
}

impl Discovery {
    pub(super) fn new(participant: &DomainParticipant) -> Self {
        Self {
            listener: participant.status_listener(),
            mirrored: Vec::new(),
            gateways: BTreeSet::new(),
            refused: BTreeSet::new(),
            mismatches: Vec::new(),
        }
    }

    /// Begins to compare the writers and readers of these topics.
    pub(super) fn mirror(&mut self, names: MirroredTopics) {
        self.mirrored.push(names);
    }

    /// Returns the mismatched writers and readers seen so far.
    pub(super) fn mismatches(&self) -> &[Mismatch] {
        &self.mismatches
    }

    /// Processes the RTPS discovery events since the last call.
    pub(super) fn look(&mut self) {
        while let Some(event) = self.listener.try_recv_status() {
            match event {
                DomainParticipantStatusEvent::WriterDetected { writer } => {
                    self.gateways.insert((writer.topic_name.clone(), prefix(writer.guid)));
                    self.compare(&writer, true);
                }
                DomainParticipantStatusEvent::ReaderDetected { reader } => {
                    self.compare(&reader, false);
                }
                _ => {}
            }
        }
    }

    /// Returns whether a writer's participant is a gateway that writes marks to this topic.
    pub(super) fn is_gateway(&self, writer: GUID, marks: &str) -> bool {
        self.gateways.contains(&(marks.to_owned(), prefix(writer)))
    }

    /// Returns whether samples from this writer are rejected.
    pub(super) fn refuses(&self, writer: GUID) -> bool {
        self.refused.contains(&writer.to_bytes())
    }

    fn compare(&mut self, end: &EndpointDescription, is_writer: bool) {
        let is_meant = |names: &&MirroredTopics| {
            end.topic_name == if is_writer { names.reads.as_str() } else { names.writes.as_str() }
        };
        let Some(names) = self.mirrored.iter().find(is_meant) else { return };
        let why = differing(end, names, is_writer);
        if why.is_empty()
            || self.mismatches.len() >= MISMATCHES_MAX
            || !self.refused.insert(end.guid.to_bytes())
        {
            return;
        }
        let guid = end.guid.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let mismatch = Mismatch { topic: end.topic_name.clone(), is_writer, guid, why };
        tracing::warn!("{mismatch}");
        self.mismatches.push(mismatch);
    }
}

/// Returns the differences between a remote writer or reader and its counterpart at the gateway.
fn differing(end: &EndpointDescription, names: &MirroredTopics, is_writer: bool) -> Vec<String> {
    let mut why = Vec::new();
    if end.type_name != names.type_name {
        why.push(format!(
            "its type is \"{}\", but the topic's is \"{}\"; give the domain's topic that type",
            end.type_name, names.type_name
        ));
    }
    if WITH_KEY.contains(&end.guid.to_bytes()[15]) {
        why.push("its type has a key; mirror a topic whose type has no key".to_owned());
    }
    let own = qos(names.sample_max);
    let mut theirs = end.qos.clone();
    while let Some(policy) = failure(&own, &theirs, is_writer) {
        // This policy is replaced with the gateway's value, so that the next policy that differs is
        // found.
        let (reason, alike) = match policy {
            QosPolicyId::Reliability => (
                "it is best effort, but the gateway reads reliably; make it reliable".to_owned(),
                own.reliability().map(|own| QosPolicyBuilder::new().reliability(own).build()),
            ),
            QosPolicyId::Durability => (
                "it requests samples from before its creation, but the gateway keeps none; make it \
                 request VOLATILE"
                    .to_owned(),
                own.durability().map(|own| QosPolicyBuilder::new().durability(own).build()),
            ),
            QosPolicyId::Representation => (
                "it uses XCDR2, but the gateway uses XCDR1; make its type final, or make it use \
                 XCDR1"
                    .to_owned(),
                None,
            ),
            other => (format!("its policy {other:?} is not the default; use the default"), None),
        };
        why.push(reason);
        match alike {
            Some(alike) => theirs = theirs.modify_by(&alike),
            None => break,
        }
    }
    why
}

/// Returns the first policy in which the writer offers less than the reader requests.
fn failure(own: &QosPolicies, theirs: &QosPolicies, is_writer: bool) -> Option<QosPolicyId> {
    let (offered, requested) = if is_writer { (theirs, own) } else { (own, theirs) };
    offered.compliance_failure_wrt(requested)
}

fn prefix(guid: GUID) -> [u8; 12] {
    let bytes = guid.to_bytes();
    std::array::from_fn(|at| bytes[at])
}
