//! The samples that a gateway has forwarded and those that it still has to forward: a state machine
//! without I/O.
//!
//! There may be several gateways for the same topics. All of them see the group's order and the
//! RTPS topics, and one of them is active. Each sample carries its origin: in the group's order,
//! this is the RTPS writer's GUID and the sample's number from that writer; on RTPS, it is the
//! sample's number in the group's order. So the next active gateway knows which samples have
//! already been forwarded.
//!
//! # Invariants
//! - A sample from RTPS enters the order once, and samples from one writer enter in that writer's
//!   order.
//! - Samples leave for RTPS in the group's order, each once, except that the last writes of a
//!   failed gateway may be repeated if the others did not see them.
//! - A sample that came from the RTPS topic to which the order is written is not written back to
//!   it.

use std::collections::{BTreeMap, VecDeque};

use crate::time::Timestamp;
use crate::wire::Origin;

/// Maximum size, in bytes, of the samples that a gateway keeps before they are forwarded, and the
/// limits on their number.
const WAITING: (usize, usize, usize) = (256 << 20, 64, 65_536);

/// Maximum number of RTPS writers whose last sample is remembered. When the limit is reached, the
/// writer that has been silent for longest is forgotten, because RTPS gives a returning writer
/// another GUID anyway.
const WRITERS_MAX: usize = 16_384;

/// A sample from RTPS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FromRtps {
    pub(super) origin: Origin,
    pub(super) source: Option<Timestamp>,
    pub(super) cdr: Vec<u8>,
}

/// A sample from the group's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FromGroup {
    pub(super) ordinal: u64,
    pub(super) origin: Option<Origin>,
    pub(super) source: Timestamp,
    pub(super) cdr: Vec<u8>,
}

/// An action that the active gateway has to carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// Write the sample in the group.
    Enter(FromRtps),
    /// Write the sample on RTPS.
    Leave(FromGroup),
}

/// The last sample of each RTPS writer that is in the order, or about to enter it.
#[derive(Debug, Default)]
struct Entered {
    /// The sample's number, and the logical time at which it was recorded.
    last: BTreeMap<[u8; 16], (u64, u64)>,
    /// The writers, ordered by the time of their last record.
    noted: BTreeMap<u64, [u8; 16]>,
    now: u64,
}

impl Entered {
    /// Returns the number of a writer's last sample.
    fn last(&self, writer: &[u8; 16]) -> Option<u64> {
        self.last.get(writer).map(|(sequence, _)| *sequence)
    }

    /// Withdraws the record of a sample that did not enter the order. The samples before it did.
    fn take_back(&mut self, origin: &Origin) {
        if let Some((last, _)) = self.last.get_mut(&origin.writer) {
            *last = origin.sequence.saturating_sub(1);
        }
    }

    /// Records a sample; beyond the limit, forgets the writer that has been silent for longest.
    fn note(&mut self, origin: &Origin) {
        self.now += 1;
        let entry = self.last.entry(origin.writer).or_default();
        self.noted.remove(&entry.1);
        *entry = (origin.sequence.max(entry.0), self.now);
        self.noted.insert(self.now, origin.writer);
        if self.last.len() > WRITERS_MAX
            && let Some((_, silent)) = self.noted.pop_first()
        {
            self.last.remove(&silent);
        }
    }
}

/// The ledger of one topic.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Whether samples from RTPS are also written to RTPS, because they go to a different topic.
    returns: bool,
    entered: Entered,
    waiting: VecDeque<FromRtps>,
    /// The number, in the order, of the last sample that was written to RTPS.
    left: u64,
    leaving: VecDeque<FromGroup>,
    /// Maximum number of samples that wait in each direction.
    waiting_max: usize,
    /// Number of samples dropped because there was no active gateway for too long.
    dropped: u64,
}

impl Ledger {
    pub(super) fn new(returns: bool, sample_max: usize) -> Self {
        let (bytes, least, most) = WAITING;
        let waiting_max = (bytes / sample_max.max(1)).clamp(least, most);
        Self { returns, waiting_max, ..Self::default() }
    }

    /// Handles a sample received from RTPS.
    pub(super) fn came_from_rtps(&mut self, sample: FromRtps) {
        if self.has_entered(&sample.origin) {
            return;
        }
        if self.waiting.len() >= self.waiting_max {
            self.waiting.pop_front();
            self.dropped += 1;
        }
        self.waiting.push_back(sample);
    }

    /// Records that another gateway has written the sample with this number on RTPS.
    pub(super) fn has_left(&mut self, ordinal: u64) {
        self.left = self.left.max(ordinal);
        let left = self.left;
        while self.leaving.front().is_some_and(|sample| sample.ordinal <= left) {
            self.leaving.pop_front();
        }
    }

    /// Handles the next sample in the group's order.
    pub(super) fn came_in_order(&mut self, sample: FromGroup) {
        if let Some(origin) = sample.origin {
            self.entered.note(&origin);
            let entered = &self.entered;
            self.waiting.retain(|waiting| {
                entered
                    .last(&waiting.origin.writer)
                    .is_none_or(|last| waiting.origin.sequence > last)
            });
            if !self.returns {
                return;
            }
        }
        if sample.ordinal <= self.left {
            return;
        }
        if self.leaving.len() >= self.waiting_max {
            self.leaving.pop_front();
            self.dropped += 1;
        }
        self.leaving.push_back(sample);
    }

    /// Returns the active gateway's next action, and counts it as done.
    pub(super) fn next(&mut self) -> Option<Deed> {
        if let Some(sample) = self.leaving.pop_front() {
            self.left = sample.ordinal;
            return Some(Deed::Leave(sample));
        }
        let sample = self.waiting.pop_front()?;
        self.entered.note(&sample.origin);
        Some(Deed::Enter(sample))
    }

    /// Undoes `next` for an action that could not be carried out.
    pub(super) fn take_back(&mut self, deed: Deed) {
        match deed {
            Deed::Leave(sample) => {
                self.left = sample.ordinal - 1;
                self.leaving.push_front(sample);
            }
            Deed::Enter(sample) => {
                self.entered.take_back(&sample.origin);
                self.waiting.push_front(sample);
            }
        }
    }

    /// Returns the number of samples dropped since the last call.
    pub(super) fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    fn has_entered(&self, origin: &Origin) -> bool {
        self.entered.last(&origin.writer).is_some_and(|last| origin.sequence <= last)
            || self.waiting.iter().any(|waiting| waiting.origin == *origin)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn from_rtps(writer: u8, sequence: u64) -> FromRtps {
        let origin = Origin { writer: [writer; 16], sequence };
        FromRtps { origin, source: None, cdr: vec![writer] }
    }

    /// A group's order and an RTPS topic, with gateways between them.
    #[derive(Debug)]
    struct World {
        order: Vec<FromGroup>,
        /// The numbers of the samples that gateways have written on RTPS.
        out: Vec<u64>,
        written: BTreeMap<u8, u64>,
        gateways: Vec<Ledger>,
        /// Number of failed gateways; the first live one is active.
        lost: usize,
    }

    impl World {
        fn new(gateways: usize, returns: bool) -> Self {
            let gateways = (0..gateways).map(|_| Ledger::new(returns, 1)).collect();
            let (order, out, written) = (Vec::new(), Vec::new(), BTreeMap::new());
            Self { order, out, written, gateways, lost: 0 }
        }

        fn order(&mut self, origin: Option<Origin>) {
            let ordinal = self.order.len() as u64 + 1;
            let sample = FromGroup { ordinal, origin, source: Timestamp(0), cdr: Vec::new() };
            self.order.push(sample.clone());
            self.living().for_each(|ledger| ledger.came_in_order(sample.clone()));
        }

        fn write_on_rtps(&mut self, writer: u8) {
            let sequence = self.written.entry(writer).or_default();
            *sequence += 1;
            let sample = from_rtps(writer, *sequence);
            self.living().for_each(|ledger| ledger.came_from_rtps(sample.clone()));
        }

        fn living(&mut self) -> impl Iterator<Item = &mut Ledger> {
            self.gateways.iter_mut().skip(self.lost)
        }

        /// Makes the next action of the active gateway fail.
        fn block(&mut self) {
            let Some(ledger) = self.living().next() else { return };
            if let Some(deed) = ledger.next() {
                ledger.take_back(deed);
            }
        }

        /// Makes the active gateway carry out one action. Returns `false` if there is none.
        fn pass_on(&mut self) -> bool {
            let Some(deed) = self.living().next().and_then(Ledger::next) else { return false };
            match deed {
                Deed::Enter(sample) => self.order(Some(sample.origin)),
                Deed::Leave(sample) => {
                    self.out.push(sample.ordinal);
                    self.living().skip(1).for_each(|ledger| ledger.has_left(sample.ordinal));
                }
            }
            true
        }
    }

    proptest! {
        /// With any events and any gateway failures, each sample from RTPS enters the order once
        /// and in its writer's order, and each sample that must go out does so once and in order.
        #[test]
        fn samples_are_never_repeated_lost_or_echoed(
            deeds in proptest::collection::vec(0_u8..7, 0..80),
            returns in any::<bool>(),
        ) {
            let mut world = World::new(3, returns);
            for deed in deeds {
                match deed {
                    0 | 1 => world.write_on_rtps(deed),
                    2 => world.order(None),
                    5 => world.lost = (world.lost + 1).min(2),
                    6 => world.block(),
                    _ => {
                        world.pass_on();
                    }
                }
            }
            while world.pass_on() {}
            for (writer, last) in &world.written {
                let entered: Vec<u64> = world
                    .order
                    .iter()
                    .filter_map(|sample| sample.origin)
                    .filter(|origin| origin.writer == [*writer; 16])
                    .map(|origin| origin.sequence)
                    .collect();
                prop_assert_eq!(entered, (1..=*last).collect::<Vec<_>>());
            }
            let expected: Vec<u64> = world
                .order
                .iter()
                .filter(|sample| returns || sample.origin.is_none())
                .map(|sample| sample.ordinal)
                .collect();
            prop_assert_eq!(&world.out, &expected);
        }
    }

    /// Writers come and go, each with another GUID, and one of them writes all the time.
    #[test]
    fn longest_silent_writers_are_forgotten_beyond_limit() {
        let writer = |number: usize| {
            let mut writer = [0; 16];
            writer[..8].copy_from_slice(&number.to_le_bytes());
            writer
        };
        let mut ledger = Ledger::new(false, 1);
        let mut enter = |writer, sequence| {
            let origin = Origin { writer, sequence };
            ledger.came_from_rtps(FromRtps { origin, source: None, cdr: Vec::new() });
            ledger.next().is_some()
        };
        for number in 1..=2 * WRITERS_MAX {
            assert!(enter(writer(number), 1));
            assert!(enter(writer(0), number as u64));
        }
        assert!(!enter(writer(0), 2 * WRITERS_MAX as u64), "it is known");
        assert!(!enter(writer(2 * WRITERS_MAX), 1), "it is known");
        let Entered { last, noted, .. } = &ledger.entered;
        assert_eq!((last.len(), noted.len()), (WRITERS_MAX, WRITERS_MAX));
    }

    #[test]
    fn late_gateway_does_not_forward_earlier_samples() {
        let mut late = Ledger::new(false, 1);
        let origin = Some(Origin { writer: [1; 16], sequence: 5 });
        late.came_in_order(FromGroup { ordinal: 9, origin, source: Timestamp(0), cdr: Vec::new() });
        late.came_from_rtps(from_rtps(1, 4));
        late.came_from_rtps(from_rtps(1, 5));
        assert_eq!(late.next(), None);
        late.came_from_rtps(from_rtps(1, 6));
        assert_eq!(late.next(), Some(Deed::Enter(from_rtps(1, 6))));
    }
}
