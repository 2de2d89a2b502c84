//! Order with nulls, and the ring of slots: Spindle II-B (rounds and sequence positions), II-C (the
//! ring), III-A (batches), III-B (nulls). Requirements: ORD-1 to ORD-3, SMC-2, SMC-5, NUL-1 to
//! NUL-4.
//!
//! Members write to their own rows. Each write lands in the other members' copies of the row later,
//! at any time, but in order for each pair of members. One action is one message sent, one slot
//! read, one position delivered, or one write that lands. A step of the core, or a batch in the
//! paper, consists of several actions.
//!
//! The senders' real history (`used`) is kept beside the members' state, and no action reads it.
//! Members' knowledge of each other's rows is compared with it.

use crate::explorer::Model;

/// Maximum number of members.
pub const MEMBERS_MAX: usize = 3;
/// Maximum number of slots in a ring.
pub const WINDOW_MAX: usize = 3;

/// Size of the model: the first members are the senders, and each sends the given number of
/// messages.
#[derive(Clone, Debug)]
pub struct Scope {
    pub members: usize,
    pub window: usize,
    /// Number of messages per sender.
    pub messages: Vec<u8>,
    /// Whether a sender may complete the round of the newest message at any time. The core does so
    /// once the sender seems to be silent.
    pub completes: bool,
    pub fault: Option<GroupBug>,
}

/// Faults that can be planted in the model, so that the checker has something to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupBug {
    /// A slot is reused once its message has been delivered at its sender.
    SlotIsFreeEarly,
    /// A marker of nulls is put into a slot that is not free.
    NullsWithoutASlot,
    /// A member delivers without waiting until the others have received the message.
    UnstableIsDelivered,
    /// A sender uses one round more than it owes.
    OwedIsOneTooMany,
    /// A sender that completes a round uses the next round too.
    CompletesOneTooMany,
    /// A sender whose turn precedes that of the member that sent does not owe the round.
    OwedIsOneTooFew,
    /// A reader mistakes the message of the previous lap for a new one.
    LapBeforeIsNew,
    /// The received frontier counts the rounds of the sender that is furthest ahead.
    FrontierOfTheFurthest,
    /// The bound on a sender's rounds ignores other members' messages that have not been seen here.
    ReachWithoutUnseen,
}

/// A sender's use of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoundUse {
    /// The sender's message with this number.
    Message(u8),
    Null,
}

/// A slot: its counter as in SMC-5 (`2 * round + 1` for a message, `2 * round` for rounds used
/// without one), and the number of its message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Slot {
    pub counter: u8,
    pub message: u8,
}

/// A member's row: its ring and its two frontiers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GroupRow {
    pub slots: [Slot; WINDOW_MAX],
    pub received: u8,
    pub delivered: u8,
}

/// A member: its row, its copies of the other rows, and its private state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupMember {
    pub rows: [GroupRow; MEMBERS_MAX],
    /// For each member: its row after each write that has not landed at this member.
    pub landing: [Vec<GroupRow>; MEMBERS_MAX],
    /// For each sender: the number of its rounds that have arrived at this member, and the number
    /// of its slots that have been taken and delivered. For this member's ring: the number of
    /// rounds used and slots published.
    pub rounds: [u8; MEMBERS_MAX],
    /// For each other sender: the number of its rounds up to its last message that has arrived.
    pub obliging: [u8; MEMBERS_MAX],
    pub taken: [u8; MEMBERS_MAX],
    pub handed: [u8; MEMBERS_MAX],
    /// The delivered turns, by sequence position.
    pub delivered: Vec<RoundUse>,
}

/// The whole group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupState {
    pub members: Vec<GroupMember>,
    /// Each sender's use of its rounds.
    pub used: Vec<Vec<RoundUse>>,
}

/// An action. Numbers are ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A sender publishes its next message.
    Send(usize),
    /// A sender uses up the rounds that it owes.
    Null(usize),
    /// A sender uses up the rounds below that of the newest message, and that round.
    Complete(usize),
    /// A member reads another sender's next slot and takes a new message or marker.
    Take(usize, usize),
    /// A member publishes its received frontier.
    Show(usize),
    /// A member delivers the next sequence position.
    Deliver(usize),
    /// The next write by the second member lands in the first member's copy.
    Land(usize, usize),
}

impl Scope {
    pub fn of(members: usize, window: usize, messages: &[u8]) -> Self {
        Self { members, window, messages: messages.to_vec(), completes: false, fault: None }
    }

    /// A group whose senders may complete rounds.
    pub fn completing(members: usize, window: usize, messages: &[u8]) -> Self {
        Self { completes: true, ..Self::of(members, window, messages) }
    }

    fn has(&self, fault: GroupBug) -> bool {
        self.fault == Some(fault)
    }

    pub fn senders(&self) -> usize {
        self.messages.len()
    }

    /// ORD-1: the sequence position of a sender's turn in a round.
    fn place(&self, round: u8, sender: usize) -> u8 {
        round * self.senders() as u8 + sender as u8
    }

    /// ORD-1: the frontier below which all positions have been received, given the number of
    /// received rounds of each sender.
    fn frontier(&self, rounds: &[u8; MEMBERS_MAX]) -> u8 {
        let missing = (0..self.senders()).map(|sender| self.place(rounds[sender], sender));
        let frontier =
            if self.has(GroupBug::FrontierOfTheFurthest) { missing.max() } else { missing.min() };
        frontier.expect("a sender")
    }

    /// SMC-2: whether the next slot of a sender's ring is free, as far as the sender knows.
    fn is_free(&self, member: &GroupMember, own: usize) -> bool {
        let slot = member.rows[own].slots[usize::from(member.taken[own]) % self.window];
        let used_before = usize::from(member.taken[own]) >= self.window;
        let mut readers = 0..self.members;
        let is_delivered = |reader: usize| {
            let waited_for = reader == own || !self.has(GroupBug::SlotIsFreeEarly);
            !waited_for || self.place(slot.counter / 2, own) < member.rows[reader].delivered
        };
        // An even counter is a marker: the slot was free when the marker was put there.
        !used_before || slot.counter.is_multiple_of(2) || readers.all(is_delivered)
    }

    /// NUL-1: the rounds that a sender must have used, given the other senders' messages that it
    /// has seen.
    fn owed(&self, member: &GroupMember, own: usize) -> u8 {
        let of = |other: usize| {
            let is_before = own < other && !self.has(GroupBug::OwedIsOneTooFew);
            member.obliging[other].saturating_sub(u8::from(!is_before))
        };
        let owed = (0..self.senders()).filter(|other| *other != own).map(of).max().unwrap_or(0);
        owed + u8::from(owed > 0 && self.has(GroupBug::OwedIsOneTooMany))
    }

    /// NUL-1: the rounds that a sender may use, given the other senders' messages that it has seen.
    fn complete(&self, member: &GroupMember, own: usize) -> u8 {
        let others = (0..self.senders()).filter(|other| *other != own);
        let newest = others.map(|other| member.obliging[other]).max().unwrap_or(0);
        newest + u8::from(newest > 0 && self.has(GroupBug::CompletesOneTooMany))
    }

    /// ORD-3: the number of positions that every member has. A lone sender has what it sent, as its
    /// messages imply.
    fn stable(&self, member: &GroupMember, own: usize) -> u8 {
        if self.has(GroupBug::UnstableIsDelivered) {
            return member.rows[own].received;
        }
        let lone = |of: usize| self.senders() == 1 && of == 0 && own != 0;
        let received = |of| if lone(of) { member.rounds[0] } else { member.rows[of].received };
        (0..self.members).map(received).min().expect("a member")
    }

    /// The maximum number of rounds that a sender can have used before its next message, as a
    /// reader sees it: each round is due to some message, and each sender has at most one window of
    /// messages that have not been delivered here.
    fn reach(&self, member: &GroupMember, own: usize, sender: usize) -> u8 {
        let known = member.rounds.iter().max().copied().unwrap_or(0);
        let unseen = |of: usize| self.window as u8 - (member.taken[of] - member.handed[of]);
        let others = (0..self.senders()).filter(|of| *of != own && *of != sender);
        if self.has(GroupBug::ReachWithoutUnseen) {
            known
        } else {
            known + others.map(unseen).sum::<u8>()
        }
    }

    /// The maximum received frontier that another member can publish, as a reader sees it.
    fn places_max(&self, member: &GroupMember, own: usize) -> u8 {
        if own < self.senders() {
            return self.place(member.rounds[own], own);
        }
        let slots = (self.senders() * self.window) as u8;
        let delivered = member.rows[own].delivered / self.senders() as u8;
        (delivered + slots + 1) * self.senders() as u8
    }

    /// New content of a sender's next slot (SMC-5): the rounds used with it, and whether the
    /// content is a message.
    fn new_in_slot(&self, member: &GroupMember, sender: usize) -> Option<(u8, bool)> {
        if usize::from(member.taken[sender] - member.handed[sender]) >= self.window {
            return None;
        }
        let slot = usize::from(member.taken[sender]) % self.window;
        let counter = member.rows[sender].slots[slot].counter;
        let (round, is_message) = (counter / 2, !counter.is_multiple_of(2));
        let is_new = if is_message {
            round >= member.rounds[sender] || self.has(GroupBug::LapBeforeIsNew)
        } else {
            round > member.rounds[sender]
        };
        is_new.then_some((round + u8::from(is_message), is_message))
    }
}

impl GroupState {
    /// Changes a member's row, and sends the change to the other members.
    fn write(&mut self, own: usize, change: impl FnOnce(&mut GroupRow)) {
        change(&mut self.members[own].rows[own]);
        let row = self.members[own].rows[own];
        for (_, other) in self.members.iter_mut().enumerate().filter(|(rank, _)| *rank != own) {
            other.landing[own].push(row);
        }
    }

    fn send(&self, scope: &Scope, own: usize) -> Option<Self> {
        let member = &self.members[own];
        let (message, round) = (member.taken[own], member.rounds[own]);
        if message >= scope.messages[own] || !scope.is_free(member, own) {
            return None;
        }
        let mut next = self.clone();
        next.members[own].taken[own] += 1;
        next.members[own].rounds[own] += 1;
        next.used[own].push(RoundUse::Message(message));
        let slot = usize::from(message) % scope.window;
        next.write(own, |row| row.slots[slot] = Slot { counter: 2 * round + 1, message });
        Some(next)
    }

    fn null(&self, scope: &Scope, own: usize, owed: u8) -> Option<Self> {
        let member = &self.members[own];
        let used = member.rounds[own];
        let free = scope.is_free(member, own) || scope.has(GroupBug::NullsWithoutASlot);
        if owed <= used || !free {
            return None;
        }
        let mut next = self.clone();
        next.members[own].rounds[own] = owed;
        next.used[own].extend((used..owed).map(|_| RoundUse::Null));
        let slot = usize::from(member.taken[own]) % scope.window;
        next.write(own, |row| row.slots[slot].counter = 2 * owed);
        Some(next)
    }

    fn take(&self, scope: &Scope, reader: usize, sender: usize) -> Option<Self> {
        let (rounds, is_message) = scope.new_in_slot(&self.members[reader], sender)?;
        let mut next = self.clone();
        next.members[reader].rounds[sender] = rounds;
        next.members[reader].taken[sender] += u8::from(is_message);
        if is_message {
            next.members[reader].obliging[sender] = rounds;
        }
        Some(next)
    }

    fn show(&self, scope: &Scope, own: usize) -> Option<Self> {
        let member = &self.members[own];
        let frontier = scope.frontier(&member.rounds);
        if frontier <= member.rows[own].received {
            return None;
        }
        let mut next = self.clone();
        next.write(own, |row| row.received = frontier);
        Some(next)
    }

    fn deliver(&self, scope: &Scope, own: usize) -> Option<Self> {
        let member = &self.members[own];
        let place = member.rows[own].delivered;
        if place >= scope.stable(member, own) {
            return None;
        }
        let (round, sender) = (place / scope.senders() as u8, usize::from(place) % scope.senders());
        let slot = member.rows[sender].slots[usize::from(member.handed[sender]) % scope.window];
        let is_here = member.handed[sender] < member.taken[sender];
        let is_message = is_here && slot.counter == 2 * round + 1;
        let turn = if is_message { RoundUse::Message(slot.message) } else { RoundUse::Null };
        let mut next = self.clone();
        next.members[own].handed[sender] += u8::from(is_message);
        next.members[own].delivered.push(turn);
        next.write(own, |row| row.delivered += 1);
        Some(next)
    }

    fn land(&self, reader: usize, writer: usize) -> Option<Self> {
        if self.members[reader].landing[writer].is_empty() {
            return None;
        }
        let mut next = self.clone();
        let member = &mut next.members[reader];
        member.rows[writer] = member.landing[writer].remove(0);
        Some(next)
    }
}

impl Model for Scope {
    type State = GroupState;
    type Action = Action;

    fn start(&self) -> GroupState {
        let member = GroupMember {
            rows: [GroupRow::default(); MEMBERS_MAX],
            landing: [const { Vec::new() }; MEMBERS_MAX],
            rounds: [0; MEMBERS_MAX],
            obliging: [0; MEMBERS_MAX],
            taken: [0; MEMBERS_MAX],
            handed: [0; MEMBERS_MAX],
            delivered: Vec::new(),
        };
        GroupState { members: vec![member; self.members], used: vec![Vec::new(); self.senders()] }
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for own in 0..self.members {
            if own < self.senders() {
                actions.extend([Action::Send(own), Action::Null(own)]);
                if self.completes {
                    actions.push(Action::Complete(own));
                }
            }
            actions.extend([Action::Show(own), Action::Deliver(own)]);
            for other in (0..self.members).filter(|other| *other != own) {
                actions.push(Action::Land(own, other));
                if other < self.senders() {
                    actions.push(Action::Take(own, other));
                }
            }
        }
        actions
    }

    fn next(&self, state: &GroupState, action: Action) -> Option<GroupState> {
        match action {
            Action::Send(own) => state.send(self, own),
            Action::Null(own) => state.null(self, own, self.owed(&state.members[own], own)),
            Action::Complete(own) => state.null(self, own, self.complete(&state.members[own], own)),
            Action::Take(own, sender) => state.take(self, own, sender),
            Action::Show(own) => state.show(self, own),
            Action::Deliver(own) => state.deliver(self, own),
            Action::Land(own, writer) => state.land(own, writer),
        }
    }

    fn check(&self, state: &GroupState) -> Result<(), String> {
        for own in 0..self.members {
            self.check_delivered(state, own)?;
            for sender in (0..self.senders()).filter(|sender| *sender != own) {
                self.check_ring(state, own, sender)?;
            }
            for other in (0..self.members).filter(|other| *other != own) {
                self.check_frontiers(state, own, other)?;
            }
        }
        Ok(())
    }

    /// NUL-4: everything is delivered, however many messages each sender sends.
    fn check_end(&self, state: &GroupState) -> Result<(), String> {
        for (own, member) in state.members.iter().enumerate() {
            if member.handed[..self.senders()] != self.messages[..] {
                return Err(format!("at the end {own} delivered {:?} messages", member.handed));
            }
        }
        Ok(())
    }
}

impl Scope {
    /// ORD-2: members deliver exactly what the senders sent, in the order of positions and without
    /// gaps; so of any two members, one has delivered a prefix of the other's sequence. ORD-3:
    /// every member has each delivered message.
    fn check_delivered(&self, state: &GroupState, own: usize) -> Result<(), String> {
        for (place, delivered) in state.members[own].delivered.iter().enumerate() {
            let (round, sender) = (place / self.senders(), place % self.senders());
            if state.used[sender].get(round) != Some(delivered) {
                return Err(format!("{own} delivered {delivered:?} at {place}"));
            }
            for (other, member) in state.members.iter().enumerate() {
                if usize::from(member.rounds[sender]) <= round {
                    return Err(format!("{own} delivered {place}, which {other} has not"));
                }
            }
        }
        Ok(())
    }

    /// SMC-2, SMC-5: a reader's view of a sender's rounds is correct, the undelivered messages are
    /// in its copy of the ring, and new content in the ring is within reach.
    fn check_ring(&self, state: &GroupState, own: usize, sender: usize) -> Result<(), String> {
        let member = &state.members[own];
        let known = state.used[sender].get(..usize::from(member.rounds[sender]));
        let messages =
            |turns: &[RoundUse]| turns.iter().filter(|turn| **turn != RoundUse::Null).count();
        if known.map(messages) != Some(usize::from(member.taken[sender])) {
            return Err(format!("{own} takes the rounds of {sender} for others: {known:?}"));
        }
        for message in member.handed[sender]..member.taken[sender] {
            let slot = member.rows[sender].slots[usize::from(message) % self.window];
            if slot.message != message || slot.counter.is_multiple_of(2) {
                return Err(format!("message {message} of {sender} is overwritten at {own}"));
            }
        }
        if let Some((rounds, is_message)) = self.new_in_slot(member, sender) {
            let (round, reach) = (rounds - u8::from(is_message), self.reach(member, own, sender));
            // A lone sender's counters are known in advance; see below.
            if self.senders() > 1 && round > reach {
                return Err(format!("{own} refuses round {round} of {sender}, above {reach}"));
            }
            if self.senders() == 1 && round != member.rounds[sender] {
                return Err(format!("{own} refuses round {round} of the lone {sender}"));
            }
        }
        Ok(())
    }

    /// FLT-1: other members' frontiers only grow, and a reader refuses no value that a correct
    /// member publishes. This member has received every position that another member claims to have
    /// delivered.
    fn check_frontiers(&self, state: &GroupState, own: usize, other: usize) -> Result<(), String> {
        let (member, shown) = (&state.members[own], state.members[own].rows[other]);
        let most = self.places_max(member, own);
        let delivered_max = if self.senders() > 1 { member.rows[own].received } else { most };
        if shown.received > most || shown.delivered > delivered_max {
            return Err(format!("{own} refuses the frontiers of {other}: {shown:?}"));
        }
        let grows =
            |row: &GroupRow| row.received >= shown.received && row.delivered >= shown.delivered;
        if !member.landing[other].iter().all(grows) {
            return Err(format!("frontiers of {other} shrink"));
        }
        Ok(())
    }
}
