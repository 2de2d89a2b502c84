//! The terms of `docs/checks.md`, each computed by searching the whole history.

use tramontane_conformance::history::{EndReason, Event, FaultKind, GroupOrder};

/// The fate of an incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncarnationFate {
    Done,
    Left,
    Halted,
    Hung,
    Killed,
    Unfinished,
}

/// One incarnation of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartRecord<'h> {
    pub node: &'h str,
    pub inc: u32,
    pub line: u64,
    pub fate: IncarnationFate,
}

impl StartRecord<'_> {
    pub fn is_correct(&self) -> bool {
        matches!(self.fate, IncarnationFate::Done | IncarnationFate::Hung)
    }
}

/// A message, from its `multicast` record and its answers.
#[derive(Clone, Debug)]
pub struct MessageRecord<'h> {
    pub name: &'h str,
    pub line: u64,
    pub t_ns: u64,
    pub node: &'h str,
    pub inc: u32,
    pub groups: Vec<&'h str>,
    pub bytes: Option<u64>,
    pub digest: Option<&'h str>,
    /// Whether the sender accepted the message.
    pub accepted: bool,
    /// `None` if the message was not refused; otherwise whether it was refused definitely.
    pub refused: Option<bool>,
}

/// A `deliver` record.
#[derive(Clone, Copy, Debug)]
pub struct DeliverRecord<'h> {
    pub line: u64,
    pub t_ns: u64,
    pub node: &'h str,
    pub inc: u32,
    pub group: &'h str,
    pub view: Option<u64>,
    /// `None` if the delivered data is not a message.
    pub message: Option<&'h str>,
    pub sender: Option<&'h str>,
    pub bytes: Option<u64>,
    pub digest: Option<&'h str>,
    pub replayed: bool,
}

impl DeliverRecord<'_> {
    pub fn is_by(&self, start: &StartRecord<'_>) -> bool {
        self.node == start.node && self.inc == start.inc
    }
}

/// A `view` record.
#[derive(Clone, Debug)]
pub struct ViewRecord<'h> {
    pub line: u64,
    pub t_ns: u64,
    pub node: &'h str,
    pub inc: u32,
    pub group: &'h str,
    pub id: u64,
    pub members: Vec<&'h str>,
}

/// A `group` record.
#[derive(Clone, Debug)]
pub struct GroupRecord<'h> {
    pub name: &'h str,
    pub members: Vec<&'h str>,
    pub order: GroupOrder,
}

/// A history, with the terms that the checks use.
pub struct NaiveHistory<'h> {
    pub events: &'h [(u64, Event<'h>)],
    pub groups: Vec<GroupRecord<'h>>,
    pub starts: Vec<StartRecord<'h>>,
    pub messages: Vec<MessageRecord<'h>>,
    /// Every `deliver` record.
    pub recorded: Vec<DeliverRecord<'h>>,
    /// The deliveries that no check ignores.
    pub deliveries: Vec<DeliverRecord<'h>>,
    pub views: Vec<ViewRecord<'h>>,
}

impl<'h> NaiveHistory<'h> {
    /// Creates the world from the history as it is, or as if every unfinished incarnation were
    /// done.
    pub fn new(events: &'h [(u64, Event<'h>)], were_all_done: bool) -> Self {
        let mut world = Self {
            events,
            groups: groups(events),
            starts: starts(events, were_all_done),
            messages: messages(events),
            recorded: recorded(events),
            deliveries: Vec::new(),
            views: views(events),
        };
        world.deliveries = world
            .recorded
            .iter()
            .copied()
            .filter(|delivery| !world.is_passed_over(delivery))
            .collect();
        world
    }

    pub fn is_member(&self, node: &str, group: &str) -> bool {
        self.groups.iter().any(|told| told.name == group && told.members.contains(&node))
    }

    /// Returns whether the group promises its members one order.
    pub fn is_ordered(&self, group: &str) -> bool {
        self.groups.iter().any(|told| told.name == group && told.order != GroupOrder::Sender)
    }

    /// Returns whether one order is promised for both messages.
    pub fn share_an_order(&self, one: &MessageRecord<'_>, other: &MessageRecord<'_>) -> bool {
        let has_its_own = |group: &&&str| {
            self.groups.iter().any(|told| told.name == **group && told.order == GroupOrder::Group)
        };
        let is_apart = |one: &MessageRecord<'_>, other: &MessageRecord<'_>| {
            one.groups.iter().filter(has_its_own).any(|group| !other.groups.contains(group))
        };
        !is_apart(one, other) && !is_apart(other, one)
    }

    pub fn has_views(&self, group: &str) -> bool {
        self.views.iter().any(|view| view.group == group)
    }

    pub fn message(&self, name: &str) -> Option<&MessageRecord<'h>> {
        self.messages.iter().find(|message| message.name == name)
    }

    pub fn start(&self, node: &str, inc: u32) -> Option<&StartRecord<'h>> {
        self.starts.iter().find(|start| start.node == node && start.inc == inc)
    }

    pub fn last_start(&self, node: &str) -> Option<&StartRecord<'h>> {
        self.starts.iter().rfind(|start| start.node == node)
    }

    pub fn is_addressed(&self, message: &MessageRecord<'_>, node: &str) -> bool {
        message.groups.iter().any(|group| self.is_member(node, group))
    }

    /// Returns whether the incarnation delivered the message on an earlier line.
    pub fn is_repeat(&self, delivery: &DeliverRecord<'_>) -> bool {
        self.recorded.iter().any(|earlier| {
            earlier.line < delivery.line
                && (earlier.node, earlier.inc) == (delivery.node, delivery.inc)
                && earlier.message == delivery.message
        })
    }

    fn is_passed_over(&self, delivery: &DeliverRecord<'_>) -> bool {
        let Some(message) = delivery.message.and_then(|name| self.message(name)) else {
            return true;
        };
        message.refused == Some(true)
            || !self.is_addressed(message, delivery.node)
            || self.is_repeat(delivery)
    }

    /// Returns whether the delivery came through one of the message's groups, and the node is a
    /// member of it.
    pub fn is_in_its_group(&self, delivery: &DeliverRecord<'_>) -> bool {
        let message = delivery.message.and_then(|name| self.message(name));
        message.is_some_and(|message| message.groups.contains(&delivery.group))
            && self.is_member(delivery.node, delivery.group)
    }

    /// Returns whether any incarnation of the node delivered the message.
    pub fn node_delivered(&self, node: &str, message: &MessageRecord<'_>) -> bool {
        self.deliveries
            .iter()
            .any(|delivery| delivery.node == node && delivery.message == Some(message.name))
    }

    /// Returns the incarnations that delivered the message.
    pub fn deliverers(&self, message: &MessageRecord<'_>) -> Vec<&StartRecord<'h>> {
        let delivered = |start: &&StartRecord<'h>| {
            self.deliveries
                .iter()
                .any(|delivery| delivery.is_by(start) && delivery.message == Some(message.name))
        };
        self.starts.iter().filter(delivered).collect()
    }

    /// Returns the deliveries of the incarnation, in order.
    pub fn log(&self, start: &StartRecord<'_>) -> Vec<&DeliverRecord<'h>> {
        self.deliveries.iter().filter(|delivery| delivery.is_by(start)).collect()
    }

    /// Returns the group's views that the incarnation installed, in order.
    pub fn installed(&self, start: &StartRecord<'_>, group: &str) -> Vec<&ViewRecord<'h>> {
        let by_start = |view: &&ViewRecord<'h>| {
            (view.node, view.inc) == (start.node, start.inc) && view.group == group
        };
        self.views.iter().filter(by_start).collect()
    }

    /// Returns the view of a delivery.
    pub fn view_of_delivery(&self, delivery: &DeliverRecord<'_>) -> Option<u64> {
        delivery.view.or_else(|| self.last_installed_before(delivery))
    }

    /// Returns the last view of the delivery's group that its incarnation installed on an earlier
    /// line.
    pub fn last_installed_before(&self, delivery: &DeliverRecord<'_>) -> Option<u64> {
        self.in_view_at(delivery, delivery.group)
    }

    /// Returns the last view of a group that the delivery's incarnation installed on an earlier
    /// line.
    fn in_view_at(&self, delivery: &DeliverRecord<'_>, group: &str) -> Option<u64> {
        let start = self.start(delivery.node, delivery.inc)?;
        let installed = self.installed(start, group);
        installed.iter().rfind(|view| view.line < delivery.line).map(|view| view.id)
    }

    /// Returns the view of a message in a group: the lowest view of its deliveries there, without
    /// replays. If there are none, this is the lowest view in which members delivered the message
    /// through another of its groups.
    pub fn view_of_message(&self, message: &MessageRecord<'_>, group: &str) -> Option<u64> {
        let by_members = self.deliveries.iter().filter(|delivery| {
            delivery.message == Some(message.name)
                && !delivery.replayed
                && self.is_in_its_group(delivery)
                && self.is_member(delivery.node, group)
        });
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            by_members.partition(|delivery| delivery.group == group);
        let view_here = here.iter().filter_map(|delivery| self.view_of_delivery(delivery)).min();
        view_here.or_else(|| {
            elsewhere.iter().filter_map(|delivery| self.in_view_at(delivery, group)).min()
        })
    }

    /// Returns the next view that the incarnation installed after `view`, if any.
    pub fn next_view(&self, start: &StartRecord<'_>, group: &str, view: u64) -> Option<u64> {
        let installed = self.installed(start, group);
        let place = installed.iter().position(|installed| installed.id == view)?;
        installed.get(place + 1).map(|next| next.id)
    }

    /// Returns whether the incarnation was removed from the group, knowingly or not.
    pub fn is_removed(&self, start: &StartRecord<'_>, group: &str) -> bool {
        !matches!(
            start.fate,
            IncarnationFate::Killed | IncarnationFate::Left | IncarnationFate::Halted
        ) && self.is_removed_before(start, group, self.stopped(start))
    }

    /// Returns whether the history records senders' answers.
    pub fn tells_answers(&self) -> bool {
        self.events.iter().any(|(_, event)| matches!(event, Event::Run { version: 2.., .. }))
    }

    /// Returns the time and line of an incarnation's first request to leave.
    pub fn leave(&self, start: &StartRecord<'_>) -> Option<(u64, u64)> {
        self.events.iter().find_map(|(line, event)| match event {
            Event::Leave { t_ns, node, inc } if *node == start.node && *inc == start.inc => {
                Some((*t_ns, *line))
            }
            _ => None,
        })
    }

    /// Returns the time and line of an incarnation's first request to stop, or else of its end as
    /// done or hung.
    pub fn stopped(&self, start: &StartRecord<'_>) -> Option<(u64, u64)> {
        use EndReason::{Done, Hung};
        let asked = self.events.iter().find_map(|(line, event)| match event {
            Event::Stop { t_ns, node, inc } if *node == start.node && *inc == start.inc => {
                Some((*t_ns, *line))
            }
            _ => None,
        });
        asked.or_else(|| {
            self.events.iter().find_map(|(line, event)| match event {
                Event::End { t_ns, node, inc, reason: Done | Hung }
                    if *node == start.node && *inc == start.inc =>
                {
                    Some((*t_ns, *line))
                }
                _ => None,
            })
        })
    }

    /// Returns whether another node had installed a view without the incarnation, before the given
    /// moment if there is one.
    fn is_removed_before(
        &self,
        start: &StartRecord<'_>,
        group: &str,
        moment: Option<(u64, u64)>,
    ) -> bool {
        let Some(last) = self.installed(start, group).last().map(|view| view.id) else {
            return false;
        };
        self.views.iter().any(|view| {
            view.group == group
                && moment.is_none_or(|moment| (view.t_ns, view.line) < moment)
                && view.node != start.node
                && view.id > last
                && !view.members.contains(&start.node)
        })
    }

    /// Returns whether the incarnation left on request, as a member, after accepting the message.
    pub fn owes_as_a_leaver(&self, start: &StartRecord<'_>, message: &MessageRecord<'_>) -> bool {
        let Some(leave) = self.leave(start) else { return false };
        start.fate == IncarnationFate::Left
            && message.accepted
            && !message.groups.iter().any(|group| self.is_removed_before(start, group, Some(leave)))
    }

    pub fn is_removed_from_any(
        &self,
        start: &StartRecord<'_>,
        message: &MessageRecord<'_>,
    ) -> bool {
        message.groups.iter().any(|group| self.is_removed(start, group))
    }
}

fn groups<'h>(events: &'h [(u64, Event<'h>)]) -> Vec<GroupRecord<'h>> {
    let told = events.iter().filter_map(|(_, event)| match event {
        Event::Group { group, members, order, .. } => Some(GroupRecord {
            name: group,
            members: members.iter().map(AsRef::as_ref).collect(),
            order: *order,
        }),
        _ => None,
    });
    told.collect()
}

fn starts<'h>(events: &'h [(u64, Event<'h>)], were_all_done: bool) -> Vec<StartRecord<'h>> {
    let begun = events.iter().filter_map(|(line, event)| match event {
        Event::Start { node, inc, .. } => {
            let fate = match fate(events, node, *inc, *line) {
                IncarnationFate::Unfinished if were_all_done => IncarnationFate::Done,
                fate => fate,
            };
            Some(StartRecord { node, inc: *inc, line: *line, fate })
        }
        _ => None,
    });
    begun.collect()
}

fn fate(events: &[(u64, Event<'_>)], of: &str, of_inc: u32, from: u64) -> IncarnationFate {
    let end = events.iter().find_map(|(_, event)| match event {
        Event::End { node, inc, reason, .. } if node == of && *inc == of_inc => Some(*reason),
        _ => None,
    });
    let next = events.iter().find_map(|(line, event)| match event {
        Event::Start { node, .. } if node == of && *line > from => Some(*line),
        _ => None,
    });
    let is_killed = events.iter().any(|(line, event)| match event {
        Event::Fault { kind: FaultKind::Kill, nodes, .. } => {
            nodes.iter().any(|node| node == of)
                && *line > from
                && next.is_none_or(|next| *line < next)
        }
        _ => false,
    });
    match end {
        Some(EndReason::Done) => IncarnationFate::Done,
        Some(EndReason::Left) => IncarnationFate::Left,
        Some(EndReason::Halted) => IncarnationFate::Halted,
        Some(EndReason::Hung) => IncarnationFate::Hung,
        None if is_killed => IncarnationFate::Killed,
        None => IncarnationFate::Unfinished,
    }
}

fn messages<'h>(events: &'h [(u64, Event<'h>)]) -> Vec<MessageRecord<'h>> {
    let asked = events.iter().filter_map(|(line, event)| match event {
        Event::Multicast { t_ns, node, inc, msg, groups, bytes, digest } => Some(MessageRecord {
            name: msg,
            line: *line,
            t_ns: *t_ns,
            node,
            inc: *inc,
            groups: groups.iter().map(AsRef::as_ref).collect(),
            bytes: *bytes,
            digest: digest.as_deref(),
            accepted: is_accepted(events, msg),
            refused: refusal(events, msg),
        }),
        _ => None,
    });
    asked.collect()
}

fn refusal(events: &[(u64, Event<'_>)], message: &str) -> Option<bool> {
    events.iter().find_map(|(_, event)| match event {
        Event::Refused { msg, definite, .. } if msg == message => Some(*definite),
        _ => None,
    })
}

fn is_accepted(events: &[(u64, Event<'_>)], message: &str) -> bool {
    events.iter().any(|(_, event)| matches!(event, Event::Accepted { msg, .. } if msg == message))
}

fn recorded<'h>(events: &'h [(u64, Event<'h>)]) -> Vec<DeliverRecord<'h>> {
    let is_founder = |of: &str, of_inc: u32| {
        let start =
            starts(events, false).into_iter().find(|start| (start.node, start.inc) == (of, of_inc));
        start.is_some_and(|start| is_founder(events, &start))
    };
    let delivered = events.iter().filter_map(|(line, event)| match event {
        Event::Deliver { t_ns, node, inc, group, view, msg, sender, bytes, digest, replayed } => {
            Some(DeliverRecord {
                line: *line,
                t_ns: *t_ns,
                node,
                inc: *inc,
                group,
                view: *view,
                message: msg.as_deref().filter(|name| !name.is_empty()),
                sender: sender.as_deref(),
                bytes: *bytes,
                digest: digest.as_deref(),
                replayed: *replayed && !is_founder(node, *inc),
            })
        }
        _ => None,
    });
    delivered.collect()
}

/// Returns whether the incarnation started before any view, multicast or delivery.
pub fn is_founder(events: &[(u64, Event<'_>)], start: &StartRecord<'_>) -> bool {
    !events.iter().any(|(line, event)| {
        let counts =
            matches!(event, Event::View { .. } | Event::Multicast { .. } | Event::Deliver { .. });
        counts && *line < start.line
    })
}

fn views<'h>(events: &'h [(u64, Event<'h>)]) -> Vec<ViewRecord<'h>> {
    let installed = events.iter().filter_map(|(line, event)| match event {
        Event::View { t_ns, node, inc, group, view, members } => Some(ViewRecord {
            line: *line,
            t_ns: *t_ns,
            node,
            inc: *inc,
            group,
            id: *view,
            members: members.iter().map(AsRef::as_ref).collect(),
        }),
        _ => None,
    });
    installed.collect()
}
