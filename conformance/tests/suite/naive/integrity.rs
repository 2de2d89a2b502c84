//! Integrity, written exactly as it is defined.

use super::Findings;
use super::terms::NaiveHistory;

/// `integrity-once`
pub fn once(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    for delivery in &world.deliveries {
        found.case();
        let again = world.recorded.iter().any(|later| {
            later.line > delivery.line
                && (later.node, later.inc) == (delivery.node, delivery.inc)
                && later.message == delivery.message
        });
        found.broken_if(again);
    }
    found
}

/// `integrity-sent`
pub fn sent(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    for delivery in &world.recorded {
        let Some(name) = delivery.message else { continue };
        let asked = world.message(name).filter(|message| message.refused != Some(true));
        let Some(message) = asked else {
            found.case();
            found.broken_if(true);
            continue;
        };
        if world.is_repeat(delivery) || !world.is_addressed(message, delivery.node) {
            continue;
        }
        found.case();
        let by_its_sender = (message.node, message.inc) == (delivery.node, delivery.inc);
        found.broken_if(
            message.t_ns > delivery.t_ns
                || (by_its_sender && message.line > delivery.line)
                || delivery.sender.is_some_and(|sender| sender != message.node),
        );
    }
    found
}

/// `integrity-addressee`
pub fn addressee(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    for delivery in &world.recorded {
        let Some(message) = delivery.message.and_then(|name| world.message(name)) else { continue };
        if message.refused == Some(true) || world.is_repeat(delivery) {
            continue;
        }
        found.case();
        found.broken_if(!world.is_in_its_group(delivery));
    }
    found
}

/// `integrity-bytes`
pub fn bytes(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    for delivery in &world.deliveries {
        let Some(message) = delivery.message.and_then(|name| world.message(name)) else { continue };
        let sizes = message.bytes.zip(delivery.bytes);
        let digests = message.digest.zip(delivery.digest);
        if sizes.is_none() && digests.is_none() {
            continue;
        }
        found.case();
        found.broken_if(
            sizes.is_some_and(|(sent, delivered)| sent != delivered)
                || digests.is_some_and(|(sent, delivered)| sent != delivered),
        );
    }
    found
}

/// `nulls-invisible`
pub fn nulls_invisible(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    for delivery in &world.recorded {
        found.case();
        found.broken_if(delivery.message.is_none());
    }
    found
}
