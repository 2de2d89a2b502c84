//! The checks of which nodes deliver, written exactly as they are defined.

use super::Findings;
use super::progress;
use super::terms::{IncarnationFate, MessageRecord, NaiveHistory, StartRecord};

/// The unit in which a message is judged: one of its groups that has views, or all of its groups
/// that have none.
pub enum Unit<'m> {
    Viewed(&'m str),
    Plain(Vec<&'m str>),
}

/// A message in one of its units, with the nodes that must deliver it.
struct Duty<'w, 'h> {
    message: &'w MessageRecord<'h>,
    unit: Unit<'w>,
    /// Q
    due: Vec<&'w StartRecord<'h>>,
    /// P
    due_anywhere: Vec<&'w StartRecord<'h>>,
    /// D
    deliverers: Vec<&'w StartRecord<'h>>,
}

fn units<'m>(world: &NaiveHistory<'_>, message: &'m MessageRecord<'_>) -> Vec<Unit<'m>> {
    let (viewed, plain): (Vec<&str>, Vec<&str>) =
        message.groups.iter().partition(|group| world.has_views(group));
    let mut units: Vec<Unit<'_>> = viewed.into_iter().map(Unit::Viewed).collect();
    if !plain.is_empty() {
        units.push(Unit::Plain(plain));
    }
    units
}

/// Returns the view of a message in its unit, if it has one.
fn view(world: &NaiveHistory<'_>, message: &MessageRecord<'_>, unit: &Unit<'_>) -> Option<u64> {
    match unit {
        Unit::Viewed(group) => world.view_of_message(message, group),
        Unit::Plain(_) => None,
    }
}

/// Returns the nodes that must deliver a message of this view.
fn due<'w, 'h>(
    world: &'w NaiveHistory<'h>,
    unit: &Unit<'_>,
    view: Option<u64>,
) -> Vec<&'w StartRecord<'h>> {
    let is_due = |start: &&StartRecord<'h>| match unit {
        Unit::Plain(groups) => {
            world.last_start(start.node) == Some(*start)
                && start.is_correct()
                && groups.iter().any(|group| world.is_member(start.node, group))
        }
        Unit::Viewed(group) => {
            let installed = world.installed(start, group);
            let stayed = start.is_correct() && !world.is_removed(start, group);
            let is_last =
                |view: u64| installed.last().is_some_and(|last| last.id == view) && stayed;
            world.is_member(start.node, group)
                && match view {
                    Some(view) => {
                        installed.iter().any(|installed| installed.id == view)
                            && (world.next_view(start, group, view).is_some() || is_last(view))
                    }
                    None => !installed.is_empty() && stayed,
                }
        }
    };
    world.starts.iter().filter(is_due).collect()
}

fn duties<'w, 'h>(world: &'w NaiveHistory<'h>) -> Vec<Duty<'w, 'h>> {
    let mut duties = Vec::new();
    for message in world.messages.iter().filter(|message| message.refused != Some(true)) {
        let due_anywhere: Vec<&StartRecord<'_>> = units(world, message)
            .iter()
            .flat_map(|unit| due(world, unit, view(world, message, unit)))
            .collect();
        for unit in units(world, message) {
            duties.push(Duty {
                message,
                due: due(world, &unit, view(world, message, &unit)),
                unit,
                due_anywhere: due_anywhere.clone(),
                deliverers: world.deliverers(message),
            });
        }
    }
    duties
}

impl<'h> Duty<'_, 'h> {
    fn lacks(&self, world: &NaiveHistory<'_>, start: &StartRecord<'_>) -> bool {
        !world.node_delivered(start.node, self.message)
    }

    /// Returns the next view that an incarnation installed after the message's view.
    fn next(&self, world: &NaiveHistory<'_>, start: &StartRecord<'_>) -> Option<u64> {
        let Unit::Viewed(group) = self.unit else { return None };
        let view = world.view_of_message(self.message, group)?;
        world.next_view(start, group, view)
    }

    fn anybody_due_delivered(&self, world: &NaiveHistory<'_>) -> bool {
        self.due_anywhere.iter().any(|start| !self.lacks(world, start))
    }

    fn somebody_lacks(&self, world: &NaiveHistory<'_>) -> bool {
        self.due.iter().any(|start| self.lacks(world, start))
    }

    /// Returns whether another node that must deliver the message, and did, installed the same next
    /// view as this node, which lacks it.
    fn is_other_set(&self, world: &NaiveHistory<'_>, lacking: &StartRecord<'_>) -> bool {
        let next = self.next(world, lacking);
        next.is_some()
            && self
                .due
                .iter()
                .any(|other| !self.lacks(world, other) && self.next(world, other) == next)
    }

    fn is_no_longer_there(&self, world: &NaiveHistory<'h>, start: &StartRecord<'h>) -> bool {
        matches!(start.fate, IncarnationFate::Left | IncarnationFate::Halted)
            || world.is_removed_from_any(start, self.message)
            || world.last_start(start.node) != Some(start)
    }
}

/// Returns the messages that would be missed if no node had delivered them (so they have no view
/// here), each with its result: those of `liveness`, or those of `validity`.
pub fn promised(world: &NaiveHistory<'_>, liveness: bool) -> Vec<(String, bool)> {
    let mut promised = Vec::new();
    for duty in duties(world) {
        let message = duty.message;
        let Some(sender) = world.start(message.node, message.inc) else { continue };
        let owed = message.refused.is_none()
            && (sender.is_correct() && !world.is_removed_from_any(sender, message)
                || world.owes_as_a_leaver(sender, message))
            && !due(world, &duty.unit, None).is_empty();
        if owed && progress::is_of_liveness(world, message) == liveness {
            promised.push((message.name.to_owned(), duty.deliverers.is_empty()));
        }
    }
    promised
}

/// `validity`
pub fn validity(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    for (_, lost) in promised(world, false) {
        found.case();
        found.broken_if(lost);
    }
    found
}

/// `agreement`
pub fn agreement(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    for duty in duties(world) {
        if duty.due.is_empty() || !duty.anybody_due_delivered(world) {
            continue;
        }
        found.case();
        found.broken_if(
            duty.due
                .iter()
                .any(|start| duty.lacks(world, start) && !duty.is_other_set(world, start)),
        );
    }
    found
}

/// Judges `view-same-set`.
pub fn same_set(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    for duty in duties(world) {
        if duty
            .due
            .iter()
            .any(|start| !duty.lacks(world, start) && duty.next(world, start).is_some())
        {
            found.case();
        }
        found.broken_if(
            duty.due
                .iter()
                .any(|start| duty.lacks(world, start) && duty.is_other_set(world, start)),
        );
    }
    found
}

/// `uniform-agreement`
pub fn uniform_agreement(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    for duty in duties(world) {
        let by_a_killed_one =
            duty.deliverers.iter().any(|start| start.fate == IncarnationFate::Killed);
        if duty.due.is_empty() || !by_a_killed_one {
            continue;
        }
        found.case();
        found.broken_if(duty.somebody_lacks(world) && !duty.anybody_due_delivered(world));
    }
    found
}

/// `removed-silent`
pub fn removed_silent(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    for duty in duties(world) {
        let gone = |start: &&StartRecord<'_>| duty.is_no_longer_there(world, start);
        if duty.due.is_empty() || !duty.deliverers.iter().any(gone) {
            continue;
        }
        found.case();
        found.broken_if(
            duty.somebody_lacks(world)
                && !duty.anybody_due_delivered(world)
                && duty.deliverers.iter().all(gone)
                && !duty.deliverers.iter().any(|start| start.fate == IncarnationFate::Killed),
        );
    }
    for delivery in &world.deliveries {
        found.broken_if(progress::is_after_its_end(world, delivery));
    }
    found
}
