//! The traffic of a row's connection if devices keep no order between writes: long contents are
//! sent as writes, and the rest of a list as one update, which is a send that follows those writes.
//! Lists to regions are sent completely as updates (`region_updates`).
//!
//! # Reasons for sends
//! A write with an immediate value may place its bytes at any moment before its completion, so it
//! cannot carry the guard itself, and 32 bits cannot hold a guard and its offset. A send lands in a
//! separate receive, which is not read before it completes, and holds all guards of a list. So
//! there is one receive and one completion per list, not per guard.
//!
//! # Invariants
//! - An update is sent only if a receive waits for it (`Credits`), and its bytes stay in place
//!   until the peer has processed it.
//! - A long content that overlaps one in flight waits until the peer has processed the earlier one.

use std::io;
use std::sync::Arc;

use tramontane_core::fabric::{ErrorKind, Kind, Token, WRITES_MAX, Write};

use super::{Behind, GUARD_BYTES_MAX, Link, NearEnd, RequestList, Sources, Targets};
use crate::adapter::{Access, MemoryRegion, Operation, Pages, ProtectionDomain, SendBuffers};
use crate::protocol::blocks::{Credits, MESSAGES_MAX};
use crate::protocol::update::{
    HEAD_BYTES, RECORD_HEAD_BYTES, UPDATE_BYTES_MAX, UpdateWriter, record_place,
};
use crate::protocol::{Counters, Name, UnderWay, WholeGroups};

/// Maximum size, in bytes, of a content that is copied into an update. Up to this size, a copy is
/// cheaper than a separate request.
const COPIED_MAX: usize = 256;

const _: () = assert!(
    HEAD_BYTES + WRITES_MAX * (RECORD_HEAD_BYTES + GUARD_BYTES_MAX) <= UPDATE_BYTES_MAX,
    "all guards of the longest list fit"
);

/// The memory and state that one connection needs for updates.
#[derive(Debug)]
pub(crate) struct Updates {
    credits: Credits,
    under_way: UnderWay,
    /// Outgoing updates, until the peer has processed them.
    staged: MemoryRegion,
    /// Incoming updates. The slots of notices are never filled.
    landing: MemoryRegion,
    /// The number of the update that asked for the number of updates that the peer has processed,
    /// until the peer answers.
    asked: Option<u64>,
    /// Whether the peer has asked this end for that number.
    is_asked: bool,
}

/// The way in which a list of writes is sent.
struct SendPlan {
    /// For each write, whether it is sent as a separate request.
    alone: [bool; WRITES_MAX],
    /// Number of separate writes.
    writes: usize,
    /// Number of writes that have bytes.
    filled: usize,
}

impl SendPlan {
    /// Creates the plan for a list. Guards go into the update, and so do short contents as long as
    /// there is room besides the guards.
    fn of(list: &[Write]) -> Self {
        let record = |write: &Write| RECORD_HEAD_BYTES + write.length;
        let guards = list.iter().filter(|write| write.kind == Kind::Guard).map(record).sum();
        let mut room = (UPDATE_BYTES_MAX - HEAD_BYTES).saturating_sub(guards);
        let mut plan = Self { alone: [false; WRITES_MAX], writes: 0, filled: 0 };
        for (write, alone) in list.iter().zip(&mut plan.alone) {
            plan.filled += usize::from(write.length > 0);
            if write.kind == Kind::Guard || write.length == 0 {
                continue;
            }
            if write.length <= COPIED_MAX && record(write) <= room {
                room -= record(write);
            } else {
                *alone = true;
                plan.writes += 1;
            }
        }
        plan
    }

    /// Returns whether a separate write overlaps one before it in the list that would be applied
    /// after it.
    fn crosses_itself(&self, list: &[Write]) -> bool {
        let places = || list.iter().map(place_of).zip(self.alone);
        self.writes > 0
            && places().enumerate().any(|(index, (place, alone))| {
                alone && places().take(index).any(|(earlier, _)| earlier.meets(place))
            })
    }
}

/// Returns the range that a write changes. Ranges of different rows never overlap.
fn place_of(write: &Write) -> WholeGroups {
    let place = record_place(write.target.region.owner(), write.target.offset);
    let place = place.and_then(|place| usize::try_from(place).ok());
    WholeGroups::of(place.unwrap_or(write.target.offset), write.length)
}

impl Updates {
    /// Registers memory for updates, and for `notices` notices among them.
    pub(crate) fn new(domain: &ProtectionDomain, notices: u32) -> io::Result<Self> {
        let register = |places: u32, access| {
            let bytes = usize::try_from(places).unwrap_or(0) * UPDATE_BYTES_MAX;
            MemoryRegion::new(domain, &Arc::new(Pages::new(bytes)?), bytes, access)
        };
        Ok(Self {
            credits: Credits::default(),
            under_way: UnderWay::new(),
            staged: register(MESSAGES_MAX, Access::empty())?,
            landing: register(notices + MESSAGES_MAX, Access::LOCAL_WRITE)?,
            asked: None,
            is_asked: false,
        })
    }

    /// Returns the length of each registration of the updates.
    pub(crate) fn registered(&self) -> [usize; 2] {
        [self.staged.bytes(), self.landing.bytes()]
    }

    /// Discards everything in flight after a reset of the connection.
    pub(super) fn forget(&mut self) {
        self.under_way.clear();
    }

    /// Returns the memory that a receive fills.
    pub(super) fn landing_place(&self, name: Name) -> (&MemoryRegion, usize, usize) {
        (&self.landing, landing_offset(name), UPDATE_BYTES_MAX)
    }

    /// Returns whether the peer has receives for this many updates, apart from `reserve` others.
    pub(super) fn has_room_for(&self, updates: u64, reserve: u64) -> bool {
        self.credits.has_room_for(updates, reserve)
    }

    /// Counts an update as sent, and returns the number of processed updates that it reports.
    pub(super) fn count_sent(&mut self) -> u64 {
        self.is_asked = false;
        self.credits.send()
    }

    /// Returns the number of the last update that was counted as sent.
    pub(super) const fn last_sent(&self) -> u64 {
        self.credits.next_number() - 1
    }

    fn is_crossed(&self, list: &[Write], plan: &SendPlan) -> bool {
        plan.writes > 0
            && list
                .iter()
                .zip(plan.alone)
                .any(|(write, alone)| alone && self.under_way.meets(place_of(write)))
    }

    fn is_waiting_for_answer(&self) -> bool {
        self.asked.is_some_and(|asked| asked >= self.credits.taken_there())
    }
}

impl Link {
    pub(super) fn updates(&self) -> Option<&Updates> {
        self.near.as_ref()?.updates.as_ref()
    }

    pub(super) const fn updates_mut(&mut self) -> Option<&mut Updates> {
        match &mut self.near {
            Some(near) => near.updates.as_mut(),
            None => None,
        }
    }

    /// Posts a list as writes and an update. Returns whether something was posted. A list without
    /// bytes is done immediately.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::QueueFull`] if there is no room, no receive waits at the peer, or a
    /// long content overlaps one in flight, and with [`ErrorKind::OutOfRange`] if a long content
    /// overlaps an earlier write of the same list.
    pub(crate) fn post_list_as_update(
        &mut self,
        buffers: &mut SendBuffers,
        (list, copies): (&[Write], &[Option<MemoryRegion>]),
        behind: Behind,
        token: Option<Token>,
        counters: &mut Counters,
    ) -> Result<bool, ErrorKind> {
        let plan = SendPlan::of(list);
        if plan.filled == 0 {
            return Ok(false);
        }
        if plan.crosses_itself(list) {
            return Err(ErrorKind::OutOfRange);
        }
        let updates = self.updates().ok_or(ErrorKind::Other)?;
        let is_crossed = updates.is_crossed(list, &plan);
        let requests = plan.writes + 1 + usize::from(behind != Behind::Nothing);
        if is_crossed || !updates.credits.has_room() || !self.queue.has_room(requests) {
            if is_crossed {
                self.ask(buffers, counters)?;
            }
            return Err(ErrorKind::QueueFull);
        }
        self.post_planned(buffers, (list, copies), &plan, behind, token, counters)?;
        Ok(true)
    }

    fn post_planned(
        &mut self,
        buffers: &mut SendBuffers,
        (list, copies): (&[Write], &[Option<MemoryRegion>]),
        plan: &SendPlan,
        behind: Behind,
        token: Option<Token>,
        counters: &mut Counters,
    ) -> Result<(), ErrorKind> {
        let Self { queue, near: Some(near), index, .. } = self else {
            return Err(ErrorKind::Other);
        };
        let NearEnd { queue_pair, far: Some(far), source, updates: Some(updates), rings, .. } =
            near
        else {
            return Err(ErrorKind::Other);
        };
        let inline_bytes_max = near.inline_bytes_max;
        let sources = Sources { own: (self.region, source), others: &[], copies };
        let targets = Targets { own: far.target, rings };
        let mut message = UpdateWriter::new(updates.count_sent(), false);
        let update = updates.last_sent();
        let mut requests = RequestList::new(buffers, *index, queue);
        for (write, alone) in list.iter().zip(plan.alone).filter(|(write, _)| write.length > 0) {
            updates.under_way.add(update, place_of(write));
            counters.writes += 1;
            counters.bytes += u64::try_from(write.length).unwrap_or(0);
            let memory = sources.of(write.source.region)?;
            if !alone {
                let record = record_place(write.target.region.owner(), write.target.offset)
                    .and_then(|place| message.record(place, write.length))
                    .ok_or(ErrorKind::OutOfRange)?;
                let row = memory.pages().row();
                row.read(write.source.offset, record).map_err(|_| ErrorKind::OutOfRange)?;
                continue;
            }
            let range = Some((memory, write.source.offset, write.length));
            let inline = write.length <= inline_bytes_max;
            counters.inline += u64::from(inline);
            requests.push(Operation::Write(targets.of(write)?), range, inline)?;
        }
        let (offset, length) = stage(&updates.staged, update, message.bytes(), counters)?;
        let range = Some((&updates.staged, offset, length));
        requests.push(Operation::Send, range, length <= inline_bytes_max)?;
        requests.push_notice(far.target, behind, counters)?;
        requests.post(queue_pair, queue, false, token, counters)
    }

    /// Posts one update that has been counted as sent.
    pub(super) fn post_update(
        &mut self,
        buffers: &mut SendBuffers,
        bytes: &[u8],
        counters: &mut Counters,
    ) -> Result<(), ErrorKind> {
        let Self { queue, near: Some(near), index, .. } = self else {
            return Err(ErrorKind::Other);
        };
        let NearEnd { queue_pair, updates: Some(updates), inline_bytes_max, .. } = near else {
            return Err(ErrorKind::Other);
        };
        let staged = &updates.staged;
        let (offset, length) = stage(staged, updates.last_sent(), bytes, counters)?;
        let mut list = RequestList::new(buffers, *index, queue);
        list.push(Operation::Send, Some((staged, offset, length)), length <= *inline_bytes_max)?;
        list.post(queue_pair, queue, false, None, counters)
    }

    /// Asks the peer for the number of updates that it has processed, unless it has already been
    /// asked or will report without being asked.
    pub(super) fn ask(
        &mut self,
        buffers: &mut SendBuffers,
        counters: &mut Counters,
    ) -> Result<(), ErrorKind> {
        let has_room = self.queue.has_room_for_control();
        let Some(updates) = self.updates_mut() else { return Ok(()) };
        let may = updates.credits.has_room() && has_room;
        if !may || updates.is_waiting_for_answer() {
            return Ok(());
        }
        updates.asked = Some(updates.credits.next_number());
        self.post_empty_update(true, buffers, counters)
    }

    /// Reports to the peer the number of updates processed, if it needs to know and there is room.
    pub(crate) fn post_credit(
        &mut self,
        buffers: &mut SendBuffers,
        counters: &mut Counters,
    ) -> Result<(), ErrorKind> {
        let Some(updates) = self.updates() else { return Ok(()) };
        let is_due = updates.credits.owes() || updates.is_asked && updates.credits.may_answer();
        if !is_due || !self.queue.has_room_for_control() {
            return Ok(());
        }
        self.post_empty_update(false, buffers, counters)
    }

    fn post_empty_update(
        &mut self,
        asks: bool,
        buffers: &mut SendBuffers,
        counters: &mut Counters,
    ) -> Result<(), ErrorKind> {
        let taken = self.updates_mut().ok_or(ErrorKind::Other)?.count_sent();
        self.post_update(buffers, UpdateWriter::new(taken, asks).bytes(), counters)
    }

    /// Copies the update of `length` bytes that arrived in a receive; returns `None` if no update
    /// can be that long.
    pub(crate) fn read_update<'b>(
        &self,
        name: Name,
        length: u32,
        into: &'b mut [u8; UPDATE_BYTES_MAX],
    ) -> Option<&'b [u8]> {
        let landing = &self.updates()?.landing;
        let into = into.get_mut(..usize::try_from(length).ok()?)?;
        landing.pages().row().read(landing_offset(name), into).ok()?;
        Some(into)
    }

    /// Returns the number of updates that the peer has processed.
    pub(crate) fn taken_there(&self) -> u64 {
        self.updates().map_or(0, |updates| updates.credits.taken_there())
    }

    /// Records that an update has been applied and its receive reposted. The update contains the
    /// number of updates that the peer has processed, and whether the peer is waiting for that
    /// number from this end. Returns `false` if the number is impossible.
    pub(crate) fn took_update(&mut self, taken_there: u64, asks: bool) -> bool {
        let Some(updates) = self.updates_mut() else { return false };
        updates.is_asked |= asks;
        let is_possible = updates.credits.take(taken_there);
        updates.under_way.taken(updates.credits.taken_there());
        is_possible
    }
}

/// Copies an update to memory that the device reads, and returns its offset there and its length.
fn stage(
    staged: &MemoryRegion,
    update: u64,
    bytes: &[u8],
    counters: &mut Counters,
) -> Result<(usize, usize), ErrorKind> {
    let place = usize::try_from(update % u64::from(MESSAGES_MAX)).unwrap_or(0);
    let offset = place * UPDATE_BYTES_MAX;
    staged.pages().writer().apply(offset, bytes).map_err(|_| ErrorKind::OutOfRange)?;
    counters.updates += 1;
    counters.update_bytes += u64::try_from(bytes.len()).unwrap_or(0);
    Ok((offset, bytes.len()))
}

/// Returns the offset of a receive's slot.
fn landing_offset(name: Name) -> usize {
    let number = usize::try_from(name.number_from(0)).unwrap_or(usize::MAX);
    number.saturating_mul(UPDATE_BYTES_MAX)
}
