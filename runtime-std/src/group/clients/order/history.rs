//! A member's record of the order, for clients that resume (EXT-3): digests at given positions,
//! taken from memory, or from a log for positions that are older.

use tramontane_control::client_messages::{Compared, Position};
use tramontane_core::ids::SubgroupId;

use super::feed::{Feed, SubgroupFeed};
use super::retained::{CHUNK_BYTES, Known, RetainedMessage};
use crate::group::clients::origin::Origin;
use crate::group::durable::comparison::SharedLog;

/// Returns the order of a subgroup: the view, the end, and the digests at the given positions.
pub(crate) fn compare(feed: &Feed, subgroup: SubgroupId, places: &[u64]) -> Compared {
    let told = feed.lock();
    // The view is read first, so that everything delivered in earlier views lies before the end.
    let view = told.view_number();
    let end = told.subgroups.get(&subgroup).map(|of| of.retained.end_position());
    drop(told);
    let digests = places.iter().map(|place| digest_at(feed, subgroup, *place)).collect();
    Compared { view, end: end.unwrap_or_default(), digests }
}

/// Returns positions before `place`, at increasing distances, for which memory still holds a
/// digest. With them, a client that begins at `place` can tell this order from one that ends
/// earlier.
pub(crate) fn earlier(of: &SubgroupFeed, place: u64) -> Vec<Position> {
    let distances = (0..u64::BITS).rev().map(|bit| 1_u64 << bit);
    let places = distances.filter_map(|distance| place.checked_sub(distance));
    let known = places.filter_map(|earlier| match of.retained.known_at(earlier) {
        Known::At(position) if position.place > 0 => Some(position),
        _ => None,
    });
    // Before the first message, all orders are equal.
    let begin = (place > 0).then(Position::default);
    begin.into_iter().chain(known).collect()
}

/// Returns the digest of the order up to a position, if it is known.
pub(crate) fn digest_at(feed: &Feed, subgroup: SubgroupId, place: u64) -> Option<u64> {
    let told = feed.lock();
    let of = told.subgroups.get(&subgroup)?;
    let mut at = match of.retained.known_at(place) {
        Known::At(position) => return Some(position.digest),
        Known::Since(position) => position,
        Known::Nothing => return None,
    };
    let log = told.logs.get(subgroup)?;
    // The driving thread must not wait for a disk.
    drop(told);
    while at.place < place {
        let record = feed.lock().subgroups.get(&subgroup)?.words.record_of(at.place)?;
        let messages = read(&log, subgroup, record, at.place, place)?;
        // The log has started to discard these messages.
        messages.first()?;
        at = messages.iter().fold(at, |at, message| at.after(&message.publish()));
    }
    Some(at.digest)
}

/// Reads messages from a log, starting at the record of the message with sequence position `place`,
/// up to position `to`. Returns `None` if the messages are damaged or no longer in the log.
pub(crate) fn read(
    log: &SharedLog,
    subgroup: SubgroupId,
    record: u64,
    place: u64,
    to: u64,
) -> Option<Vec<RetainedMessage>> {
    let records = log.read(subgroup, record, log.end(), CHUNK_BYTES).ok()?;
    let mut messages = Vec::with_capacity(records.len());
    for (record, sent) in (record..).zip(&records) {
        let (client, payload) = match Origin::split(&sent.payload) {
            Some((Origin::Member, payload)) => (None, payload.into()),
            Some((Origin::Client { life, .. }, payload)) => (Some(life.id), payload.into()),
            // A control message: the only other content of a log.
            _ => continue,
        };
        let place = place.saturating_add(u64::try_from(messages.len()).unwrap_or(u64::MAX));
        if place >= to {
            break;
        }
        let (view, place_in_view, sender) = (sent.view, sent.place, sent.sender);
        let delivered =
            RetainedMessage { place, record, view, place_in_view, sender, client, payload };
        messages.push(delivered);
    }
    Some(messages)
}
