//! Stores and prints what a node delivers.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use serde::Serialize;
use tramontane_core::ids::{NodeId, SubgroupId};
use tramontane_core::node::DurableCounts;

use super::event::NodeEvent;
use super::log::SubgroupLog;
use super::meter::Meter;
use crate::log_file::kept_text;
use tramontane_local::exit::{Failure, Status};
use tramontane_local::group_file::listed;
use tramontane_local::lines::add_message;
use tramontane_local::output::Output;
use tramontane_local::record::Bytes;
use tramontane_runtime::group::{
    Application, Description, FIRST_VIEW, Message, Messages, SubgroupDescription, View, ViewChanged,
};

/// The choice of what goes to standard output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Printing {
    pub(super) deliveries: bool,
    /// Whether the output is JSON, which includes views.
    pub(super) json: bool,
}

/// A line of JSON.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum JsonLine<'l> {
    Delivery {
        subgroup: &'l str,
        view: u64,
        place: u64,
        sender: u32,
        /// The external client that published the line.
        #[serde(skip_serializing_if = "Option::is_none")]
        client: Option<String>,
        #[serde(flatten)]
        record: Bytes<'l>,
    },
    View {
        view: u64,
        members: Vec<u32>,
        joined: Vec<u32>,
        gone: Vec<u32>,
    },
}

fn add_line(line: &impl Serialize, to: &mut Vec<u8>) {
    // Writing numbers and strings to memory cannot fail.
    let _ = serde_json::to_writer(&mut *to, line);
    to.push(b'\n');
}

/// Counts of durable lines.
#[derive(Serialize)]
struct Durable<'l> {
    /// Present if more than one subgroup is logged.
    #[serde(skip_serializing_if = "Option::is_none")]
    subgroup: Option<&'l str>,
    durable: DurableLines,
}

#[derive(Serialize)]
struct DurableLines {
    here: u64,
    majority: u64,
    all: u64,
}

/// The subgroups, under the names that output lines use.
pub(super) struct Subgroups {
    all: Vec<SubgroupDescription>,
    /// Subgroups that were reported as closed.
    closed: Vec<SubgroupId>,
}

impl Subgroups {
    pub(super) fn of(description: &Description) -> Self {
        Self { all: description.subgroups.clone(), closed: Vec::new() }
    }

    /// Returns the notices about subgroups that have lost all their members in this view.
    fn newly_closed(&mut self, view: &View) -> Vec<String> {
        let text = |id: &SubgroupId| {
            let of = self.all.get(id.index()).filter(|of| !of.reserved)?;
            let remedy = if of.logged {
                "its log is on their disks: start them, then end all nodes of the group and start \
                 them all again"
            } else {
                "its state is lost; set restart_empty = true in the group file if that is \
                 acceptable"
            };
            Some(format!(
                "subgroup \"{}\" is closed, because it had lost all its members; {remedy}",
                of.name
            ))
        };
        let told =
            view.closed.iter().filter(|id| !self.closed.contains(id)).filter_map(text).collect();
        self.closed.clone_from(&view.closed);
        told
    }

    fn has_several_logs(&self) -> bool {
        self.all.iter().filter(|of| of.logged).count() > 1
    }

    fn name(&self, subgroup: SubgroupId) -> &str {
        self.all.get(subgroup.index()).map_or("", |of| &of.name)
    }
}

/// The application of a node.
pub(super) struct NodeApplication {
    printing: Printing,
    output: Output,
    events: Sender<NodeEvent>,
    logs: BTreeMap<SubgroupId, SubgroupLog>,
    subgroups: Subgroups,
    is_member: bool,
    /// Whether a log could not be written. If so, nothing more is written, and this node leaves.
    has_failed: bool,
    /// Lines that the current upcall appends to a log.
    lines: Vec<u8>,
    /// Number of messages in the current upcall.
    messages: usize,
    own: Option<NodeId>,
    /// Number of this node's messages that were delivered in the subgroup of its input.
    own_delivered: u64,
    /// The durable counts that were printed last.
    printed: BTreeMap<SubgroupId, DurableCounts>,
    meter: Arc<Meter>,
}

impl NodeApplication {
    pub(super) fn new(
        printing: Printing,
        output: Output,
        events: Sender<NodeEvent>,
        logs: BTreeMap<SubgroupId, SubgroupLog>,
        subgroups: Subgroups,
        meter: Arc<Meter>,
    ) -> Self {
        Self {
            printing,
            output,
            events,
            logs,
            subgroups,
            is_member: false,
            has_failed: false,
            lines: Vec::new(),
            messages: 0,
            own: None,
            own_delivered: 0,
            printed: BTreeMap::new(),
            meter,
        }
    }

    fn print(&mut self, message: &Message<'_>, to: &mut Vec<u8>) {
        if !self.printing.json {
            return add_message(message.payload, to);
        }
        let line = JsonLine::Delivery {
            subgroup: self.subgroups.name(message.subgroup),
            view: message.view.0,
            place: message.place.get(),
            sender: message.sender.get(),
            client: message.client.map(|client| client.to_string()),
            record: Bytes::of(message.payload),
        };
        add_line(&line, to);
    }

    fn note(&mut self, message: &Message<'_>) {
        add_message(message.payload, &mut self.lines);
        self.messages += 1;
        let is_members = message.client.is_none() && !message.is_replayed;
        let is_own = Some(message.sender) == self.own && is_members;
        self.own_delivered += u64::from(is_own && self.meter.is_of(message.subgroup));
    }

    fn send_event(&self, event: NodeEvent) {
        // The command may have ended already.
        let _ = self.events.send(event);
    }

    fn fail(&mut self, error: &io::Error) {
        self.has_failed = true;
        let failure = match error.kind() {
            // The state does not fit this node. The error contains the remedy.
            io::ErrorKind::InvalidData => Failure::with_text(Status::Group, error),
            _ => {
                let files = self.logs.values().filter_map(SubgroupLog::file);
                let paths: Vec<_> = files.map(|file| file.path().display().to_string()).collect();
                Failure::system(format_args!("cannot write the log {}", paths.join(", ")), error)
            }
        };
        self.send_event(NodeEvent::Failed(failure));
    }

    /// Marks every log as the group's.
    fn begin(&mut self) {
        self.is_member = true;
        let begun: Vec<_> = self.logs.values_mut().map(SubgroupLog::begin).collect();
        for begun in begun {
            match begun {
                Ok(None) => {}
                Ok(Some(kept)) => self.send_event(NodeEvent::Notice(kept_text(&kept))),
                Err(error) => self.fail(&error),
            }
        }
    }
}

impl Application for NodeApplication {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        let subgroup = messages.subgroup();
        self.lines.clear();
        self.messages = 0;
        // Messages from before this node was a member are part of its state.
        if self.printing.deliveries && self.is_member {
            let output = self.output.clone();
            output.put_each(messages, |message, to| {
                self.note(&message);
                self.print(&message, to);
            });
        } else {
            for message in messages {
                self.note(&message);
            }
        }
        self.meter.delivered(self.lines.len() - self.messages, self.own_delivered);
        if self.has_failed {
            return;
        }
        let appended = self.logs.get_mut(&subgroup).map_or(Ok(()), |log| log.append(&self.lines));
        if let Err(error) = appended {
            self.fail(&error);
        }
    }

    fn view_changed(&mut self, change: &ViewChanged<'_>) {
        let is_first = !self.is_member;
        if is_first {
            self.own = Some(change.own);
            self.begin();
        }
        for text in self.subgroups.newly_closed(change.view) {
            self.send_event(NodeEvent::Notice(text));
        }
        let ids = |nodes: &[NodeId]| -> Vec<u32> { nodes.iter().map(|node| node.get()).collect() };
        let (view, members) = (change.view.id.0, ids(&change.view.members));
        // A joining node learns of all members at once, but to its user only the node itself is
        // new.
        let is_joiner = is_first && change.view.id != FIRST_VIEW;
        let joined = if is_joiner { vec![change.own.get()] } else { ids(change.joined) };
        let gone = ids(change.gone);
        if self.printing.json {
            let line = JsonLine::View { view, members, joined, gone };
            return self.output.put_each([line], |line, to| add_line(&line, to));
        }
        let mut text = format!("view {view}: {}", listed(members));
        for (what, nodes) in [("joined", joined), ("gone", gone)] {
            if !nodes.is_empty() {
                text.push_str(&format!("; {what} {}", listed(nodes)));
            }
        }
        self.send_event(NodeEvent::Notice(text));
    }

    fn durable_changed(&mut self, subgroup: SubgroupId, durable: &DurableCounts) {
        // Records that are not lines may have become durable.
        let is_printed = |printed: DurableCounts| printed == *durable;
        if !self.printing.json || self.printed.insert(subgroup, *durable).is_some_and(is_printed) {
            return;
        }
        let name = self.subgroups.has_several_logs().then(|| self.subgroups.name(subgroup));
        let DurableCounts { here, majority, everywhere } = durable;
        let durable = DurableLines { here: here.0, majority: majority.0, all: everywhere.0 };
        let line = Durable { subgroup: name, durable };
        self.output.put_each([line], |line, to| add_line(&line, to));
    }

    fn snapshot(&mut self, subgroup: SubgroupId) -> Box<dyn Read + Send> {
        let nothing = || Ok(Box::new(io::empty()) as Box<dyn Read + Send>);
        let state = if self.has_failed {
            Err(io::Error::other("the log could not be written to its end"))
        } else {
            self.logs.get(&subgroup).map_or_else(nothing, SubgroupLog::snapshot)
        };
        state.unwrap_or_else(|error| Box::new(Unreadable(error)))
    }

    fn restore(&mut self, subgroup: SubgroupId, state: &mut dyn Read) -> io::Result<()> {
        let Some(log) = self.logs.get_mut(&subgroup) else { return Ok(()) };
        let restored = log.restore(state);
        if let Err(error) = &restored {
            self.fail(error);
        }
        restored
    }
}

/// The error for a state that cannot be read. Its reader gets the error, and asks another member.
struct Unreadable(io::Error);

impl Read for Unreadable {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::new(self.0.kind(), self.0.to_string()))
    }
}
