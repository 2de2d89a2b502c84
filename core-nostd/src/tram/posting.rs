//! Lists of writes: the contents of one post to one peer.
//!
//! Adjacent contents become one write. Contents that are separated only by a short gap are sent in
//! one write together with the gap, because a separate write costs more than a few bytes.
//!
//! [`Posting`] is public so that the protocols with which TRAM is compared build their lists in the
//! same way (TRM-10).

use super::shape::NAME_BYTES;
use crate::fabric::{Area, Capabilities, Kind, WRITES_MAX, Write, WriteList};

/// Longest gap, in bytes, that is sent together with the contents around it.
const GAP_MAX: usize = 192;

/// Maximum size in bytes of the control line that a list to a region ends with, and of a name that
/// follows its body. A list reserves room for it.
pub(super) const CONTROL_BYTES: usize = 32;
const _: () = assert!(NAME_BYTES <= CONTROL_BYTES);

/// The writes of one post while they are being collected.
#[derive(Debug)]
pub struct Posting {
    writes: WriteList,
    writes_max: usize,
    bytes_max: usize,
    /// Number of bytes for which the list still has room, including those reserved for guards.
    room_bytes: usize,
    /// Index of the write of headers. This write is not joined with any other and precedes all
    /// contents added after it.
    headers: Option<usize>,
}

impl Posting {
    /// Creates an empty list for a fabric with these limits.
    #[must_use]
    pub fn new(capabilities: &Capabilities) -> Self {
        Self {
            writes: WriteList::new(),
            writes_max: capabilities.writes_max.min(WRITES_MAX),
            bytes_max: capabilities.write_bytes_max,
            room_bytes: usize::MAX,
            headers: None,
        }
    }

    /// Creates a list for a region, with room for `list_bytes_max` bytes in total.
    pub(super) fn to_region(capabilities: &Capabilities, list_bytes_max: usize) -> Self {
        Self { room_bytes: list_bytes_max, ..Self::new(capabilities) }
    }

    /// Returns the writes so far.
    #[must_use]
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// Returns the number of writes for which there is still room.
    #[must_use]
    pub fn room(&self) -> usize {
        self.writes_max.saturating_sub(self.writes.len())
    }

    /// Adds bytes that may be read until the list has completed. Returns false if there is no room
    /// for them.
    pub fn content(&mut self, source: Area, target: Area, length: usize) -> bool {
        if length == 0 {
            return true;
        }
        let is_open = self.headers.is_none_or(|at| at.saturating_add(1) < self.writes.len());
        if let Some(last) = self.writes.last_mut().filter(|_| is_open)
            && let Some(longer) = joined(last, source, target, length, self.bytes_max)
        {
            let more = longer.saturating_sub(last.length);
            let Some(room_bytes) = room_behind(self.room_bytes, more) else { return false };
            last.length = longer;
            self.room_bytes = room_bytes;
            return true;
        }
        let Some(room_bytes) = room_behind(self.room_bytes, length) else { return false };
        let has_room = self.push(Write { source, target, length, kind: Kind::Content });
        if has_room {
            self.room_bytes = room_bytes;
        }
        has_room
    }

    /// Adds a header that precedes the contents that follow, or extends the headers by one. Returns
    /// false if there is no room.
    pub(super) fn header(&mut self, area: Area, bytes: usize) -> bool {
        let Some(room_bytes) = room_behind(self.room_bytes, bytes) else { return false };
        match self.headers.and_then(|at| self.writes.get_mut(at)) {
            Some(headers) => headers.length = headers.length.saturating_add(bytes),
            None => {
                let at = self.writes.len();
                let write =
                    Write { source: area, target: area, length: bytes, kind: Kind::Content };
                if !self.push(write) {
                    return false;
                }
                self.headers = Some(at);
            }
        }
        self.room_bytes = room_bytes;
        true
    }

    /// Removes the last header, because its content has no room.
    pub(super) fn drop_header(&mut self, bytes: usize) {
        let headers = self.headers.and_then(|at| Some((at, self.writes.get_mut(at)?)));
        let Some((at, headers)) = headers else { return };
        headers.length = headers.length.saturating_sub(bytes);
        if headers.length == 0 {
            self.writes.truncate(at);
            self.headers = None;
        }
    }

    /// Adds cells that are sent with their current values. Returns false if there is no room for
    /// them.
    pub fn guard(&mut self, source: Area, target: Area, length: usize) -> bool {
        self.room_bytes = self.room_bytes.saturating_sub(length);
        self.push(Write { source, target, length, kind: Kind::Guard })
    }

    fn push(&mut self, write: Write) -> bool {
        self.room() > 0 && self.writes.push(write).is_ok()
    }
}

/// Returns the room that a list has left after `bytes` more bytes, or `None` if its guards would no
/// longer fit.
fn room_behind(room_bytes: usize, bytes: usize) -> Option<usize> {
    room_bytes.checked_sub(bytes).filter(|left| *left >= CONTROL_BYTES)
}

/// Returns the length of a write that is joined with the next one, if that is worthwhile.
fn joined(
    last: &Write,
    source: Area,
    target: Area,
    length: usize,
    bytes_max: usize,
) -> Option<usize> {
    let is_content = matches!(last.kind, Kind::Content);
    if !is_content || last.source.region != source.region || last.target.region != target.region {
        return None;
    }
    let ahead = source.offset.checked_sub(last.source.offset)?;
    if target.offset.checked_sub(last.target.offset)? != ahead {
        return None;
    }
    let gap = ahead.checked_sub(last.length)?;
    let longer = ahead.checked_add(length)?;
    (gap <= GAP_MAX && longer <= bytes_max).then_some(longer)
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;
    use crate::fabric::{Promises, Region};
    use proptest::prelude::*;

    fn at(offset: usize) -> Area {
        Area { region: Region::ROW, offset }
    }

    fn posting(writes_max: usize) -> Posting {
        Posting::new(&Capabilities {
            promises: Promises::all(),
            writes_max,
            write_bytes_max: 1024,
            guard_bytes_max: 24,
            write_overhead_bytes: 24,
        })
    }

    #[test]
    fn adjacent_contents_share_one_write() {
        let mut list = posting(8);
        assert!(list.content(at(64), at(64), 100));
        assert!(list.content(at(192), at(192), 64));
        assert_eq!(list.writes().len(), 1);
        assert_eq!(list.writes()[0].length, 192, "with the gap of 28 bytes");
        assert!(list.content(at(4096), at(4096), 64));
        assert!(list.content(at(0), at(0), 64), "which lies before the last");
        assert!(list.content(at(64), at(128), 8), "whose target does not follow");
        assert_eq!(list.writes().len(), 4);
        assert!(list.guard(at(72), at(136), 8));
        assert!(list.content(at(80), at(144), 8), "never joined with a guard");
        assert_eq!(list.writes().len(), 6);
    }

    #[test]
    fn region_list_never_exceeds_its_byte_limit() {
        let mut list = Posting::to_region(
            &Capabilities {
                promises: Promises::all(),
                writes_max: 8,
                write_bytes_max: 4096,
                guard_bytes_max: 24,
                write_overhead_bytes: 24,
            },
            1000,
        );
        assert!(list.header(at(2000), 100) && list.content(at(2100), at(2100), 500));
        assert_eq!(list.writes().len(), 2, "a header goes before, and is joined with nothing");
        assert!(!list.content(at(2600), at(2600), 369), "with the control line behind it");
        assert!(!list.content(at(2610), at(2610), 359), "with the gap that comes with it");
        assert!(!list.header(at(2100), 400) && list.content(at(500), at(500), 0));
        assert!(list.header(at(2100), 50));
        assert_eq!(list.writes()[0].length, 150);
        list.drop_header(50);
        assert_eq!(list.writes()[0].length, 100);
        assert!(list.guard(at(0), at(0), 8), "guards are short, and have room of their own");
    }

    /// With one byte less, the entry could never be sent.
    #[test]
    fn region_list_fits_one_entry_of_maximum_size() {
        let capabilities = Capabilities {
            promises: Promises::all(),
            writes_max: 4,
            write_bytes_max: 4096,
            guard_bytes_max: 24,
            write_overhead_bytes: 24,
        };
        for (room_bytes, fits) in [(300 + 32, true), (300 + 31, false)] {
            let mut list = Posting::to_region(&capabilities, room_bytes);
            assert!(list.header(at(64), 64));
            assert_eq!(list.content(at(256), at(256), 236), fits, "{room_bytes}");
        }
    }

    #[test]
    fn joined_write_never_exceeds_the_fabric_limit() {
        let mut list = posting(2);
        assert!(list.content(at(0), at(0), 1000));
        assert!(list.content(at(1000), at(1000), 24));
        assert!(list.content(at(1024), at(1024), 1));
        assert_eq!(list.writes().len(), 2);
        assert!(!list.guard(at(0), at(0), 8), "there is no room");
    }

    /// Data that a list accepted.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Taken {
        source: Area,
        target: Area,
        length: usize,
        kind: Kind,
    }

    fn area() -> impl Strategy<Value = Area> {
        (0..2_u16, 0..64_usize)
            .prop_map(|(region, line)| Area { region: Region(region), offset: 32 * line })
    }

    proptest! {
        /// For any additions in any order, a list is no longer than its fabric accepts, and carries
        /// everything that it has accepted, whole, from its source to its target. A guard follows
        /// everything that was added before it, and a header precedes the contents that follow it.
        #[test]
        fn list_carries_accepted_data_and_never_exceeds_limits(
            writes_max in 1..6_usize,
            room_bytes in 200..3000_usize,
            adds in proptest::collection::vec((0..5_u8, area(), area(), 0..300_usize), 1..24),
        ) {
            let capabilities = Capabilities {
                promises: Promises::all(),
                writes_max,
                write_bytes_max: 512,
                guard_bytes_max: 24,
                write_overhead_bytes: 24,
            };
            let mut list = Posting::to_region(&capabilities, room_bytes);
            let mut taken: std::vec::Vec<Taken> = std::vec::Vec::new();
            let mut headers = None;
            for (what, source, target, length) in adds {
                match what {
                    0 => {
                        if list.guard(source, target, 8) {
                            taken.push(Taken { source, target, length: 8, kind: Kind::Guard });
                        }
                    }
                    1 => {
                        // Each header follows the previous one.
                        let (at, bytes) = headers.unwrap_or((source, 0));
                        if list.header(source, 64) {
                            headers = Some((at, bytes + 64));
                        }
                    }
                    2 => {
                        list.drop_header(64);
                        headers = headers
                            .map(|(at, bytes)| (at, bytes - 64))
                            .filter(|(_, bytes)| *bytes > 0);
                        if headers.is_none() {
                            // The contents added after the only header were removed with it.
                            taken.retain(|one| carries(list.writes(), one));
                        }
                    }
                    _ => {
                        if list.content(source, target, length) && length > 0 {
                            taken.push(Taken { source, target, length, kind: Kind::Content });
                        }
                    }
                }
                prop_assert!(list.writes().len() <= writes_max);
                prop_assert_eq!(list.room(), writes_max - list.writes().len());
                let contents = list.writes().iter().filter(|write| write.kind == Kind::Content);
                let bytes: usize = contents.map(|write| write.length).sum();
                prop_assert!(bytes + CONTROL_BYTES <= room_bytes);
                for one in &taken {
                    prop_assert!(carries(list.writes(), one), "{:?} in {:?}", one, list.writes());
                }
                if let Some((at, bytes)) = headers {
                    let is_one = |write: &Write| write.source == at && write.length == bytes;
                    prop_assert!(list.writes().iter().any(is_one));
                }
            }
        }
    }

    /// Returns whether a single write of a list has all accepted data.
    fn carries(writes: &[Write], one: &Taken) -> bool {
        writes.iter().any(|write| {
            let ahead = one.source.offset.wrapping_sub(write.source.offset);
            write.kind == one.kind
                && write.source.region == one.source.region
                && write.target.region == one.target.region
                && ahead == one.target.offset.wrapping_sub(write.target.offset)
                && ahead.saturating_add(one.length) <= write.length
        })
    }
}
