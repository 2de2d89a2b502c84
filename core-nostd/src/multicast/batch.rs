//! The argument of an upcall: an iterator over messages in their senders' rings.
//!
//! Requirements: DEL-1, DEL-3, NUL-3, ORD-2.

use super::order::Order;
use super::state::SenderState;
use super::watched::{Impossible, Refused};
use crate::check::Checks;
use crate::ids::{
    Frontier, Place, Position, Rank, Round, SenderRank, Slot, SubgroupId, index_from_u32,
    u64_from_index,
};
use crate::layout::Delivery;
use crate::memory::{HERE, Ring, RingWalk, Row};
use crate::smc::{RingCursor, SlotCounter, SlotLength};

/// A delivered message. The payload is lent until the upcall returns.
///
/// The payload is in the row that the sender writes. A sender that breaks the rules can change the
/// bytes while they are read. An application that does not trust all members must copy a payload
/// before it validates it, and use the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Message<'a> {
    /// Sequence position in the delivery order, the same at every member. Nulls occupy positions
    /// too, so there are gaps.
    pub place: Place,
    /// Sender's rank in the sender list.
    pub sender: SenderRank,
    /// Sender's rank in the view.
    pub rank: Rank,
    /// Payload as the sender built it; possibly empty.
    pub payload: &'a [u8],
    /// For a large message, the number of large messages that this sender sent before it in this
    /// view. Its blocks have arrived, and `payload` is its descriptor (RDM-7).
    pub large: Option<u64>,
}

/// All messages that have become deliverable in one subgroup, in order.
///
/// When the upcall returns, every message counts as delivered, even if the application did not take
/// it. The warning at [`Message`] about validating payloads applies to all of them.
#[derive(Debug)]
pub struct Batch<'a> {
    subgroup: SubgroupId,
    delivery: Delivery,
    order: Order,
    senders: &'a mut [SenderState],
    rows: &'a [Row<'a>],
    window: u32,
    /// Next turn to examine: round, sender, and their sequence position.
    round: Round,
    sender: SenderRank,
    place: Place,
    /// Positions below this are stable.
    stable: Frontier,
    /// Number of messages that may still be handed over; `room_at_first` is the initial number.
    room: u64,
    room_at_first: u64,
    /// Sender whose ring has changed since it was received.
    refused: Option<Refused>,
    checks: Checks,
}

/// The point at which a batch ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) round: Round,
    pub(crate) sender: SenderRank,
    pub(crate) taken: u64,
    pub(crate) refused: Option<Refused>,
}

/// The content of a turn.
enum Found<'a> {
    Message(Message<'a>),
    /// There is no message: the sender used the round in silence, or it dropped the reservation of
    /// a slot in its ring.
    Null {
        has_slot: bool,
    },
    End,
}

/// The content of a turn, as seen by the fast path.
enum TakenTurn<'a> {
    /// The payload of a small message.
    Message(&'a [u8]),
    /// The sender's next message has a later round or has not been received.
    Null,
    /// Anything else.
    Unusual,
}

/// Maximum number of senders whose slots a batch walks over. With more senders, it looks up each
/// slot.
const WALKS: usize = 4;

/// Minimum number of turns for which a batch walks over the slots. For fewer, preparing the walks
/// costs more than it saves.
const TURNS_MIN: u64 = 8;

impl SenderState {
    /// Reads this sender's turn of `round` from a ring without checks. Advances past its slot, at
    /// which the walk is, if the slot has a small message.
    #[inline(always)]
    fn take_turn<'a>(&mut self, walk: &mut RingWalk<'a>, round: Round) -> TakenTurn<'a> {
        if self.hand.position == self.take.position {
            return TakenTurn::Null;
        }
        let ring = walk.here();
        let counter = ring.counter(HERE).load();
        if counter == SlotCounter::of_message(round) {
            let length = ring.length(HERE);
            if length > ring.capacity() {
                return TakenTurn::Unusual;
            }
            walk.advance();
            let position = Position(self.hand.position.0.wrapping_add(1));
            self.hand = RingCursor { position, slot: walk.slot() };
            return TakenTurn::Message(ring.payload(HERE, length));
        }
        let later = |found| found > round && found < self.taken;
        if matches!(SlotCounter::decode(counter), SlotCounter::Message(found) if later(found)) {
            return TakenTurn::Null;
        }
        TakenTurn::Unusual
    }
}

impl<'a> Batch<'a> {
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn new(
        subgroup: SubgroupId,
        delivery: Delivery,
        order: Order,
        senders: &'a mut [SenderState],
        rows: &'a [Row<'a>],
        window: u32,
        turn: (Round, SenderRank),
        stable: Frontier,
        (room, checks): (u64, Checks),
    ) -> Self {
        let (round, sender) = turn;
        Self {
            subgroup,
            delivery,
            order,
            senders,
            rows,
            window,
            round,
            sender,
            place: order.place(round, sender),
            stable,
            room,
            room_at_first: room,
            refused: None,
            checks,
        }
    }

    /// Returns the subgroup of the messages.
    #[must_use]
    pub const fn subgroup(&self) -> SubgroupId {
        self.subgroup
    }

    /// Skips nulls and returns whether a message follows. It is bounded as `next` is.
    pub(crate) fn advance_to_message(&mut self) -> bool {
        match self.delivery {
            Delivery::Ordered => self.is_at_message() || self.skip_nulls().is_some(),
            Delivery::Unordered => self.senders.iter().any(|sender| sender.hand != sender.take),
        }
    }

    /// Returns whether the present turn, which is stable, has a small message in a slot without a
    /// check. A turn for which it returns false may have a message too.
    #[inline(always)]
    fn is_at_message(&self) -> bool {
        let Some(state) = self.senders.get(self.sender.index()) else { return false };
        if self.checks.is_on() || state.hand.position == state.take.position {
            return false;
        }
        let Some(ring) = self.ring_of(state) else { return false };
        let slot = state.hand.slot;
        ring.counter(slot).load() == SlotCounter::of_message(self.round)
            && ring.length(slot) <= ring.capacity()
    }

    /// Hands over the messages that the application left, and returns where the batch ended.
    pub(crate) fn finish(mut self) -> Ended {
        // bound: one slot per turn, at most one window per sender
        while self.next().is_some() {}
        Ended {
            round: self.round,
            sender: self.sender,
            taken: self.room_at_first.saturating_sub(self.room),
            refused: self.refused,
        }
    }

    #[inline]
    fn ring_of(&self, state: &SenderState) -> Option<Ring<'a>> {
        self.rows.get(state.rank.index())?.ring_at(&state.ring).ok()
    }

    /// Returns the round of a sender's next received message, if there is one.
    fn next_round_of(&self, state: &SenderState) -> Option<Round> {
        if state.hand == state.take {
            return None;
        }
        // If the slot has changed since receipt, its turn detects that.
        Some(counter_of(&self.ring_of(state)?, state.hand.slot).round())
    }

    /// Advances by one turn. Neither sum wraps, because a turn that is passed has a position below
    /// the stable frontier and a sender in the list.
    #[inline]
    fn turn_over(&mut self) {
        self.place = Place(self.place.0.wrapping_add(1));
        self.sender = SenderRank(self.sender.0.wrapping_add(1));
        if self.sender.index() >= self.senders.len() {
            self.sender = SenderRank::ZERO;
            self.round = self.round.next();
        }
    }

    /// Reads the next turn without advancing.
    #[inline]
    fn look(&mut self) -> Found<'a> {
        let place = self.place;
        if place.0 >= self.stable.0 {
            return Found::End;
        }
        let Some(state) = self.senders.get(self.sender.index()) else { return Found::End };
        if state.hand == state.take {
            return Found::Null { has_slot: false };
        }
        let Some(ring) = self.ring_of(state) else { return Found::End };
        let RingCursor { slot, position } = state.hand;
        match counter_of(&ring, slot) {
            SlotCounter::Message(round) if round == self.round => {
                let stands = ring.length(slot);
                if !ring.is_intact(slot, position, stands) {
                    return self.end_at(state.rank, Impossible::SlotCheck);
                }
                let (length, large) = match SlotLength::decode(stands) {
                    SlotLength::Message(length) if length <= ring.capacity() => (length, None),
                    SlotLength::Large(length) if state.has_large() => {
                        (length, Some(state.large_handed))
                    }
                    SlotLength::Message(_) | SlotLength::Large(_) => {
                        return self.end_at(state.rank, Impossible::SlotChanged);
                    }
                    SlotLength::Null => return Found::Null { has_slot: true },
                };
                Found::Message(Message {
                    place,
                    sender: self.sender,
                    rank: state.rank,
                    payload: ring.payload(slot, length),
                    large,
                })
            }
            SlotCounter::Message(round) if round > self.round && round < state.taken => {
                Found::Null { has_slot: false }
            }
            // At receipt, the slot held a message of this round or a later one, and of a round that
            // counted as received.
            SlotCounter::Message(_) | SlotCounter::UsedBelow(_) => {
                self.end_at(state.rank, Impossible::SlotChanged)
            }
        }
    }

    /// Ends the batch, because a sender changed a message after it was received.
    #[cold]
    fn end_at(&mut self, rank: Rank, what: Impossible) -> Found<'a> {
        self.refused.get_or_insert(Refused { rank, what });
        Found::End
    }

    /// Advances past the slot of the turn.
    #[inline]
    fn leave_slot(&mut self) {
        if let Some(state) = self.senders.get_mut(self.sender.index()) {
            state.hand = state.hand.next(self.window);
        }
    }

    /// Counts a large message of the turn's sender.
    fn count_large(&mut self, large: Option<u64>) {
        if let (Some(before), Some(state)) = (large, self.senders.get_mut(self.sender.index())) {
            state.large_handed = before.saturating_add(1);
        }
    }

    /// Skips nulls and returns the next message, if there is one.
    ///
    /// After a whole round without a message, it jumps to the next received message. The bound is
    /// therefore two rounds of turns for each slot passed, plus two.
    fn skip_nulls(&mut self) -> Option<Message<'a>> {
        let senders = self.senders.len();
        let slots = senders.saturating_mul(index_from_u32(self.window));
        let turns = slots.saturating_add(1).saturating_mul(senders).saturating_mul(2);
        let mut idle_turns = 0_usize;
        // bound: two rounds of turns for each slot of all rings, plus two
        for _ in 0..turns {
            match self.look() {
                Found::Message(message) => return Some(message),
                Found::End => return None,
                Found::Null { has_slot } => {
                    if has_slot {
                        self.leave_slot();
                    }
                    self.turn_over();
                    idle_turns = idle_turns.saturating_add(1);
                    if idle_turns >= senders {
                        self.jump();
                        idle_turns = 0;
                    }
                }
            }
        }
        None
    }

    /// Jumps to the first turn that has a slot, or to the end of the stable positions.
    fn jump(&mut self) {
        let mut target = Place(self.stable.0);
        let mut sender = SenderRank::ZERO;
        // bound: the senders
        for state in self.senders.iter() {
            if let Some(round) = self.next_round_of(state) {
                target = target.min(self.order.place(round, sender));
            }
            sender = sender.next();
        }
        if target > self.place {
            let (round, sender) = self.order.turn(target);
            self.round = round;
            self.sender = sender;
            self.place = target;
        }
    }

    /// Passes all remaining messages to `with`, in order. It does the same as a loop over the
    /// iterator, but keeps the turn in registers, so a small message takes fewer instructions.
    ///
    /// ```
    /// use tramontane_core::multicast::Batch;
    /// let mut bytes = 0;
    /// let application =
    ///     |batch: &mut Batch<'_>| batch.for_each(|message| bytes += message.payload.len());
    /// # let _ = application;
    /// ```
    #[inline(always)]
    pub fn for_each(&mut self, mut with: impl FnMut(Message<'a>)) {
        let may_walk = self.delivery == Delivery::Ordered && !self.checks.is_on();
        // bound: the messages of the batch, at most one window per sender
        loop {
            if may_walk {
                self.pass_rounds(&mut with);
            }
            let Some(message) = self.next() else { break };
            with(message);
        }
    }

    /// Passes the messages of whole rounds to `with`, in an ordered subgroup without checks, until
    /// a turn needs a closer look, or more turns than there are senders had no message. `hand`
    /// advances before each call, as in `next`, because a call may panic, and a message that it
    /// has taken counts as delivered.
    #[inline(always)]
    fn pass_rounds(&mut self, with: &mut impl FnMut(Message<'a>)) {
        let count = u64_from_index(self.senders.len());
        let turns = self.stable.0.saturating_sub(self.place.0).min(self.room);
        if turns < TURNS_MIN {
            return;
        }
        let Some(mut walks) = self.walks() else { return };
        // The place from which on no whole round is left.
        let end = self.place.0.saturating_add(turns).saturating_add(1).saturating_sub(count);
        let (mut round, mut sender, mut place) = (self.round, self.sender, self.place);
        let (mut messages, mut nulls) = (0_u64, 0_u64);
        // bound: the rounds up to `end`
        'rounds: while place.0 < end {
            // bound: the senders
            for (state, walk) in self.senders.iter_mut().zip(walks.iter_mut()) {
                match state.take_turn(walk, round) {
                    TakenTurn::Message(payload) => {
                        messages = messages.wrapping_add(1);
                        nulls = 0;
                        with(Message { place, sender, rank: state.rank, payload, large: None });
                    }
                    TakenTurn::Null if nulls < count => nulls = nulls.wrapping_add(1),
                    TakenTurn::Null | TakenTurn::Unusual => break 'rounds,
                }
                place = Place(place.0.wrapping_add(1));
                sender = SenderRank(sender.0.wrapping_add(1));
            }
            sender = SenderRank::ZERO;
            round = round.next();
        }
        (self.round, self.sender, self.place) = (round, sender, place);
        self.room = self.room.saturating_sub(messages);
    }

    /// Returns a walk over each sender's slots from the next one on, or `None` if the batch is
    /// within a round or has too many senders.
    #[inline(always)]
    fn walks(&self) -> Option<[RingWalk<'a>; WALKS]> {
        if self.senders.len() > WALKS || self.sender != SenderRank::ZERO {
            return None;
        }
        let walk = |state: &SenderState| Some(self.ring_of(state)?.walk(state.hand.slot));
        let mut walks = [walk(self.senders.first()?)?; WALKS];
        // bound: the senders
        for (place, state) in walks.iter_mut().zip(self.senders.iter()).skip(1) {
            *place = walk(state)?;
        }
        Some(walks)
    }

    /// Fast path: returns the next message if one of the next turns (one per sender) has one. Small
    /// messages spend most of their time here, so nothing is read twice. Unusual cases and rings
    /// with checks are left to `next_otherwise`.
    #[inline(always)]
    fn next_ordered(&mut self) -> Option<Message<'a>> {
        let mut turns = self.senders.len();
        // bound: one turn per sender
        while self.room > 0 && self.place.0 < self.stable.0 {
            let state = self.senders.get_mut(self.sender.index())?;
            let ring = self.rows.get(state.rank.index())?.ring_at(&state.ring).ok()?;
            match state.take_turn(&mut ring.walk(state.hand.slot), self.round) {
                TakenTurn::Message(payload) => {
                    let (place, sender, rank) = (self.place, self.sender, state.rank);
                    self.turn_over();
                    self.room = self.room.wrapping_sub(1);
                    return Some(Message { place, sender, rank, payload, large: None });
                }
                TakenTurn::Null => {}
                TakenTurn::Unusual => return self.next_otherwise(),
            }
            self.turn_over();
            turns = turns.saturating_sub(1);
            if turns == 0 {
                return self.next_otherwise();
            }
        }
        None
    }

    /// Returns the next message in all other cases. A call that is not inlined returns its message
    /// in memory. The message is taken apart here so that a message from the fast path need not be
    /// stored in memory too.
    #[inline(always)]
    fn next_otherwise(&mut self) -> Option<Message<'a>> {
        let Message { place, sender, rank, payload, large } = match self.delivery {
            Delivery::Ordered => self.next_past_nulls(),
            Delivery::Unordered => self.next_unordered(),
        }?;
        Some(Message { place, sender, rank, payload, large })
    }

    #[cold]
    #[inline(never)]
    fn next_past_nulls(&mut self) -> Option<Message<'a>> {
        if self.room == 0 {
            return None;
        }
        let message = self.skip_nulls()?;
        self.leave_slot();
        self.count_large(message.large);
        self.turn_over();
        self.room = self.room.saturating_sub(1);
        Some(message)
    }

    /// Returns each sender's received messages, one sender at a time.
    #[inline(never)]
    fn next_unordered(&mut self) -> Option<Message<'a>> {
        if self.room == 0 {
            return None;
        }
        // bound: one slot or sender per turn: one window per sender, plus the senders
        while let Some(state) = self.senders.get(self.sender.index()) {
            if state.hand == state.take {
                self.sender = self.sender.next();
                continue;
            }
            let ring = self.ring_of(state)?;
            let (slot, rank, handed, has_large) =
                (state.hand.slot, state.rank, state.large_handed, state.has_large());
            let position = state.hand.position;
            let round = Round(position.0);
            let stands = ring.length(slot);
            if !ring.is_intact(slot, position, stands) {
                self.end_at(rank, Impossible::SlotCheck);
                return None;
            }
            let (length, large) = match SlotLength::decode(stands) {
                SlotLength::Message(length) if length <= ring.capacity() => (length, None),
                SlotLength::Large(length) if has_large => (length, Some(handed)),
                SlotLength::Message(_) | SlotLength::Large(_) => {
                    self.end_at(rank, Impossible::SlotChanged);
                    return None;
                }
                SlotLength::Null => {
                    self.leave_slot();
                    continue;
                }
            };
            self.leave_slot();
            self.count_large(large);
            self.room = self.room.saturating_sub(1);
            return Some(Message {
                place: self.order.place(round, self.sender),
                sender: self.sender,
                rank,
                payload: ring.payload(slot, length),
                large,
            });
        }
        None
    }
}

impl<'a> Iterator for Batch<'a> {
    type Item = Message<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Message<'a>> {
        match self.delivery {
            Delivery::Ordered if !self.checks.is_on() => self.next_ordered(),
            Delivery::Ordered | Delivery::Unordered => self.next_otherwise(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let here = self.senders.iter().map(|state| state.take.since(state.hand));
        let most = here.fold(0, u64::saturating_add);
        (0, usize::try_from(most.min(u64_from_index(usize::MAX))).ok())
    }
}

/// Returns the value of a slot's counter. A counter that fails its check has changed since it was
/// received.
#[inline(always)]
fn counter_of(ring: &Ring<'_>, slot: Slot) -> SlotCounter {
    SlotCounter::decode(ring.read_counter(slot).unwrap_or(0))
}
