//! The end of a view: final counts, the ragged trim, and the member that may set it. Spindle II-A
//! (virtual synchrony), as in Derecho's published protocol. Requirements: VIE-3, VIE-4, VIE-6,
//! VIE-8, VIE-9.
//!
//! Members receive sequence positions and publish how many they have. They suspect each other,
//! rightly or not. The lowest member that is not suspected leads: it makes the others wedge, and
//! sets one trim, the minimum of their final counts, which each of them accepts. A proposal is
//! decided once all remaining members have accepted it and are a majority.
//!
//! A crashed member takes no more steps. It may crash after each of its writes, and each of the
//! other members may suspect it before or after each of these writes lands; a write that has not
//! landed by then is lost.
//!
//! This model omits the list of departing members, and thus also the next view. It covers only the
//! leader and the trim that the leader has sealed.

use crate::explorer::Model;

/// Maximum number of members.
pub const MEMBERS_MAX: usize = 3;

/// Size and conditions of the model.
#[derive(Clone, Debug)]
pub struct Scope {
    pub members: usize,
    /// Number of sequence positions that can be received.
    pub places: u8,
    /// Maximum number of crashes. A member may be suspected once it has crashed, or once another
    /// member suspects it.
    pub crashes: u8,
    /// Unfounded suspicions, which may arise at any time: the suspecting member and the suspected
    /// one.
    pub mistakes: Vec<(usize, usize)>,
    /// Number of positions that each member has, and has published, at the start.
    pub received: [u8; MEMBERS_MAX],
    /// Whether the view is to end although no member is suspected, as for a join or a leave.
    pub wish: bool,
    pub fault: Option<TrimBug>,
}

/// Faults that can be planted in the model, so that the checker has something to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimBug {
    /// The trim is the maximum of the final counts.
    TrimIsTheMost,
    /// The trim is set from the final counts of a majority.
    TrimOfAMajority,
    /// A member receives after it has published its final count.
    ReceivesWedged,
    /// A new leader sets a different trim although a trim has been accepted.
    TakeoverForgets,
    /// A member decides the proposal that it has accepted, whether or not the others have accepted
    /// it.
    DecidesAlone,
    /// Any number of members can decide.
    NoMajority,
}

/// A leader's proposal: the leader, and the trim once it has been sealed. Proposals are ordered as
/// they replace each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Proposal {
    /// The leader's rank plus one; zero before any proposal.
    pub ballot: u8,
    pub trim: Option<u8>,
}

/// A member's published row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TrimRow {
    /// Number of received positions.
    pub received: u8,
    /// The final count, once the member has wedged.
    pub last: Option<u8>,
    /// One bit for each suspected member.
    pub suspects: u8,
    /// Proposals of lower-ranked leaders are no longer accepted.
    pub promise: u8,
    pub accepted: Proposal,
    pub decided: bool,
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TrimMember {
    /// The member's row and its copies of the other rows.
    pub rows: [TrimRow; MEMBERS_MAX],
    /// For each member: its row after each write that has not landed here.
    pub landing: [Vec<TrimRow>; MEMBERS_MAX],
    pub delivered: u8,
    pub crashed: bool,
}

/// The state of the whole model: all members of one view.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TrimState {
    pub members: Vec<TrimMember>,
    pub crashes: u8,
}

/// An action. Numbers are ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Receive(usize),
    /// Delivers a position that all members have, or that is below the decided trim.
    Deliver(usize),
    Crash(usize),
    /// The first member suspects the second.
    Suspect(usize, usize),
    Wedge(usize),
    Promise(usize),
    TakeOver(usize),
    Seal(usize),
    /// The first member accepts the proposal that the second publishes.
    Accept(usize, usize),
    Decide(usize),
    /// The first member adopts the decision that the second publishes.
    Learn(usize, usize),
    /// The next write by the second member lands in the first member's copy.
    Land(usize, usize),
}

impl TrimMember {
    fn suspects(&self, own: usize, rank: usize) -> bool {
        self.rows[own].suspects >> rank & 1 == 1
    }

    /// Returns the ranks that this member does not suspect, including its own.
    fn trusted(&self, own: usize, scope: &Scope) -> impl Iterator<Item = usize> {
        (0..scope.members).filter(move |rank| !self.suspects(own, *rank))
    }

    /// VIE-4.
    fn leader(&self, own: usize, scope: &Scope) -> usize {
        self.trusted(own, scope).next().expect("nobody suspects itself")
    }

    /// VIE-9.
    fn has_majority(&self, own: usize, scope: &Scope) -> bool {
        self.trusted(own, scope).count() * 2 > scope.members || scope.has(TrimBug::NoMajority)
    }

    /// Returns whether this member shares all suspicions that another publishes. It does not if it
    /// is itself among the suspects, because members never suspect themselves.
    fn shares(&self, own: usize, of: usize) -> bool {
        self.rows[of].suspects & !self.rows[own].suspects == 0
    }

    /// Returns whether a member publishes that it has a majority to continue with.
    fn shows_majority(&self, of: usize, scope: &Scope) -> bool {
        let suspected = self.rows[of].suspects.count_ones() as usize;
        (scope.members - suspected) * 2 > scope.members
    }

    /// Returns whether the view has to end, as far as this member knows.
    fn has_cause(&self, own: usize, scope: &Scope) -> bool {
        let proposed = |rank: usize| self.rows[rank].accepted.ballot > 0;
        scope.wish || self.rows[own].suspects > 0 || self.trusted(own, scope).any(proposed)
    }

    /// Returns whether further writes by others cannot matter to this member, because it has
    /// crashed, has no majority and halts, or knows the decision.
    pub fn is_done(&self, own: usize, scope: &Scope) -> bool {
        self.crashed || self.rows[own].decided || !self.has_majority(own, scope)
    }

    /// VIE-3: returns whether this member shares all suspicions of the members that it trusts, and
    /// these members are a majority.
    fn is_settled(&self, own: usize, scope: &Scope) -> bool {
        self.trusted(own, scope).all(|rank| self.shares(own, rank)) && self.has_majority(own, scope)
    }
}

impl Scope {
    pub fn of(members: usize, places: u8) -> Self {
        Self {
            members,
            places,
            crashes: 0,
            mistakes: Vec::new(),
            received: [0; MEMBERS_MAX],
            wish: false,
            fault: None,
        }
    }

    fn has(&self, fault: TrimBug) -> bool {
        self.fault == Some(fault)
    }

    /// Returns the member's row after an action that changes only that row, or `None` if the action
    /// is not possible.
    fn change(&self, member: &TrimMember, own: usize, action: Action) -> Option<TrimRow> {
        let mut row = member.rows[own];
        let possible = match action {
            Action::Receive(_) => {
                row.received += 1;
                let open = row.last.is_none() || self.has(TrimBug::ReceivesWedged);
                row.received <= self.places && open
            }
            Action::Suspect(_, rank) => {
                row.suspects |= 1 << rank;
                !member.suspects(own, rank)
            }
            Action::Wedge(_) => {
                row.last = Some(row.received);
                member.rows[own].last.is_none() && member.has_cause(own, self)
            }
            Action::Promise(_) => {
                row.promise = member.leader(own, self) as u8;
                row.promise > member.rows[own].promise
            }
            Action::TakeOver(_) => {
                row.accepted = self.taken_over(member, own)?;
                true
            }
            Action::Seal(_) => {
                row.accepted.trim = self.sealed(member, own);
                row.accepted.trim.is_some()
            }
            Action::Accept(_, of) => {
                row.accepted = member.rows[of].accepted;
                self.may_accept(member, own, of)
            }
            Action::Decide(_) => {
                row.decided = true;
                self.may_decide(member, own)
            }
            Action::Learn(_, of) => {
                row.decided = true;
                let may = member.rows[of].decided
                    && !member.suspects(own, of)
                    && member.shares(own, of)
                    && row.accepted.trim.is_some()
                    && row.accepted.trim == member.rows[of].accepted.trim;
                may && !member.rows[own].decided
            }
            Action::Deliver(_) | Action::Crash(_) | Action::Land(..) => true,
        };
        possible.then_some(row)
    }

    /// VIE-4: returns a new leader's proposal: the latest one that a trusted member publishes.
    fn taken_over(&self, member: &TrimMember, own: usize) -> Option<Proposal> {
        let row = &member.rows[own];
        let ballot = own as u8 + 1;
        let promised = |rank: usize| usize::from(member.rows[rank].promise) == own;
        let may = member.leader(own, self) == own
            && row.last.is_some()
            && !row.decided
            && row.accepted.ballot != ballot
            && member.is_settled(own, self)
            && member.trusted(own, self).all(promised);
        let latest = member.trusted(own, self).map(|rank| member.rows[rank].accepted).max();
        let trim = latest.filter(|_| !self.has(TrimBug::TakeoverForgets)).and_then(|of| of.trim);
        may.then_some(Proposal { ballot, trim })
    }

    /// VIE-6: returns the ragged trim: the minimum of the final counts of all trusted members, once
    /// each has accepted this leader's proposal and has therefore wedged.
    fn sealed(&self, member: &TrimMember, own: usize) -> Option<u8> {
        let proposal = Proposal { ballot: own as u8 + 1, trim: None };
        let mut wedged = Vec::new();
        for rank in member.trusted(own, self) {
            let row = &member.rows[rank];
            let follows = row.accepted == proposal && usize::from(row.promise) == own;
            if follows {
                wedged.push(row.last?);
            } else if !self.has(TrimBug::TrimOfAMajority) {
                return None;
            }
        }
        let own_is_ready = member.rows[own].accepted == proposal && member.is_settled(own, self);
        let enough = wedged.len() * 2 > self.members || self.has(TrimBug::NoMajority);
        if !own_is_ready || !enough {
            return None;
        }
        if self.has(TrimBug::TrimIsTheMost) {
            wedged.into_iter().max()
        } else {
            wedged.into_iter().min()
        }
    }

    /// Returns whether another member's proposal is newer than the one accepted here, and is either
    /// decided or from the current leader.
    fn may_accept(&self, member: &TrimMember, own: usize, of: usize) -> bool {
        let (row, shown) = (&member.rows[own], &member.rows[of]);
        let leads = member.leader(own, self) == of && shown.accepted.ballot == of as u8 + 1;
        let follows = leads || shown.decided;
        let trusted = !member.suspects(own, of) && member.shares(own, of) && follows;
        own != of && trusted && row.last.is_some() && !row.decided && shown.accepted > row.accepted
    }

    /// VIE-5, VIE-6: returns whether all trusted members have accepted the same sealed proposal,
    /// and are a majority.
    fn may_decide(&self, member: &TrimMember, own: usize) -> bool {
        let row = &member.rows[own];
        let all = member.trusted(own, self).all(|rank| member.rows[rank].accepted == row.accepted);
        let accepted = all || self.has(TrimBug::DecidesAlone);
        row.accepted.trim.is_some() && !row.decided && member.is_settled(own, self) && accepted
    }

    fn publish(&self, state: &mut TrimState, own: usize, row: TrimRow) {
        state.members[own].rows[own] = row;
        for (rank, other) in state.members.iter_mut().enumerate() {
            if rank != own && !other.is_done(rank, self) && !other.suspects(rank, own) {
                other.landing[own].push(row);
            }
        }
    }

    /// Returns whether a member may suspect another, with or without a reason.
    fn may_suspect(&self, state: &TrimState, own: usize, rank: usize) -> bool {
        let member = &state.members[own];
        let says_so = |of: usize| of != own && member.suspects_of(of, rank);
        let has_halted = !member.shows_majority(rank, self);
        state.members[rank].crashed
            || has_halted
            || self.mistakes.contains(&(own, rank))
            || member.trusted(own, self).any(says_so)
    }
}

impl TrimMember {
    fn suspects_of(&self, of: usize, rank: usize) -> bool {
        self.rows[of].suspects >> rank & 1 == 1
    }

    /// Forgets rows that will not be read again.
    fn forget(&mut self, own: usize) {
        let row = self.rows[own];
        self.rows = [TrimRow::default(); MEMBERS_MAX];
        self.rows[own] = row;
        self.landing = [const { Vec::new() }; MEMBERS_MAX];
    }

    /// ORD-3 and VIE-6: the number of positions that a member may deliver.
    fn stable(&self, own: usize, scope: &Scope) -> u8 {
        let received = self.rows[..scope.members].iter().map(|row| row.received);
        let stable = received.min().expect("a member");
        let row = &self.rows[own];
        let trim = row.accepted.trim.filter(|_| row.decided).unwrap_or(0);
        stable.max(trim)
    }
}

impl Model for Scope {
    type State = TrimState;
    type Action = Action;

    fn start(&self) -> TrimState {
        let member = TrimMember {
            rows: self.received.map(|received| TrimRow { received, ..TrimRow::default() }),
            landing: [const { Vec::new() }; MEMBERS_MAX],
            delivered: 0,
            crashed: false,
        };
        TrimState { members: vec![member; self.members], crashes: 0 }
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for own in 0..self.members {
            actions.extend([Action::Receive(own), Action::Deliver(own), Action::Wedge(own)]);
            actions.extend([Action::Promise(own), Action::TakeOver(own), Action::Seal(own)]);
            actions.extend([Action::Decide(own), Action::Crash(own)]);
            for other in (0..self.members).filter(|other| *other != own) {
                actions.extend([Action::Suspect(own, other), Action::Accept(own, other)]);
                actions.extend([Action::Learn(own, other), Action::Land(own, other)]);
            }
        }
        actions
    }

    fn next(&self, state: &TrimState, action: Action) -> Option<TrimState> {
        let own = action.member();
        let member = &state.members[own];
        let ends = matches!(action, Action::Deliver(_) | Action::Crash(_));
        if member.crashed || member.is_done(own, self) && !(ends && member.rows[own].decided) {
            return None;
        }
        let possible = match action {
            Action::Deliver(_) => member.delivered < member.stable(own, self),
            Action::Crash(_) => state.crashes < self.crashes,
            // The row of a suspected member is no longer read.
            Action::Land(_, of) => !member.landing[of].is_empty() && !member.suspects(own, of),
            Action::Suspect(_, rank) => self.may_suspect(state, own, rank),
            _ => true,
        };
        if !possible {
            return None;
        }
        let row = self.change(member, own, action)?;
        let mut next = state.clone();
        match action {
            Action::Deliver(_) => next.members[own].delivered += 1,
            Action::Crash(_) => {
                next.members[own].crashed = true;
                next.crashes += 1;
            }
            Action::Land(_, writer) => {
                next.members[own].rows[writer] = next.members[own].landing[writer].remove(0);
            }
            _ => self.publish(&mut next, own, row),
        }
        if let Action::Suspect(_, rank) = action {
            next.members[own].landing[rank].clear();
        }
        if next.members[own].is_done(own, self) {
            next.members[own].forget(own);
        }
        Some(next)
    }

    /// For all members, including those that have crashed or been excluded: only one trim is
    /// decided, no member has delivered a position beyond it, and every member that has decided has
    /// all positions below it.
    fn check(&self, state: &TrimState) -> Result<(), String> {
        let decided = |own: usize| {
            let row = state.members[own].rows[own];
            row.accepted.trim.filter(|_| row.decided)
        };
        let mut trims = (0..self.members).filter_map(decided);
        let Some(trim) = trims.next() else { return Ok(()) };
        if let Some(other) = trims.find(|other| *other != trim) {
            return Err(format!("two trims are decided: {trim} and {other}"));
        }
        for (own, member) in state.members.iter().enumerate() {
            if member.delivered > trim {
                return Err(format!(
                    "{own} delivered {}, and the trim is {trim}",
                    member.delivered
                ));
            }
            if decided(own).is_some() && member.rows[own].received < trim {
                return Err(format!("{own} goes on to {trim}, and has not received it"));
            }
        }
        Ok(())
    }

    /// If only crashed members are suspected and a majority remains, all remaining members decide
    /// and have delivered the same.
    fn check_end(&self, state: &TrimState) -> Result<(), String> {
        let crashed = state.members.iter().filter(|member| member.crashed).count();
        if !self.mistakes.is_empty() || crashed == 0 || (self.members - crashed) * 2 <= self.members
        {
            return Ok(());
        }
        let mut ends = Vec::new();
        for (own, member) in state.members.iter().enumerate().filter(|(_, member)| !member.crashed)
        {
            if !member.rows[own].decided {
                return Err(format!("{own} is left and does not decide"));
            }
            ends.push(member.delivered);
        }
        if ends.iter().any(|end| *end != ends[0]) {
            return Err(format!("those that are left delivered {ends:?}"));
        }
        Ok(())
    }
}

impl Action {
    /// The member that acts.
    pub fn member(self) -> usize {
        match self {
            Self::Receive(own) | Self::Deliver(own) | Self::Crash(own) | Self::Wedge(own) => own,
            Self::Promise(own) | Self::TakeOver(own) | Self::Seal(own) | Self::Decide(own) => own,
            Self::Suspect(own, _) | Self::Accept(own, _) | Self::Learn(own, _) => own,
            Self::Land(own, _) => own,
        }
    }
}
