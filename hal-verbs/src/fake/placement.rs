//! The placement of a write's bytes in memory: at once, or piece by piece in a different order.

use super::hardware::{FakeEvent, Hardware, Piece, Spot};
use super::profile::Placement;

/// Size of a piece in bytes, if the bytes of one write are reordered: a cache line.
const PIECE_BYTES: usize = 64;

impl Hardware {
    /// Accepts bytes that are within a region. Returns the time by which all bytes received on the
    /// connection are in memory.
    pub(super) fn land(&mut self, pair: u64, spot: Spot, bytes: Vec<u8>) -> u64 {
        let Spot { region, offset } = spot;
        let device = self.regions.get(&region).map_or(0, |region| region.device);
        let Some(profile) = self.devices.get(device).map(|device| &device.profile) else {
            return self.now;
        };
        let (placement, delay) = (profile.placement, profile.placement_delay_ns);
        let is_late = placement != Placement::InOrder || profile.completes_before_visible;
        let by = self.placed_by(pair);
        if !is_late || delay == 0 {
            self.store(region, offset, &bytes);
            return by;
        }
        let mut last = by;
        let mut start = 0;
        while start < bytes.len() {
            let to_line = PIECE_BYTES - (offset + start) % PIECE_BYTES;
            let end = match placement {
                Placement::BytesReordered => bytes.len().min(start + to_line),
                _ => bytes.len(),
            };
            let part = bytes.get(start..end).unwrap_or_default().to_vec();
            let drawn = self.now + self.random.below(delay + 1);
            let at = if placement == Placement::InOrder { drawn.max(last) } else { drawn };
            self.counts.placed_late += u64::from(at > self.now);
            self.counts.placed_out_of_order += u64::from(at < last);
            last = last.max(at);
            let id = self.new_id();
            let piece = Piece { pair, region, offset: offset + start, bytes: part };
            self.pieces.insert(id, piece);
            self.agenda.enter(at, FakeEvent::Place(id));
            start = end;
        }
        if let Some(responder) = self.pairs.get_mut(&pair).and_then(|it| it.responder.as_mut()) {
            responder.placed_by = last;
        }
        last
    }

    /// Returns the time by which everything that a connection has accepted so far is in memory.
    pub(super) fn placed_by(&self, pair: u64) -> u64 {
        let responder = self.pairs.get(&pair).and_then(|pair| pair.responder.as_ref());
        responder.map_or(self.now, |responder| responder.placed_by.max(self.now))
    }

    /// Places a piece, unless it has already been placed.
    pub(super) fn place(&mut self, id: u64) {
        if let Some(piece) = self.pieces.remove(&id) {
            self.store(piece.region, piece.offset, &piece.bytes);
        }
    }

    /// Places delayed pieces now, in the order in which they arrived.
    pub(super) fn place_all(&mut self, which: impl Fn(&Piece) -> bool) {
        let due = self.pieces.iter().filter(|(_, piece)| which(piece));
        let due: Vec<u64> = due.map(|(id, _)| *id).collect();
        due.into_iter().for_each(|id| self.place(id));
    }

    /// Stores bytes in memory.
    pub(super) fn store(&self, region: u64, offset: usize, bytes: &[u8]) {
        if let Some(region) = self.regions.get(&region) {
            // The bytes are in bounds, which was checked when they were accepted.
            let _ = region.pages.writer().apply(offset, bytes);
        }
    }
}
