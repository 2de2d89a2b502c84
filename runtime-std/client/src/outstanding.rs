//! The lines of a publisher that have not reached their level: what is to be sent, and sent again.
//!
//! # Invariants
//! - Ordinals go on without a gap, and a line leaves only once it has reached the level.
//! - What is sent in a session goes on without a gap from what the member says is next.

use std::collections::VecDeque;
use std::sync::Arc;

use tramontane_control::client_messages::{Level, Reached};

/// The most lines that have not reached their level.
const LINES_MAX: usize = 4_096;

/// The most bytes of them, or one line.
const BYTES_MAX: usize = 4 << 20;

/// Lines that have not reached their level.
#[derive(Debug)]
pub(crate) struct Outstanding {
    level: Level,
    lines: VecDeque<Arc<[u8]>>,
    bytes: usize,
    /// The ordinal of the first of them.
    first: u64,
    /// The ordinal of the next that is to be sent in the present session.
    next: u64,
    reached: Reached,
}

/// The group does not have what it had delivered: see
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

    /// Whether a line of so many bytes may be added.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let fits = self.bytes.saturating_add(bytes) <= BYTES_MAX;
        self.lines.is_empty() || (fits && self.lines.len() < LINES_MAX)
    }

    /// Adds a line, and gives its ordinal.
    pub(crate) fn add(&mut self, line: &[u8]) -> u64 {
        let ordinal = self.end();
        self.bytes += line.len();
        self.lines.push_back(line.into());
        ordinal
    }

    /// The ordinal after the last line.
    fn end(&self) -> u64 {
        self.first.saturating_add(u64::try_from(self.lines.len()).unwrap_or(u64::MAX))
    }

    /// Whether all lines have reached the level.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether a line has reached the level.
    pub(crate) const fn has_reached(&self, ordinal: u64) -> bool {
        ordinal < self.first
    }

    /// How many lines have reached each level.
    pub(crate) const fn reached(&self) -> &Reached {
        &self.reached
    }

    /// A session begins: lines below `next` were delivered.
    pub(crate) fn attach(&mut self, next: u64) -> Result<(), LostLines> {
        if next < self.first {
            return Err(LostLines { from: next, to: self.first });
        }
        self.next = next.min(self.end());
        self.reach(&Reached { delivered: next, ..Reached::default() });
        Ok(())
    }

    /// Takes what a member says. A member that says less than another before is behind it.
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

    /// The next lines to send, up to so many and so many bytes, but one at least; and the ordinal
    /// of the first.
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
    fn lines_wait_for_their_level_and_are_sent_again_from_what_the_member_says() {
        let mut lines = Outstanding::new(Level::DurableMajority);
        for line in [b"a", b"b", b"c", b"d"] {
            lines.add(line);
        }
        lines.attach(0).expect("nothing is lost");
        assert_eq!(lines.take(3, usize::MAX).1.len(), 3);
        lines.reach(&Reached { durable_majority: 1, ..delivered(3) });
        assert_eq!((lines.first, lines.next), (1, 3));
        // Another member has delivered the first two.
        lines.attach(2).expect("nothing is lost");
        let (first, sent) = lines.take(9, 1);
        assert_eq!((first, sent.len(), &*sent[0]), (2, 1, &b"c"[..]));
        assert_eq!(lines.take(9, 9).0, 3);
        assert!(lines.take(9, 9).1.is_empty() && !lines.is_empty());
        lines.reach(&Reached { durable_majority: 9, ..delivered(9) });
        assert!(lines.is_empty());
        assert_eq!(lines.reached().durable_majority, 4, "no more than there is");
        // The group forgot what it had said: nobody has it any more.
        assert_eq!(lines.attach(3), Err(LostLines { from: 3, to: 4 }));
    }

    #[test]
    fn room_is_bounded_and_there_is_always_room_for_one() {
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
        /// Whatever members say and however often the client moves: what it sends in a session goes
        /// on without a gap, and nothing leaves before it was delivered.
        #[test]
        fn nothing_is_left_out(deeds in prop::collection::vec((0..4_u8, 0..9_u64), 0..100)) {
            let mut lines = Outstanding::new(Level::Delivered);
            // The group: how many lines it has delivered, and what is on its way.
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
                        // What was on its way to the member is lost with it.
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
