//! A group of the core's nodes whose writes land when a schedule says so, and the nodes' state in
//! the model's terms.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use tramontane_core::fabric::{Capabilities, ErrorKind, Promises, Write};
use tramontane_core::ids::{NodeId, Rank, SubgroupId, Time};
use tramontane_core::layout::{ControlCell, Delivery, Group, Layout, Subgroup};
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::multicast::Batch;
use tramontane_core::node::{Node, Options};
use tramontane_core::smc::Outbox;

use crate::common::{Carries, Private, fabric, send};
use crate::group::{self, GroupMember, MEMBERS_MAX, Scope};

const ALL: SubgroupId = SubgroupId(0);

/// An action of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeAction {
    /// A member steps; its application may commit a message first.
    Step { member: usize, commits: bool },
    /// The next write by a member lands at another member.
    Land { reader: usize, writer: usize },
}

/// Results that a step reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Did {
    pub sent: u32,
    pub nulls: u64,
}

/// A node's state in the model's terms; the deliveries are messages with their sequence positions.
pub struct Image {
    pub member: GroupMember,
    delivered: Vec<(u64, u8)>,
}

impl Image {
    pub fn messages(&self) -> Vec<(u64, u8)> {
        self.delivered.clone()
    }
}

/// Settings of the nodes and their fabric.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub options: Options,
    pub promises: Promises,
}

/// Keeps the writes posted in one step.
struct Posts<'r> {
    promises: Promises,
    row: Row<'r>,
    posted: Vec<(usize, usize, Vec<u8>)>,
}

impl Carries for Posts<'_> {
    fn limits(&self) -> Capabilities {
        limits(self.promises)
    }

    fn carry(&mut self, to: Rank, writes: &[Write]) -> Result<(), ErrorKind> {
        for write in writes {
            let mut bytes = vec![0; write.length];
            self.row.read(write.source.offset, &mut bytes).expect("in the row");
            self.posted.push((to.index(), write.target.offset, bytes));
        }
        Ok(())
    }
}

fabric!(Posts<'_>);

fn limits(promises: Promises) -> Capabilities {
    Capabilities {
        promises,
        writes_max: 16,
        write_bytes_max: usize::MAX,
        guard_bytes_max: 64,
        write_overhead_bytes: 24,
    }
}

/// Offsets and bytes of the writes that have not landed, in order.
type UnlandedWrites = VecDeque<(usize, Vec<u8>)>;

/// The nodes of a group.
pub struct Nodes<'m> {
    setup: Setup,
    layout: &'m Layout<'m>,
    nodes: Vec<Node<'m>>,
    outboxes: Vec<Option<Outbox<'m>>>,
    /// Each member's copies of all rows, and writers for them.
    rows: &'m [Vec<Row<'m>>],
    writers: Vec<Vec<RowWriter<'m>>>,
    /// Writes in flight, indexed by reader and writer.
    landing: Vec<Vec<UnlandedWrites>>,
    /// Number of messages that each application still has to commit, and has committed.
    left: Vec<u8>,
    committed: Vec<u8>,
    delivered: Vec<Vec<(u64, u8)>>,
}

/// Opens a group and runs `body` on it.
pub fn with_nodes<R>(scope: &Scope, setup: Setup, body: impl FnOnce(&mut Nodes<'_>) -> R) -> R {
    let ids: Vec<NodeId> = (0..scope.members as u32).map(NodeId).collect();
    let ranks: Vec<Rank> = (0..scope.members as u16).map(Rank).collect();
    let subgroups = [Subgroup {
        members: &ranks,
        senders: &ranks[..scope.senders()],
        window: scope.window as u32,
        message_max: 4,
        delivery: Delivery::Ordered,
    }];
    let layout = Layout::new(Group { members: &ids, subgroups: &subgroups }).expect("a good group");
    let lines = |rank: &Rank| -> Vec<Line> {
        (0..layout.row_bytes(*rank) / 64).map(|_| Line::new()).collect()
    };
    let memory: Vec<Vec<Vec<Line>>> =
        ranks.iter().map(|_| ranks.iter().map(lines).collect()).collect();
    let rows: Vec<Vec<Row<'_>>> = memory
        .iter()
        .map(|copies| copies.iter().map(|lines| Row::from_lines(lines)).collect())
        .collect();
    let writers = memory
        .iter()
        .map(|copies| copies.iter().map(|lines| RowWriter::from_lines(lines)).collect())
        .collect();
    let mut private: Vec<Private> = ranks.iter().map(|rank| Private::new(&layout, *rank)).collect();
    let mut nodes = Vec::new();
    for (rank, private) in ranks.iter().zip(&mut private) {
        let row = RowWriter::from_lines(&memory[rank.index()][rank.index()]);
        let capabilities = limits(setup.promises);
        let rows = &rows[rank.index()];
        nodes.push(private.open_with(&layout, *rank, rows, row, capabilities, setup.options));
    }
    let outboxes = nodes.iter().map(|node| node.outbox(ALL)).collect();
    let mut left = scope.messages.clone();
    left.resize(scope.members, 0);
    body(&mut Nodes {
        setup,
        layout: &layout,
        nodes,
        outboxes,
        rows: &rows,
        writers,
        landing: vec![vec![VecDeque::new(); scope.members]; scope.members],
        left,
        committed: vec![0; scope.members],
        delivered: vec![Vec::new(); scope.members],
    })
}

impl Nodes<'_> {
    /// Performs one action; returns `None` if it is not possible or has no effect.
    pub fn act(&mut self, what: NodeAction) -> Result<Option<Did>, String> {
        match what {
            NodeAction::Step { member, commits } => {
                if commits && !self.commit(member) {
                    return Ok(None);
                }
                self.step(member).map(Some)
            }
            NodeAction::Land { reader, writer } => {
                let Some((offset, bytes)) = self.landing[reader][writer].pop_front() else {
                    return Ok(None);
                };
                self.writers[reader][writer].apply(offset, &bytes).expect("in the row");
                Ok(Some(Did::default()))
            }
        }
    }

    /// Lets the application commit its next message, if there is one and the ring has room.
    fn commit(&mut self, member: usize) -> bool {
        let Some(outbox) = self.outboxes[member].as_ref().filter(|_| self.left[member] > 0) else {
            return false;
        };
        if send(outbox, &[self.committed[member]]).is_err() {
            return false;
        }
        self.left[member] -= 1;
        self.committed[member] += 1;
        true
    }

    fn step(&mut self, member: usize) -> Result<Did, String> {
        let mut posts = Posts {
            promises: self.setup.promises,
            row: self.rows[member][member],
            posted: Vec::new(),
        };
        let delivered = &mut self.delivered[member];
        let mut upcall = |batch: &mut Batch<'_>| {
            delivered.extend(batch.map(|message| (message.place.0, message.payload[0])));
        };
        let progress = self.nodes[member]
            .step(Time(0), &mut posts, &mut upcall)
            .map_err(|error| format!("{member} cannot step: {error:?}"))?;
        if progress.refused.is_some() || progress.lost.is_some() {
            return Err(format!("{member} says that a correct member misbehaved: {progress:?}"));
        }
        for (to, offset, bytes) in posts.posted {
            self.landing[to][member].push_back((offset, bytes));
        }
        Ok(Did { sent: progress.sent, nulls: progress.nulls })
    }

    /// Returns whether all applications have committed all their messages.
    pub fn is_committed(&self) -> bool {
        self.left.iter().all(|left| *left == 0)
    }

    /// Returns a number that, barring collisions, two states share only if their futures are the
    /// same.
    pub fn fingerprint(&self) -> u64 {
        let mut into = DefaultHasher::new();
        for (own, node) in self.nodes.iter().enumerate() {
            remembered(node).hash(&mut into);
            for rank in 0..self.nodes.len() {
                let mut bytes = vec![0; self.layout.row_bytes(Rank(rank as u16))];
                self.rows[own][rank].read(0, &mut bytes).expect("the row");
                bytes.hash(&mut into);
            }
        }
        (&self.landing, &self.left, &self.delivered).hash(&mut into);
        into.finish()
    }

    /// Returns a node's state in the model's terms.
    pub fn image(&self, own: usize) -> Image {
        let mut member = GroupMember {
            rows: [group::GroupRow::default(); MEMBERS_MAX],
            landing: [const { Vec::new() }; MEMBERS_MAX],
            rounds: [0; MEMBERS_MAX],
            obliging: [0; MEMBERS_MAX],
            taken: [0; MEMBERS_MAX],
            handed: [0; MEMBERS_MAX],
            delivered: Vec::new(),
        };
        for rank in 0..self.nodes.len() {
            member.rows[rank] = self.row_image(own, rank);
        }
        // The node shows this private state only in its debug output.
        let remembered = remembered(&self.nodes[own]);
        for (sender, state) in remembered.split("SenderState {").skip(1).enumerate() {
            member.taken[sender] = number_behind(state, "take: RingCursor { position: Position(");
            member.rounds[sender] = number_behind(state, "taken: Round(");
            member.obliging[sender] = number_behind(state, "obliging: Round(");
            member.handed[sender] = number_behind(state, "hand: RingCursor { position: Position(");
        }
        Image { member, delivered: self.delivered[own].clone() }
    }

    fn row_image(&self, own: usize, rank: usize) -> group::GroupRow {
        let (of, row) = (Rank(rank as u16), self.rows[own][rank]);
        let cell = |at: usize| row.cell(at).expect("a cell").load() as u8;
        let control = self.layout.control_offset(of, ALL).expect("a member");
        let mut image = group::GroupRow {
            received: cell(control + ControlCell::Received.offset()),
            delivered: cell(control + ControlCell::Delivered.offset()),
            ..group::GroupRow::default()
        };
        if let Some(ring) = self.layout.ring(of, ALL) {
            for (slot, image) in image.slots.iter_mut().take(ring.slots as usize).enumerate() {
                let start = ring.offset + slot * ring.stride;
                image.counter = cell(start + ring.stride - 8);
                let mut payload = [0];
                row.read(start, &mut payload).expect("in the row");
                image.message = payload[0];
            }
        }
        image
    }
}

/// Returns a node's private state as text, omitting the addresses of its memory.
fn remembered(node: &Node<'_>) -> String {
    let said = format!("{node:?}");
    let from = said.find("subgroups: [").expect("its subgroups");
    said[from..].to_owned()
}

fn number_behind(text: &str, words: &str) -> u8 {
    let from = text.find(words).expect("a sender's state") + words.len();
    let digits: String = text[from..].chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a small number")
}
