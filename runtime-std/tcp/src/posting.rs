//! Posting: the lists that the fabric carries, and the conditions that delay a list.

use tramontane_core::fabric::{
    Area, ErrorKind, Event, Kind, Region, Token, ViewRows as _, WRITES_MAX, Write,
};
use tramontane_core::ids::{Rank, ViewId};

use super::connection::Connection;
use super::fabric::Tcp;
use super::frame::WRITE_MAX;
use super::memory::Rows;
use super::send_queue::{GUARD_MAX, List};

impl Tcp {
    /// Posts a list. All its writes must be for rows, or all for one region of the peer.
    pub(super) fn post_list(
        &mut self,
        view: ViewId,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        let Self { views, connections, events, regions, .. } = self;
        let open = views.iter().find(|open| open.id == view).ok_or(ErrorKind::Other)?;
        let connection = open.reach(to, connections.get_mut())?;
        let list = List { view, rows: &open.rows, regions, writes };
        let region = writes.first().map_or(Region::ROW, |write| write.target.region);
        // The copies of rows count as rows.
        let region = region.owner().map_or(region, |_| Region::ROW);
        if writes.len() > WRITES_MAX || !writes.iter().all(|write| is_from_here(&list, write)) {
            return Err(ErrorKind::OutOfRange);
        }
        let is_row = region == Region::ROW;
        if is_row && !writes.iter().all(|write| is_of_row(write, list.rows, to)) {
            return Err(ErrorKind::OutOfRange);
        }
        if !connection.is_ready(view) || (token.is_some() && !events.has_room()) {
            return Err(ErrorKind::QueueFull);
        }
        if !is_row {
            check_region(connection, &list, region)?;
        } else if connection.is_over_there(view) {
            // The peer is alive, and a leaving member must post until the end (VIE-9).
            token.map(Event::Completed).into_iter().for_each(|event| events.push(event));
            return Ok(());
        }
        if (token.is_some() || !is_row) && !connection.has_list_room() {
            return Err(ErrorKind::QueueFull);
        }
        if connection.is_full() {
            connection.flush(|sent| events.sent(sent));
            if connection.is_full() {
                let may_overtake = is_row && token.is_none();
                let overtakes = may_overtake && connection.overtake(&list) == Ok(true);
                return if overtakes { Ok(()) } else { Err(ErrorKind::QueueFull) };
            }
        }
        connection.post(&list, region, token).map_err(|_| ErrorKind::OutOfRange)?;
        let is_held_back =
            is_row && token.is_none() && has_successor(writes) && connection.hold_back();
        if !is_held_back {
            connection.flush(|sent| events.sent(sent));
        }
        Ok(())
    }
}

/// Returns whether another list probably follows in the same step: a step ends with the guard that
/// covers its content, and this list had no room for it. Otherwise, the next poll sends the list.
fn has_successor(writes: &[Write]) -> bool {
    writes.len() == WRITES_MAX && writes.last().is_some_and(|last| last.kind == Kind::Content)
}

/// Returns whether a write is short enough, and comes from a row or a local region.
fn is_from_here(list: &List<'_>, write: &Write) -> bool {
    let most = match write.kind {
        Kind::Content => WRITE_MAX,
        Kind::Guard => GUARD_MAX,
    };
    let Area { region, offset } = write.source;
    let is_inside = match list.rows.owner_of(region) {
        Some(owner) => fits(offset, write.length, list.rows.row_bytes(owner)),
        None => list.regions.area(write.source, write.length).is_some(),
    };
    write.length <= most && is_inside
}

/// Returns whether a write goes from the local row into the peer's copy of that row, or from the
/// copy of a third member's row to the same place.
fn is_of_row(write: &Write, rows: &Rows, to: Rank) -> bool {
    let Area { region, offset } = write.target;
    let is_same_row = write.source.region == region;
    let is_same_place = region == Region::ROW || write.source.offset == offset;
    rows.owner_of(region).is_some_and(|owner| {
        let is_third = region == Region::ROW || (owner != to && owner != rows.own());
        is_same_row
            && is_same_place
            && is_third
            && fits(offset, write.length, rows.row_bytes(owner))
    })
}

fn fits(offset: usize, length: usize, bytes: usize) -> bool {
    offset.checked_add(length).is_some_and(|end| end <= bytes)
}

/// Checks whether a list may go to a region of the peer.
fn check_region(connection: &Connection, list: &List<'_>, region: Region) -> Result<(), ErrorKind> {
    let is_there = |write: &Write| {
        write.target.region == region && connection.has_area(write.target, write.length)
    };
    if !list.writes.iter().all(is_there) {
        return Err(ErrorKind::OutOfRange);
    }
    if connection.is_over_there(list.view) {
        return Err(ErrorKind::PeerLost);
    }
    if connection.has_right(list.view, region) { Ok(()) } else { Err(ErrorKind::Revoked) }
}
