//! Views, written exactly as they are defined.

use super::Findings;
use super::terms::{DeliverRecord, IncarnationFate, NaiveHistory, ViewRecord};

/// `view-unique`
pub fn unique(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    for one in &world.views {
        found.case();
        let is_impossible = |place: usize, member: &&str| {
            let starts = world.starts.iter().any(|start| start.node == *member);
            let is_in_a_group = world.groups.iter().any(|group| group.members.contains(member));
            !starts && !is_in_a_group || one.members[..place].contains(member)
        };
        let mut members = one.members.iter().enumerate();
        found.broken_if(members.any(|(place, member)| is_impossible(place, member)));
        for other in &world.views {
            let same = one.group == other.group && one.id == other.id;
            found.broken_if(same && one.members != other.members);
        }
    }
    found
}

/// `view-rising`
pub fn rising(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    for view in &world.views {
        found.case();
        let before = world.views.iter().rfind(|earlier| {
            earlier.line < view.line && earlier.node == view.node && earlier.group == view.group
        });
        found.broken_if(before.is_some_and(|earlier| earlier.id >= view.id));
    }
    found
}

/// `view-self`
pub fn includes_self(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    for view in &world.views {
        found.case();
        found.broken_if(!view.members.contains(&view.node));
    }
    found
}

/// `view-majority`
pub fn majority(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    for from in &world.views {
        let next = world.views.iter().find(|later| {
            later.line > from.line
                && (later.node, later.inc, later.group) == (from.node, from.inc, from.group)
        });
        let Some(to) = next else { continue };
        found.case();
        let mut members = from.members.clone();
        members.sort_unstable();
        members.dedup();
        let accounted = members
            .iter()
            .filter(|member| to.members.contains(member) || went(world, member, from, to));
        found.broken_if(2 * accounted.count() <= members.len());
    }
    found
}

/// Returns whether an incarnation of the node that installed the view has left, or was asked to
/// stop before the next view.
fn went(
    world: &NaiveHistory<'_>,
    node: &str,
    view: &ViewRecord<'_>,
    next: &ViewRecord<'_>,
) -> bool {
    let stopped = |start| world.stopped(start).is_some_and(|at| at < (next.t_ns, next.line));
    world.starts.iter().any(|start| {
        start.node == node
            && (start.fate == IncarnationFate::Left || stopped(start))
            && world.installed(start, view.group).iter().any(|installed| installed.id == view.id)
    })
}

/// `view-delivery`
pub fn delivery(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    let judged: Vec<&DeliverRecord<'_>> = world
        .deliveries
        .iter()
        .filter(|delivery| {
            !delivery.replayed && world.has_views(delivery.group) && world.is_in_its_group(delivery)
        })
        .collect();
    for delivery in &judged {
        found.case();
        let installed = world.last_installed_before(delivery);
        found.broken_if(
            installed.is_none() || delivery.view.is_some_and(|view| Some(view) != installed),
        );
        for other in &judged {
            let same = other.message == delivery.message && other.group == delivery.group;
            let views = world.view_of_delivery(delivery).zip(world.view_of_delivery(other));
            found.broken_if(same && views.is_some_and(|(one, other)| one != other));
        }
    }
    found
}
