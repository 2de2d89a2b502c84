//! A member whose peers' rows are filled by a test, and its host.

use std::rc::Rc;

use super::*;

pub(super) const MEMBERS: [NodeId; 3] = [NodeId(1), NodeId(2), NodeId(3)];
const RANKS: [Rank; 3] = [Rank(0), Rank(1), Rank(2)];
pub(super) const SUBGROUPS: [Subgroup<'static>; 1] = [Subgroup {
    members: &RANKS,
    senders: &RANKS,
    window: 2,
    message_max: 8,
    delivery: Delivery::Ordered,
}];
pub(super) const GROUP: Group<'static> = Group { members: &MEMBERS, subgroups: &SUBGROUPS };
const LINES: usize = 32;

/// A host that has received ten positions, makes the requested deliveries, and records them.
#[derive(Default)]
pub(super) struct Quiet {
    pub(super) delivered: u64,
    pub(super) causes: Vec<(Rank, Cause)>,
    /// Number of calls to `promise`, and the call at which the log finds that member 2 has changed
    /// a message.
    pub(super) promises: u32,
    pub(super) fails_at: Option<u32>,
    /// Whether the memory of the next view is not ready.
    pub(super) is_unprepared: bool,
    /// Whether a peer's guard was read without a barrier after it so far.
    unobserved: Rc<Cell<bool>>,
    /// Number of requested barriers.
    pub(super) barriers: Cell<u32>,
}

impl Host for Quiet {
    fn received(&self, _: SubgroupId) -> Frontier {
        Frontier(10)
    }

    fn delivered(&self, _: SubgroupId) -> Frontier {
        Frontier(self.delivered)
    }

    fn wedge(&mut self) {}

    fn prepare(&mut self, next: NextView<'_>) -> bool {
        assert!(next.members.len() <= 8, "more members than memory was lent for");
        !self.is_unprepared
    }

    fn deliver_to(&mut self, _: SubgroupId, trim: Frontier) -> Result<bool, Misbehaved> {
        assert!(trim.0 <= 10, "a trim beyond what is here");
        self.delivered = trim.0;
        Ok(true)
    }

    fn observe(&self) {
        assert!(self.unobserved.replace(false), "a barrier that stands behind no guard");
        self.barriers.set(self.barriers.get() + 1);
    }

    fn cut(&mut self, peer: Rank, cause: Cause) {
        self.causes.push((peer, cause));
    }
}

/// A `Quiet` host with a log.
struct Logging<'q>(&'q mut Quiet);

impl Host for Logging<'_> {
    fn received(&self, subgroup: SubgroupId) -> Frontier {
        self.0.received(subgroup)
    }

    fn delivered(&self, subgroup: SubgroupId) -> Frontier {
        self.0.delivered(subgroup)
    }

    fn wedge(&mut self) {
        self.0.wedge();
    }

    fn prepare(&mut self, next: NextView<'_>) -> bool {
        self.0.prepare(next)
    }

    fn promise(
        &mut self,
        _: NextView<'_>,
        _: Ballot,
        _: impl Fn(SubgroupId) -> Option<Frontier>,
    ) -> Result<bool, Misbehaved> {
        self.0.promises += 1;
        let fails = self.0.fails_at == Some(self.0.promises);
        if fails { Err(Misbehaved(Rank(2))) } else { Ok(true) }
    }

    fn deliver_to(&mut self, subgroup: SubgroupId, trim: Frontier) -> Result<bool, Misbehaved> {
        self.0.deliver_to(subgroup, trim)
    }

    fn observe(&self) {
        self.0.observe();
    }

    fn cut(&mut self, peer: Rank, cause: Cause) {
        self.0.cut(peer, cause);
    }
}

/// Member 1 over real rows; a test fills its peers' rows.
pub(super) struct Victim {
    pub(super) layout: Layout<'static>,
    pub(super) rows: [[Line; LINES]; 3],
    pub(super) state: ViewState,
    pub(super) peers: [PeerState; 3],
    pub(super) next: [NodeId; 8],
    pub(super) host: Quiet,
    /// A peer's cell that changes just before a given read of others' rows in the next step.
    pub(super) changes_at: Option<CellChange>,
}

/// The number of the read, the cell's owner and column, and its new value.
pub(super) type CellChange = (u64, u16, ViewColumn, u64);

/// A table in which one cell of another row changes during a step. It allows no read between a
/// peer's guard and the following barrier (HAL-1), and no read of a suspected member's guards
/// (VIE-3).
struct Changing<'a, 'm> {
    table: RowTable<'m>,
    unobserved: Rc<Cell<bool>>,
    victim: &'a Victim,
    looks: Cell<u64>,
    change: Option<CellChange>,
}

impl Table for Changing<'_, '_> {
    fn load(&self, owner: Rank, column: ViewColumn) -> u64 {
        assert!(!self.unobserved.get(), "{column:?} of {owner} is read before a barrier");
        let is_guard =
            matches!(column, ViewColumn::Stance | ViewColumn::Committed | ViewColumn::Installed);
        self.unobserved.set(is_guard && owner != Rank(1));
        if is_guard || column == ViewColumn::Heartbeat {
            let suspected = self.table.load(Rank(1), ViewColumn::Suspicions(0));
            assert!(suspected >> owner.0 & 1 == 0, "{column:?} of {owner}, which is suspected");
        }
        self.looks.set(self.looks.get() + u64::from(owner != Rank(1)));
        if let Some((_, owner, column, value)) =
            self.change.filter(|(look, ..)| self.looks.get() >= *look)
        {
            self.victim.put(owner, column, value);
        }
        self.table.load(owner, column)
    }

    fn publish(&mut self, column: ViewColumn, value: u64) {
        // Every published value is posted to all members.
        assert_ne!(self.table.load(Rank(1), column), value, "{column:?}: nothing new");
        self.table.publish(column, value);
    }
}

impl Victim {
    pub(super) fn new() -> Self {
        Self::of(GROUP)
    }

    /// Makes a member of a group with other subgroups.
    pub(super) fn of(group: Group<'static>) -> Self {
        let layout = Layout::with_views(group).expect("a good group");
        assert!(RANKS.iter().all(|rank| layout.row_bytes(*rank) <= LINES * 64));
        let options = ViewOptions { members_max: 8, ..timeless() };
        Self {
            layout,
            rows: [const { [const { Line::new() }; LINES] }; 3],
            state: ViewState::new(ViewId(1), Rank(1), options),
            peers: [PeerState::default(); 3],
            next: [NodeId(0); 8],
            host: Quiet::default(),
            changes_at: None,
        }
    }

    /// Publishes a cell of a peer.
    pub(super) fn put(&self, owner: u16, column: ViewColumn, value: u64) {
        let row = RowWriter::from_lines(&self.rows[usize::from(owner)]);
        let offset = self.layout.view_offset(Rank(owner), column).expect("a column");
        row.cell(offset).expect("inside the row").publish(value);
    }

    pub(super) fn put_stance(&self, owner: u16, promise: u16, ballot: u16, count: u16) {
        let accepted = Accepted { ballot: Ballot(ballot), count };
        self.put(owner, ViewColumn::Stance, Stance { promise: Rank(promise), accepted }.encode());
    }

    /// Returns a row, with the length that the layout gives.
    pub(super) fn lines(&self, rank: usize) -> &[Line] {
        &self.rows[rank][..self.layout.row_bytes(RANKS[rank]) / 64]
    }

    pub(super) fn step(&mut self) -> Status {
        self.step_at(1)
    }

    pub(super) fn step_at(&mut self, now: u64) -> Status {
        let (mut state, mut peers, mut next) = (self.state, self.peers, self.next);
        let (mut host, change) = (std::mem::take(&mut self.host), self.changes_at.take());
        let rows: [Row<'_>; 3] = std::array::from_fn(|rank| Row::from_lines(self.lines(rank)));
        let writer = RowWriter::from_lines(self.lines(1));
        let table = RowTable::new(&self.layout, Rank(1), &rows, writer);
        let unobserved = Rc::clone(&host.unobserved);
        let mut table = Changing { table, unobserved, victim: self, looks: Cell::new(0), change };
        let mut change = ViewChange::new(&self.layout, &mut state, &mut peers, &mut next)
            .expect("state that fits");
        let status = match host.fails_at {
            None => change.step(Time(now), &mut table, &mut host),
            Some(_) => change.step(Time(now), &mut table, &mut Logging(&mut host)),
        };
        (self.state, self.peers, self.next, self.host) = (state, peers, next, host);
        status
    }

    /// Makes the leader show a sealed list that lets node 8 join, with a trim of six.
    pub(super) fn is_shown_a_sealed_list(&self) {
        let own = Ballot(1);
        self.put(0, ViewColumn::Entry(0), Change::Join(NodeId(8)).encode(own));
        self.put(0, ViewColumn::Entry(1), Change::Seal.encode(own));
        self.put(0, ViewColumn::Trim(SubgroupId(0)), 6);
        self.put_stance(0, 0, 1, 2);
    }

    /// Makes the leader show that this list is decided.
    pub(super) fn is_shown_its_decision(&self) {
        let accepted = Accepted { ballot: Ballot(1), count: 2 };
        let committed = Committed { decided: true, accepted };
        self.put(0, ViewColumn::Committed, committed.encode());
    }

    pub(super) fn lose(&mut self, peer: u16) {
        ViewChange::new(&self.layout, &mut self.state, &mut self.peers, &mut self.next)
            .expect("state that fits")
            .peer_lost(Rank(peer));
    }

    pub(super) fn stance(&self) -> Stance {
        Stance::decode(self.own(ViewColumn::Stance))
    }

    pub(super) fn own(&self, column: ViewColumn) -> u64 {
        let rows: [Row<'_>; 3] = std::array::from_fn(|rank| Row::from_lines(self.lines(rank)));
        RowTable::new(&self.layout, Rank(1), &rows, RowWriter::from_lines(self.lines(1)))
            .load(Rank(1), column)
    }
}
