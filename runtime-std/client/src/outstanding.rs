//! The lines of a publisher that have not reached their level, including those that are still to be
//! sent or resent.
//!
//! # Invariants
//! - Ordinals have no gaps, and a line is removed only once it has reached the level.
//! - The lines sent in a session start at the ordinal that the member requests, and have no gaps.

use std::collections::VecDeque;
use std::sync::Arc;

use tramontane_control::client_messages::{Level, Reached};

/// The maximum number of lines that have not reached their level.
const LINES_MAX: usize = 4_096;

/// The maximum total size of these lines, in bytes. A single line may be longer.
const BYTES_MAX: usize = 4 << 20;

/// The lines of a publisher that have not reached their level.
#[derive(Debug)]
pub(crate) struct Outstanding {
    level: Level,
    lines: VecDeque<Arc<[u8]>>,
    bytes: usize,
    /// The ordinal of the first of these lines.
    first: u64,
    /// The ordinal of the next line to send in the current session.
    next: u64,
    reached: Reached,
}

/// Lines that the group had delivered but has lost. See
/// [`PublishError::Lost`](crate::PublishError::Lost).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LostLines {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Outstanding {
    pub(crate) fn new(level: Level) -> Self {
        let reached = Reached::default();
        Self { level, lines: VecDeque::new(), bytes: 0, first: 0, next: 0, reached }
    }

    /// Returns whether a line of `bytes` bytes can be added.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let fits = self.bytes.saturating_add(bytes) <= BYTES_MAX;
        self.lines.is_empty() || (fits && self.lines.len() < LINES_MAX)
    }

    /// Adds a line, and returns its ordinal.
    pub(crate) fn add(&mut self, line: &[u8]) -> u64 {
        let ordinal = self.end();
        self.bytes += line.len();
        self.lines.push_back(line.into());
        ordinal
    }

    /// Returns the ordinal after the last line.
    fn end(&self) -> u64 {
        self.first.saturating_add(u64::try_from(self.lines.len()).unwrap_or(u64::MAX))
    }

    /// Returns whether all lines have reached the level.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns whether a line has reached the level.
    pub(crate) const fn has_reached(&self, ordinal: u64) -> bool {
        ordinal < self.first
    }

    /// Returns the number of lines that have reached each level.
    pub(crate) const fn reached(&self) -> &Reached {
        &self.reached
    }

    /// Begins a session in which the lines below `next` have already been delivered.
    pub(crate) fn attach(&mut self, next: u64) -> Result<(), LostLines> {
        if next < self.first {
            return Err(LostLines { from: next, to: self.first });
        }
        self.next = next.min(self.end());
        self.reach(&Reached { delivered: next, ..Reached::default() });
        Ok(())
    }

    /// Handles a member's report. A member that reports less than an earlier one lags.
    pub(crate) fn reach(&mut self, reached: &Reached) {
        let end = self.end();
        let most = |known: u64, heard: u64| known.max(heard.min(end));
        let known = &mut self.reached;
        known.delivered = most(known.delivered, reached.delivered);
        known.durable_here = most(known.durable_here, reached.durable_here);
        known.durable_majority = most(known.durable_majority, reached.durable_majority);
        known.durable_everywhere = most(known.durable_everywhere, reached.durable_everywhere);
        let level = self.reached.at(self.level);
        while self.first < level
            && let Some(line) = self.lines.pop_front()
        {
            self.bytes -= line.len();
            self.first += 1;
        }
        self.next = self.next.max(self.first);
    }

    /// Returns the ordinal of the next line to send, and as many of the next lines as fit into both
    /// limits, but at least one.
    pub(crate) fn take(&mut self, lines_max: usize, bytes_max: usize) -> (u64, Vec<Arc<[u8]>>) {
        let first = self.next;
        let skipped = usize::try_from(first - self.first).unwrap_or(usize::MAX);
        let mut bytes = 0;
        let mut taken = Vec::new();
        for line in self.lines.range(skipped.min(self.lines.len())..).take(lines_max) {
            bytes += line.len();
            if !taken.is_empty() && bytes > bytes_max {
                break;
            }
            taken.push(Arc::clone(line));
        }
        self.next += u64::try_from(taken.len()).unwrap_or(u64::MAX);
        (first, taken)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn delivered(delivered: u64) -> Reached {
        Reached { delivered, durable_here: 0, durable_majority: 0, durable_everywhere: 0 }
    }

    #[test]
    fn lines_below_requested_level_are_resent() {
        let mut lines = Outstanding::new(Level::DurableMajority);
        for line in [b"a", b"b", b"c", b"d"] {
            lines.add(line);
        }
        lines.attach(0).expect("nothing is lost");
        assert_eq!(lines.take(3, usize::MAX).1.len(), 3);
        lines.reach(&Reached { durable_majority: 1, ..delivered(3) });
        assert_eq!((lines.first, lines.next), (1, 3));
        // The client attaches to another member, which has delivered the first two lines.
        lines.attach(2).expect("nothing is lost");
        let (first, sent) = lines.take(9, 1);
        assert_eq!((first, sent.len(), &*sent[0]), (2, 1, &b"c"[..]));
        assert_eq!(lines.take(9, 9).0, 3);
        assert!(lines.take(9, 9).1.is_empty() && !lines.is_empty());
        lines.reach(&Reached { durable_majority: 9, ..delivered(9) });
        assert!(lines.is_empty());
        assert_eq!(lines.reached().durable_majority, 4, "no more than there is");
        // The group has forgotten lines that it had reported, and no member has them any longer.
        assert_eq!(lines.attach(3), Err(LostLines { from: 3, to: 4 }));
    }

    #[test]
    fn outstanding_lines_are_bounded_but_one_always_fits() {
        let mut lines = Outstanding::new(Level::Delivered);
        assert!(lines.has_room(2 * BYTES_MAX));
        lines.add(&[0; 16]);
        assert!(!lines.has_room(BYTES_MAX) && lines.has_room(BYTES_MAX - 16));
        while lines.has_room(1) {
            lines.add(b"x");
        }
        assert_eq!(lines.lines.len(), LINES_MAX);
    }

    proptest! {
        /// Whatever members report, and however often the client moves, the client sends without
        /// gaps within a session, and no line is removed before it has been delivered.
        #[test]
        fn no_client_line_is_skipped(deeds in prop::collection::vec((0..4_u8, 0..9_u64), 0..100)) {
            let mut lines = Outstanding::new(Level::Delivered);
            // The group's state: the number of lines delivered, and the number delivered or in
            // flight.
            let (mut group, mut on_its_way, mut added) = (0, 0, 0_u64);
            lines.attach(0).expect("nothing is lost");
            for (deed, number) in deeds {
                match deed {
                    0 => {
                        prop_assert_eq!(lines.add(&added.to_le_bytes()), added);
                        added += 1;
                    }
                    1 => {
                        let (first, sent) = lines.take(3, 16);
                        prop_assert!(first <= on_its_way || sent.is_empty());
                        for (ordinal, line) in (first..).zip(&sent) {
                            prop_assert_eq!(&**line, &ordinal.to_le_bytes());
                        }
                        on_its_way = on_its_way.max(first + sent.len() as u64);
                    }
                    2 => {
                        group = on_its_way.min(group + number);
                        lines.reach(&delivered(group));
                    }
                    _ => {
                        // Lines in flight to the member are lost together with it.
                        on_its_way = group;
                        lines.attach(group).expect("nothing is lost");
                    }
                }
                prop_assert!(lines.reached().delivered <= group);
                prop_assert_eq!(lines.end(), added);
            }
        }
    }
}
