//! The conditions of `liveness` about views and survivors, written exactly as they are defined.

use tramontane_conformance::history::{Event, FaultKind};

use super::Findings;
use super::progress::faults;
use super::terms::{
    GroupRecord, IncarnationFate, NaiveHistory, StartRecord, ViewRecord, is_founder,
};

/// The time that a member must have had before it was asked to stop, in nanoseconds.
const INSTALL_NS: u64 = 100_000_000;

/// A time and a line.
type At = (u64, u64);

pub fn judge(world: &NaiveHistory<'_>, found: &mut Findings) {
    let is_kill = |(_, kind, _): &(u64, FaultKind, Vec<&str>)| *kind == FaultKind::Kill;
    let faults = faults(world);
    let only_kills = !faults.is_empty() && faults.iter().all(is_kill);
    for group in &world.groups {
        let of_members = world.starts.iter().filter(|start| group.members.contains(&start.node));
        for start in of_members {
            found.broken_if(lacks_a_view(world, group, start));
            found.broken_if(is_kept_by_all(world, group, start));
            found.broken_if(only_kills && gave_up(world, group, start));
        }
    }
}

fn is_last(world: &NaiveHistory<'_>, start: &StartRecord<'_>) -> bool {
    world.last_start(start.node) == Some(start)
}

fn time_of_start(world: &NaiveHistory<'_>, start: &StartRecord<'_>) -> At {
    let times = world.events.iter().find_map(|(line, event)| match event {
        Event::Start { t_ns, .. } if *line == start.line => Some((*t_ns, *line)),
        _ => None,
    });
    times.expect("the incarnation has started")
}

fn end_of(world: &NaiveHistory<'_>, start: &StartRecord<'_>) -> Option<At> {
    world.events.iter().find_map(|(line, event)| match event {
        Event::End { t_ns, node, inc, .. } if (&**node, *inc) == (start.node, start.inc) => {
            Some((*t_ns, *line))
        }
        _ => None,
    })
}

/// Returns the first kill of the node after the start of this incarnation.
fn kill_of(world: &NaiveHistory<'_>, start: &StartRecord<'_>) -> Option<At> {
    world.events.iter().find_map(|(line, event)| match event {
        Event::Fault { t_ns, kind: FaultKind::Kill, nodes, .. }
            if *line > start.line && nodes.iter().any(|node| node == start.node) =>
        {
            Some((*t_ns, *line))
        }
        _ => None,
    })
}

fn was_killed(world: &NaiveHistory<'_>, node: &str) -> bool {
    let of_node = world.starts.iter().filter(|start| start.node == node);
    of_node.into_iter().any(|start| kill_of(world, start).is_some())
}

fn had_time(event: At, stop: Option<At>) -> bool {
    stop.is_none_or(|stop| event.0.saturating_add(INSTALL_NS) <= stop.0)
}

fn is_before(event: At, stop: Option<At>) -> bool {
    stop.is_none_or(|stop| event < stop)
}

/// Returns whether more than half of the members meet the condition with their last incarnations.
fn is_majority(
    world: &NaiveHistory<'_>,
    members: &[&str],
    meets: impl Fn(&StartRecord<'_>) -> bool,
) -> bool {
    let mut members = members.to_vec();
    members.sort_unstable();
    members.dedup();
    let met = members.iter().filter(|member| world.last_start(member).is_some_and(&meets));
    2 * met.count() > members.len()
}

fn by_others<'w, 'h>(
    world: &'w NaiveHistory<'h>,
    group: &GroupRecord<'_>,
    node: &str,
) -> Vec<&'w ViewRecord<'h>> {
    let of_others = |view: &&ViewRecord<'_>| view.group == group.name && view.node != node;
    world.views.iter().filter(of_others).collect()
}

fn lacks_a_view(
    world: &NaiveHistory<'_>,
    group: &GroupRecord<'_>,
    start: &StartRecord<'_>,
) -> bool {
    if !start.is_correct() || world.is_removed(start, group.name) {
        return false;
    }
    let (begun, stop) = (time_of_start(world, start), world.stopped(start));
    let mut others = by_others(world, group, start.node);
    others.retain(|view| (view.t_ns, view.line) > begun && is_before((view.t_ns, view.line), stop));
    let mut in_time: Vec<&ViewRecord<'_>> =
        others.iter().copied().filter(|view| had_time((view.t_ns, view.line), stop)).collect();
    in_time.sort_by_key(|view| (std::cmp::Reverse(view.id), view.t_ns, view.line));
    let Some(view) = in_time.first() else { return false };
    let own = world.installed(start, group.name);
    let was_removed_again =
        others.iter().any(|later| later.id > view.id && !later.members.contains(&start.node));
    view.members.contains(&start.node)
        && !own.iter().any(|own| own.id >= view.id)
        && !(own.is_empty() && was_removed_again)
        && is_majority(world, &view.members, |member| member.is_correct())
}

fn is_kept_by_all(
    world: &NaiveHistory<'_>,
    group: &GroupRecord<'_>,
    start: &StartRecord<'_>,
) -> bool {
    let gone = match start.fate {
        IncarnationFate::Killed => kill_of(world, start),
        IncarnationFate::Left if world.leave(start).is_some() => end_of(world, start),
        _ => None,
    };
    let Some(gone) = gone.filter(|_| is_last(world, start)) else { return false };
    let survivors = world.starts.iter().filter(|other| {
        other.node != start.node
            && group.members.contains(&other.node)
            && is_last(world, other)
            && other.is_correct()
            && !world.is_removed(other, group.name)
            && had_time(gone, world.stopped(other))
    });
    let mut last: Vec<&ViewRecord<'_>> = survivors
        .filter_map(|other| {
            let stop = world.stopped(other);
            let installed = world.installed(other, group.name);
            installed.into_iter().rfind(|view| is_before((view.t_ns, view.line), stop))
        })
        .collect();
    last.sort_by_key(|view| (std::cmp::Reverse(view.id), view.t_ns, view.line));
    last.first().is_some_and(|highest| {
        last.iter().all(|view| view.members.contains(&start.node))
            && is_majority(world, &highest.members, |member| {
                member.is_correct() || member.fate == IncarnationFate::Left
            })
    })
}

fn gave_up(world: &NaiveHistory<'_>, group: &GroupRecord<'_>, start: &StartRecord<'_>) -> bool {
    let Some(at) = end_of(world, start) else { return false };
    let was_asked = world.leave(start).is_some()
        || world
            .events
            .iter()
            .any(|(line, event)| matches!(event, Event::Stop { t_ns, .. } if (*t_ns, *line) < at));
    if start.fate != IncarnationFate::Halted
        || !is_last(world, start)
        || was_asked
        || was_killed(world, start.node)
    {
        return false;
    }
    if !world.has_views(group.name) {
        return is_founder(world.events, start) && lives(world, &group.members, at);
    }
    let Some(last) = world.installed(start, group.name).last().copied() else { return false };
    let mut later = by_others(world, group, start.node);
    later.retain(|view| view.id > last.id);
    let had_removed =
        later.iter().any(|view| (view.t_ns, view.line) < at && !view.members.contains(&start.node));
    later.sort_by_key(|view| (view.id, view.t_ns, view.line));
    let was_kept = later.first().is_none_or(|next| next.members.contains(&start.node))
        || !last.members.iter().any(|member| was_killed(world, member));
    was_kept && !had_removed && lives(world, &last.members, at)
}

/// Returns whether most of the members, except those that had left, were never killed and had not
/// ended.
fn lives(world: &NaiveHistory<'_>, members: &[&str], at: At) -> bool {
    let mut members = members.to_vec();
    members.sort_unstable();
    members.dedup();
    let had_ended = |member: &&str| {
        let last = world.last_start(member)?;
        end_of(world, last).filter(|end| *end < at).map(|_| last.fate)
    };
    members.retain(|member| had_ended(member) != Some(IncarnationFate::Left));
    let lives = |member: &&&str| {
        world.last_start(member).is_some()
            && had_ended(member).is_none()
            && !was_killed(world, member)
    };
    2 * members.iter().filter(lives).count() > members.len()
}
