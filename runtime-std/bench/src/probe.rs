//! Probes of the machine's limit: two processes that communicate without the protocol.
//!
//! - The hand-off: one cache line passed back and forth.
//! - The bare ring: one shared ring in each direction, with a counter at the end of each slot as in
//!   the protocol; each process writes its messages and reads every byte of both rings.
//!
//! Both use the protocol's memory: the rows of a group of two.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tramontane_core::fabric::ViewMemory;
use tramontane_core::ids::{Rank, SubgroupId};
use tramontane_core::layout::{CACHE_LINE, RingShape};
use tramontane_core::memory::{OutOfRow, Row};

use crate::error::BenchError;
use crate::experiment::{Experiment, ExperimentMember, Kind};
use crate::touch;
use tramontane_runtime::group::Running;

/// Time limit of a probe. A process that waits longer for its peer gives up.
const LIMIT: Duration = Duration::from_secs(60);

/// One cache line passed back and forth.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HandOff {
    pub(crate) rounds: u64,
}

/// The measurements of one process of [`HandOff`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct HandedOff {
    pub(crate) one_way_ns: f64,
}

impl Experiment for HandOff {
    const KIND: Kind = Kind::HandOff;
    type Outcome = HandedOff;

    fn run(&self, own: &ExperimentMember) -> Result<(HandedOff, Option<Running>), BenchError> {
        let connected = own.connect()?;
        let one_way_ns = hand_off(&connected.memory(), self.rounds)?;
        connected.leave();
        Ok((HandedOff { one_way_ns }, None))
    }
}

/// A ring in each direction without a protocol.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BareRing {
    pub(crate) message_bytes: usize,
    /// Number of messages in each direction.
    pub(crate) messages: u64,
}

/// The measurements of one process of [`BareRing`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Ringed {
    /// Messages per second, including the process's own.
    pub(crate) messages_per_s: f64,
    /// A checksum of the bytes read, so that the reads are not optimised away.
    pub(crate) checksum: u64,
}

impl Experiment for BareRing {
    const KIND: Kind = Kind::BareRing;
    type Outcome = Ringed;

    fn run(&self, own: &ExperimentMember) -> Result<(Ringed, Option<Running>), BenchError> {
        let connected = own.connect()?;
        let layout = own.layout()?;
        let shape = |rank| layout.get().ring(Rank(rank), SubgroupId(0));
        let (Some(first), Some(second)) = (shape(0), shape(1)) else {
            return Err(BenchError::Setup("a bare ring needs two senders".into()));
        };
        let memory = connected.memory();
        let ringed = bare_ring(&memory, [first, second], self.message_bytes, self.messages)?;
        connected.leave();
        Ok((ringed, None))
    }
}

/// Spins until `done` returns true, or gives up after [`LIMIT`].
fn spin_until(mut done: impl FnMut() -> bool) -> Result<(), OutOfRow> {
    let mut spins = 0_u64;
    let mut since = None;
    while !done() {
        spin_loop();
        spins += 1;
        if spins.is_multiple_of(1 << 20) && since.get_or_insert_with(Instant::now).elapsed() > LIMIT
        {
            return Err(OutOfRow);
        }
    }
    Ok(())
}

/// Passes a cache line back and forth `rounds` times. Returns the one-way time in nanoseconds.
/// Fails if the rows are too small, or the peer does not answer.
fn hand_off(memory: &ViewMemory<'_>, rounds: u64) -> Result<f64, OutOfRow> {
    let own = memory.own;
    let cell = memory.row.cell(0)?;
    let peer = memory.rows.get(1 - own.index()).ok_or(OutOfRow)?.cell(0)?;
    let first = own == Rank(0);
    let start = Instant::now();
    for round in 1..=rounds {
        if first {
            cell.publish(round);
        }
        spin_until(|| peer.load() >= round)?;
        if !first {
            cell.publish(round);
        }
    }
    Ok(start.elapsed().as_nanos() as f64 / (2 * rounds) as f64)
}

/// A ring of the probe: raw slots, each with a counter at its end, and its reader's count of
/// consumed messages.
struct Ring {
    base: *mut u8,
    shape: RingShape,
}

impl Ring {
    fn of(row: &Row<'_>, shape: RingShape) -> Result<Self, OutOfRow> {
        // Checks that the ring is within the row.
        row.ring(&shape)?;
        // SAFETY: the offset was just checked to be inside the row.
        Ok(Self { base: unsafe { row.base().as_ptr().add(shape.offset) }, shape })
    }

    #[inline]
    fn slot(&self, slot: usize) -> *mut u8 {
        // SAFETY: callers count slots up to `shape.slots`, so the offset is within the ring.
        unsafe { self.base.add(slot * self.shape.stride) }
    }

    #[inline]
    fn counter(&self, slot: usize) -> &AtomicU64 {
        // SAFETY: these are the last 8 bytes of a slot, which are aligned because strides are
        // multiples of 16.
        unsafe { &*self.slot(slot).add(self.shape.stride - 8).cast::<AtomicU64>() }
    }

    #[inline]
    fn payload(&self, slot: usize, bytes: usize) -> &[u8] {
        // SAFETY: a payload is at most a slot without its header, and the writer does not touch it
        // until the reader has published that it has been consumed.
        unsafe { std::slice::from_raw_parts(self.slot(slot), bytes) }
    }

    #[inline]
    fn write(&self, slot: usize, bytes: usize, number: u64) {
        // SAFETY: as above; the reader has consumed this slot.
        touch::write(unsafe { std::slice::from_raw_parts_mut(self.slot(slot), bytes) }, number);
        self.counter(slot).store(number + 1, Ordering::Release);
    }
}

/// Sends `messages` messages of `bytes` bytes in each direction. Fails if the rows are too small,
/// or the peer does not answer.
fn bare_ring(
    memory: &ViewMemory<'_>,
    shapes: [RingShape; 2],
    bytes: usize,
    messages: u64,
) -> Result<Ringed, OutOfRow> {
    let own = memory.own.index();
    let row = |index: usize| memory.rows.get(index).ok_or(OutOfRow);
    let mine = Ring::of(row(own)?, shapes[own])?;
    let theirs = Ring::of(row(1 - own)?, shapes[1 - own])?;
    // The counts of consumed messages use the cells of the protocol's frontiers.
    let consumed = memory.row.cell(2 * CACHE_LINE)?;
    let peer_consumed = row(1 - own)?.cell(2 * CACHE_LINE)?;
    let window = shapes[own].slots as usize;

    let start = Instant::now();
    let (mut sent, mut read_own, mut read_peer) = (0_u64, 0_u64, 0_u64);
    let (mut send_slot, mut own_slot, mut peer_slot) = (0, 0, 0);
    let mut checksum = 0_u64;
    let next = |slot: usize| if slot + 1 == window { 0 } else { slot + 1 };
    while read_own < messages || read_peer < messages {
        let free = window as u64 - (sent - peer_consumed.load());
        for _ in 0..free.min(messages - sent) {
            mine.write(send_slot, bytes, sent);
            send_slot = next(send_slot);
            sent += 1;
        }
        while read_own < sent {
            checksum = checksum.wrapping_add(touch::read(mine.payload(own_slot, bytes)));
            own_slot = next(own_slot);
            read_own += 1;
        }
        let before = read_peer;
        while read_peer < messages
            && theirs.counter(peer_slot).load(Ordering::Acquire) == read_peer + 1
        {
            checksum = checksum.wrapping_add(touch::read(theirs.payload(peer_slot, bytes)));
            peer_slot = next(peer_slot);
            read_peer += 1;
        }
        if read_peer > before {
            consumed.publish(read_peer);
        } else {
            spin_loop();
        }
    }
    let messages_per_s = (2 * messages) as f64 / start.elapsed().as_secs_f64();
    Ok(Ringed { messages_per_s, checksum })
}
