//! Selects the records of a history that a diagram shows.
//!
//! A diagram shows a finding's witnesses, other records of their messages, events at their nodes in
//! between, and their nodes' records just before and after. One pass over the history serves all
//! findings. Each kind of record has a limit, so that the diagram stays readable; the records
//! nearest to a witness are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::super::quotes::{Lines, Quotes};
use crate::check::Finding;
use crate::history::{Event, parse};

/// Limits of records kept per [`ReasonShown`].
const KEPT_MAX: [usize; 5] = [48, 40, 12, 10, 3];

/// Distance from a witness, in lines, within which its node's neighbouring records are searched.
const NEAR_LINES: u64 = 400;

/// A selected record: its line number and text.
pub(super) type Picked = (u64, String);

/// The reason why a record is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReasonShown {
    /// A witness, or the multicast of a witness's message.
    Witness,
    /// Another record about a witness's message.
    Message,
    /// An event at a witness's node.
    Happening,
    /// A record of a witness's node just before or after the witness.
    Neighbour,
    /// A fault before all of the witnesses.
    Earlier,
}

/// A finding's nodes and messages, and the records selected for it.
struct Subject {
    lines: BTreeSet<u64>,
    nodes: BTreeSet<String>,
    groups: BTreeSet<String>,
    messages: BTreeSet<String>,
    kept: [Vec<Picked>; 5],
    /// The last record of each node, kept while a witness may follow soon.
    before: BTreeMap<String, Picked>,
    /// The nodes whose next record comes right after a witness.
    after: BTreeSet<String>,
}

/// Selects the records for each finding, in line order. Selects nothing if the history cannot be
/// read again.
pub(super) fn pick(history: &Path, findings: &[&Finding], quotes: &Quotes) -> Vec<Vec<Picked>> {
    let mut subjects: Vec<Subject> =
        findings.iter().map(|finding| Subject::of(finding, quotes)).collect();
    if let Some(mut lines) = Lines::open(history) {
        while let Some((line, text)) = lines.next_line() {
            let Ok(event) = parse(text) else { continue };
            for subject in &mut subjects {
                subject.examine(line, &event, text);
            }
        }
    }
    subjects.into_iter().map(Subject::finish).collect()
}

impl Subject {
    fn of(finding: &Finding, quotes: &Quotes) -> Self {
        let mut subject = Self {
            lines: finding.witness.iter().map(|witness| witness.line).collect(),
            nodes: BTreeSet::new(),
            groups: BTreeSet::new(),
            messages: BTreeSet::new(),
            kept: Default::default(),
            before: BTreeMap::new(),
            after: BTreeSet::new(),
        };
        let quoted = subject.lines.iter().filter_map(|line| quotes.line(*line));
        for event in quoted.filter_map(|text| parse(text).ok()) {
            subject.nodes.extend(nodes(&event).into_iter().map(str::to_owned));
            subject.messages.extend(message(&event).map(str::to_owned));
            subject.groups.extend(group(&event).map(str::to_owned));
        }
        subject
    }

    /// Selects a record if it belongs to the finding.
    fn examine(&mut self, line: u64, event: &Event<'_>, text: &str) {
        match self.kind(line, event) {
            Some(kind) => self.keep(kind, (line, text.to_owned())),
            None if self.is_near(line) => self.neighbour(line, event, text),
            None => {}
        }
        if self.lines.contains(&line) {
            for node in nodes(event) {
                if let Some(before) = self.before.remove(node) {
                    self.keep(ReasonShown::Neighbour, before);
                }
                self.after.insert(node.to_owned());
            }
        }
    }

    fn kind(&self, line: u64, event: &Event<'_>) -> Option<ReasonShown> {
        if self.lines.contains(&line) {
            return Some(ReasonShown::Witness);
        }
        let ours = message(event).is_some_and(|message| self.messages.contains(message));
        match event {
            Event::Multicast { .. } => ours.then_some(ReasonShown::Witness),
            Event::Accepted { .. } | Event::Refused { .. } => ours.then_some(ReasonShown::Message),
            Event::Deliver { group, .. } => {
                (ours && self.has_group(group)).then_some(ReasonShown::Message)
            }
            Event::View { node, group, .. } => {
                (self.spans(line) && self.nodes.contains(&**node) && self.has_group(group))
                    .then_some(ReasonShown::Happening)
            }
            // A fault concerns every node, because it explains view changes.
            Event::Fault { .. } if self.spans(line) => Some(ReasonShown::Happening),
            Event::Fault { .. } => self
                .lines
                .first()
                .is_some_and(|first| line < *first)
                .then_some(ReasonShown::Earlier),
            Event::Start { .. } | Event::Leave { .. } | Event::Stop { .. } | Event::End { .. } => {
                let ours = nodes(event).into_iter().any(|node| self.nodes.contains(node));
                (self.spans(line) && ours).then_some(ReasonShown::Happening)
            }
            _ => None,
        }
    }

    /// Handles a record of one of the nodes, which is shown only if it is next to a witness.
    fn neighbour(&mut self, line: u64, event: &Event<'_>, text: &str) {
        let Some(node) = nodes(event).into_iter().find(|node| self.nodes.contains(*node)) else {
            return;
        };
        let (node, picked) = (node.to_owned(), (line, text.to_owned()));
        if self.after.remove(&node) {
            self.keep(ReasonShown::Neighbour, picked.clone());
            self.before.remove(&node);
        } else {
            self.before.insert(node, picked);
        }
    }

    /// Keeps a record. Above the limit, the record farthest from any witness is dropped.
    fn keep(&mut self, kind: ReasonShown, picked: Picked) {
        let kept = &mut self.kept[kind as usize];
        kept.push(picked);
        if kept.len() > KEPT_MAX[kind as usize] {
            let far = |(line, _): &Picked| {
                let below =
                    self.lines.range(..=line).next_back().map_or(u64::MAX, |near| line - near);
                let above = self.lines.range(line..).next().map_or(u64::MAX, |near| near - line);
                below.min(above)
            };
            let farthest = (0..kept.len()).max_by_key(|index| far(&kept[*index]));
            kept.remove(farthest.unwrap_or_default());
        }
    }

    fn has_group(&self, group: &str) -> bool {
        self.groups.is_empty() || self.groups.contains(group)
    }

    /// Returns whether a line is between the first and the last witness.
    fn spans(&self, line: u64) -> bool {
        self.lines.first().is_some_and(|first| *first <= line)
            && self.lines.last().is_some_and(|last| line <= *last)
    }

    fn is_near(&self, line: u64) -> bool {
        self.lines
            .range(line.saturating_sub(NEAR_LINES)..=line.saturating_add(NEAR_LINES))
            .next()
            .is_some()
    }

    fn finish(self) -> Vec<Picked> {
        let unique: BTreeMap<u64, String> = self.kept.into_iter().flatten().collect();
        unique.into_iter().collect()
    }
}

/// Returns the nodes of a record.
pub(super) fn nodes<'a>(event: &'a Event<'_>) -> Vec<&'a str> {
    match event {
        Event::Start { node, .. }
        | Event::View { node, .. }
        | Event::Multicast { node, .. }
        | Event::Accepted { node, .. }
        | Event::Refused { node, .. }
        | Event::Leave { node, .. }
        | Event::Stop { node, .. }
        | Event::Deliver { node, .. }
        | Event::Durable { node, .. }
        | Event::Leader { node, .. }
        | Event::Stats { node, .. }
        | Event::End { node, .. } => vec![node],
        Event::Fault { nodes, .. } => nodes.iter().map(|node| &**node).collect(),
        Event::Run { .. } | Event::Group { .. } | Event::Unknown { .. } => Vec::new(),
    }
}

/// Returns the message of a record.
pub(super) fn message<'a>(event: &'a Event<'_>) -> Option<&'a str> {
    match event {
        Event::Multicast { msg, .. } | Event::Accepted { msg, .. } | Event::Refused { msg, .. } => {
            Some(msg)
        }
        Event::Deliver { msg, .. } => msg.as_deref(),
        _ => None,
    }
}

/// Returns the group of a record.
fn group<'a>(event: &'a Event<'_>) -> Option<&'a str> {
    match event {
        Event::Deliver { group, .. }
        | Event::View { group, .. }
        | Event::Durable { group, .. }
        | Event::Leader { group, .. } => Some(group),
        _ => None,
    }
}
