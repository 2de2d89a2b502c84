//! Durability, written exactly as it is defined. Every recorded delivery has its position here.

use tramontane_conformance::history::Event;

use super::Findings;
use super::terms::{DeliverRecord, IncarnationFate, NaiveHistory, StartRecord};

/// A `durable` record.
struct Durable<'h> {
    line: u64,
    node: &'h str,
    inc: u32,
    group: &'h str,
    upto: u64,
}

fn durables<'h>(world: &NaiveHistory<'h>) -> Vec<Durable<'h>> {
    let records = world.events.iter().filter_map(|(line, event)| match event {
        Event::Durable { node, inc, group, upto, .. } => {
            Some(Durable { line: *line, node, inc: *inc, group, upto: *upto })
        }
        _ => None,
    });
    records.collect()
}

/// Returns all recorded deliveries of an incarnation in the group.
fn places<'w, 'h>(
    world: &'w NaiveHistory<'h>,
    node: &str,
    inc: u32,
    group: &str,
) -> Vec<&'w DeliverRecord<'h>> {
    let here = |delivery: &&DeliverRecord<'_>| {
        (delivery.node, delivery.inc) == (node, inc) && delivery.group == group
    };
    world.recorded.iter().filter(here).collect()
}

/// Returns the number of these deliveries before a line.
fn before(places: &[&DeliverRecord<'_>], line: u64) -> usize {
    places.iter().filter(|delivery| delivery.line < line).count()
}

/// `durable-prefix`
pub fn prefix(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    let records = durables(world);
    for record in &records {
        found.case();
        let falls = records.iter().any(|earlier| {
            earlier.line < record.line
                && (earlier.node, earlier.inc, earlier.group)
                    == (record.node, record.inc, record.group)
                && earlier.upto > record.upto
        });
        let delivered = before(&places(world, record.node, record.inc, record.group), record.line);
        found.broken_if(falls || record.upto >= delivered as u64);
    }
    found
}

/// `durable-kept`
pub fn kept(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    for start in &world.starts {
        for group in &world.groups {
            let durable = made_durable(world, start, group.name);
            let later = world
                .starts
                .iter()
                .filter(|later| later.node == start.node && later.line > start.line);
            let replays = later.filter_map(|later| replays(world, later, group.name)).next();
            let (false, Some(replays)) = (durable.is_empty(), replays) else { continue };
            found.case();
            found.broken_if(!replays.starts_with(&durable));
        }
    }
    found
}

/// Returns the messages that an incarnation made durable in the group.
fn made_durable<'h>(
    world: &NaiveHistory<'h>,
    start: &StartRecord<'_>,
    group: &str,
) -> Vec<Option<&'h str>> {
    let places = places(world, start.node, start.inc, group);
    let counts = durables(world).into_iter().filter_map(|record| {
        let here = (record.node, record.inc, record.group) == (start.node, start.inc, group);
        here.then(|| {
            before(&places, record.line)
                .min(usize::try_from(record.upto).unwrap_or(usize::MAX).saturating_add(1))
        })
    });
    let count = counts.max().unwrap_or(0);
    places.iter().take(count).map(|delivery| delivery.message).collect()
}

/// Returns the incarnation's replays in the group before its first new delivery or its end, or
/// `None` if it reached neither.
fn replays<'h>(
    world: &NaiveHistory<'h>,
    start: &StartRecord<'_>,
    group: &str,
) -> Option<Vec<Option<&'h str>>> {
    let places = places(world, start.node, start.inc, group);
    let new = places.iter().position(|delivery| !delivery.replayed);
    let ended = !matches!(start.fate, IncarnationFate::Killed | IncarnationFate::Unfinished);
    if new.is_none() && !ended {
        return None;
    }
    Some(places.iter().take(new.unwrap_or(places.len())).map(|delivery| delivery.message).collect())
}
