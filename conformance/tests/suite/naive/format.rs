//! The rules of the format (`docs/history.md`), each checked against the records before the one in
//! question.

use tramontane_conformance::history::{Event, FaultKind, GroupOrder};

type NumberedEvents<'e, 'h> = &'e [(u64, Event<'h>)];

/// Returns the first record that contradicts an earlier one, and describes the contradiction.
pub fn contradiction(events: NumberedEvents<'_, '_>) -> Option<(u64, String)> {
    (0..events.len()).find_map(|place| {
        let (line, event) = &events[place];
        contradicts(event, &events[..place]).map(|how| (*line, how.to_owned()))
    })
}

fn contradicts(event: &Event<'_>, before: NumberedEvents<'_, '_>) -> Option<&'static str> {
    let rules: [(bool, &'static str); 5] = [
        (breaks_run(event, before), "run comes first, once, with version 1 or 2"),
        (
            breaks_groups(event, before),
            "groups are told once, before they are named, with each node once",
        ),
        (breaks_time(event, before), "time falls"),
        (breaks_starts(event, before), "a start is missing, or comes too early, or ended already"),
        (
            breaks_messages(event, before),
            "a message is asked for and answered once, by the right node",
        ),
    ];
    rules.into_iter().find_map(|(broken, rule)| broken.then_some(rule))
}

fn breaks_run(event: &Event<'_>, before: NumberedEvents<'_, '_>) -> bool {
    matches!(event, Event::Run { version, .. } if !(1..=2).contains(version) || !before.is_empty())
}

fn breaks_groups(event: &Event<'_>, before: NumberedEvents<'_, '_>) -> bool {
    let is_told = |name: &str| {
        before
            .iter()
            .any(|(_, earlier)| matches!(earlier, Event::Group { group, .. } if group == name))
    };
    let is_used = |name: &str| {
        before
            .iter()
            .any(|(_, earlier)| matches!(earlier, Event::Deliver { group, .. } if group == name))
    };
    match event {
        Event::Group { group, members, senders, .. } => {
            is_told(group) || is_used(group) || has_doubles(members) || has_doubles(senders)
        }
        Event::View { group, .. } | Event::Durable { group, .. } | Event::Leader { group, .. } => {
            !is_told(group)
        }
        Event::Multicast { groups, .. } => groups.iter().any(|group| !is_told(group)),
        _ => false,
    }
}

fn has_doubles<T: PartialEq>(list: &[T]) -> bool {
    (0..list.len()).any(|place| list[..place].contains(&list[place]))
}

fn breaks_time(event: &Event<'_>, before: NumberedEvents<'_, '_>) -> bool {
    let Some(now) = time(event) else { return false };
    subjects(event).iter().any(|node| {
        before
            .iter()
            .filter(|(_, earlier)| subjects(earlier).contains(node))
            .any(|(_, earlier)| time(earlier).is_some_and(|earlier| earlier > now))
    })
}

fn breaks_starts(event: &Event<'_>, before: NumberedEvents<'_, '_>) -> bool {
    let Some((node, inc)) = start_of(event) else { return false };
    let last = before.iter().rposition(
        |(_, earlier)| matches!(earlier, Event::Start { node: earlier, .. } if earlier == node),
    );
    match (event, last) {
        (Event::Start { .. }, None) => false,
        (_, None) => true,
        (Event::Start { .. }, Some(place)) => {
            let last_inc = start_of(&before[place].1).map(|(_, inc)| inc);
            last_inc >= Some(inc) || !ended_or_killed(node, &before[place..])
        }
        (_, Some(place)) => {
            start_of(&before[place].1) != Some((node, inc))
                || (matches!(event, Event::End { .. }) && ended(node, &before[place..]))
        }
    }
}

fn ended(of: &str, records: NumberedEvents<'_, '_>) -> bool {
    records.iter().any(|(_, event)| matches!(event, Event::End { node, .. } if node == of))
}

fn ended_or_killed(of: &str, records: NumberedEvents<'_, '_>) -> bool {
    let killed = records.iter().any(|(_, event)| match event {
        Event::Fault { kind: FaultKind::Kill, nodes, .. } => nodes.iter().any(|node| node == of),
        _ => false,
    });
    killed || ended(of, records)
}

fn breaks_messages(event: &Event<'_>, before: NumberedEvents<'_, '_>) -> bool {
    match event {
        Event::Multicast { msg, groups, node, .. } => {
            msg.is_empty()
                || groups.is_empty()
                || has_doubles(groups)
                || groups.iter().any(|group| !is_sender(node, group, before))
                || (groups.len() > 1 && groups.iter().any(|group| has_its_own_order(group, before)))
                || before.iter().any(
                    |(_, earlier)| matches!(earlier, Event::Multicast { msg: earlier, .. } if earlier == msg),
                )
        }
        Event::Accepted { msg, .. } | Event::Refused { msg, .. } => {
            let by_this_start = before.iter().any(|(_, earlier)| {
                matches!(earlier, Event::Multicast { msg: asked, .. } if asked == msg)
                    && start_of(earlier) == start_of(event)
            });
            !by_this_start
                || before.iter().any(
                    |(_, earlier)| matches!(earlier, Event::Accepted { msg: earlier, .. } | Event::Refused { msg: earlier, .. } if earlier == msg),
                )
        }
        _ => false,
    }
}

fn is_sender(node: &str, of: &str, before: NumberedEvents<'_, '_>) -> bool {
    before.iter().any(|(_, event)| match event {
        Event::Group { group, senders, .. } => {
            group == of && senders.iter().any(|sender| sender == node)
        }
        _ => false,
    })
}

fn has_its_own_order(of: &str, before: NumberedEvents<'_, '_>) -> bool {
    before.iter().any(|(_, event)| match event {
        Event::Group { group, order, .. } => group == of && *order == GroupOrder::Group,
        _ => false,
    })
}

/// Returns the incarnation that a record is about.
fn start_of<'e>(event: &'e Event<'_>) -> Option<(&'e str, u32)> {
    match event {
        Event::Start { node, inc, .. }
        | Event::View { node, inc, .. }
        | Event::Multicast { node, inc, .. }
        | Event::Accepted { node, inc, .. }
        | Event::Refused { node, inc, .. }
        | Event::Leave { node, inc, .. }
        | Event::Stop { node, inc, .. }
        | Event::Deliver { node, inc, .. }
        | Event::Durable { node, inc, .. }
        | Event::Leader { node, inc, .. }
        | Event::Stats { node, inc, .. }
        | Event::End { node, inc, .. } => Some((node, *inc)),
        Event::Run { .. } | Event::Group { .. } | Event::Fault { .. } | Event::Unknown { .. } => {
            None
        }
    }
}

/// Returns the nodes that a record belongs to.
fn subjects<'e>(event: &'e Event<'_>) -> Vec<&'e str> {
    match event {
        Event::Fault { nodes, .. } => nodes.iter().map(AsRef::as_ref).collect(),
        _ => start_of(event).map(|(node, _)| node).into_iter().collect(),
    }
}

/// Returns the time of a record.
pub fn time(event: &Event<'_>) -> Option<u64> {
    match event {
        Event::Start { t_ns, .. }
        | Event::View { t_ns, .. }
        | Event::Multicast { t_ns, .. }
        | Event::Accepted { t_ns, .. }
        | Event::Refused { t_ns, .. }
        | Event::Leave { t_ns, .. }
        | Event::Stop { t_ns, .. }
        | Event::Deliver { t_ns, .. }
        | Event::Durable { t_ns, .. }
        | Event::Leader { t_ns, .. }
        | Event::Stats { t_ns, .. }
        | Event::Fault { t_ns, .. }
        | Event::End { t_ns, .. } => Some(*t_ns),
        Event::Run { .. } | Event::Group { .. } | Event::Unknown { .. } => None,
    }
}
