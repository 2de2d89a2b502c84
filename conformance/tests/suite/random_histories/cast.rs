//! What takes part in the model: groups, nodes, messages, and the one order of all that happens to
//! them.

use tramontane_conformance::history::GroupOrder;

use super::Chance;

/// A group.
pub struct Group {
    pub name: String,
    pub members: Vec<usize>,
    pub senders: Vec<usize>,
    pub order: GroupOrder,
    pub viewed: bool,
    /// Its latest view, which members may not have installed yet.
    pub view: Option<(u64, Vec<usize>)>,
}

/// What a start of a node delivered.
#[derive(Clone)]
pub struct Delivered {
    pub message: usize,
    pub group: usize,
    pub view: Option<u64>,
}

/// A node, and its last start.
pub struct Node {
    pub name: String,
    pub inc: u32,
    pub up: bool,
    /// It sends nothing any more, because some group goes on without it.
    pub muted: bool,
    /// It started, and nothing more is heard of it.
    pub stuck: bool,
    /// Messages that it multicast and that have no place in the order yet.
    pub queue: Vec<usize>,
    /// How far in the order it is.
    pub at: usize,
    /// Before this place in the order, views are those of earlier starts.
    pub joined_at: usize,
    /// For each group, the view that it is in.
    pub view: Vec<Option<u64>>,
    /// What this start delivered, replays first.
    pub log: Vec<Delivered>,
    /// For each group, how many deliveries the next start must replay.
    pub kept: Vec<usize>,
    /// For each group, what this start said last to be durable.
    pub upto: Vec<Option<u64>>,
    /// What it will deliver later, where no total order forbids it.
    pub held: Vec<usize>,
    pub posts: u64,
    pub sent: u32,
}

/// A message.
pub struct Message {
    pub name: String,
    pub sender: usize,
    pub groups: Vec<usize>,
    pub bytes: Option<u64>,
    pub digest: Option<String>,
}

/// What has its place in the one order.
#[derive(Clone)]
pub enum Item {
    Message(usize),
    View { group: usize, id: u64, members: Vec<usize> },
}

/// Between one and three groups, which may overlap.
pub fn groups(chance: &mut impl Chance, nodes: usize) -> Vec<Group> {
    let count = 1 + chance.index(3);
    let all_viewed = chance.percent(40);
    let none_viewed = chance.percent(40);
    (0..count)
        .map(|number| {
            let members = some(chance, nodes, 75);
            let mut senders = members.clone();
            if chance.percent(30) {
                senders = some(chance, nodes, 60);
            }
            Group {
                name: format!("g{number}"),
                members,
                senders,
                order: order(chance),
                viewed: all_viewed || (!none_viewed && chance.percent(50)),
                view: None,
            }
        })
        .collect()
}

/// Between two and four groups of one to three replicas, which share none, and clients behind them,
/// which send; with the number of all nodes.
pub fn shards(chance: &mut impl Chance) -> (Vec<Group>, usize) {
    let count = 2 + chance.index(3);
    let mut nodes = 0;
    let mut groups: Vec<Group> = (0..count)
        .map(|number| {
            let first = nodes;
            nodes += 1 + chance.index(3);
            Group {
                name: format!("g{number}"),
                members: (first..nodes).collect(),
                senders: Vec::new(),
                order: GroupOrder::Total,
                viewed: false,
                view: None,
            }
        })
        .collect();
    let clients = nodes..nodes + 1 + chance.index(3);
    groups.iter_mut().for_each(|group| group.senders = clients.clone().collect());
    (groups, clients.end)
}

/// What order a group promises.
pub fn order(chance: &mut impl Chance) -> GroupOrder {
    match chance.below(10) {
        0..6 => GroupOrder::Total,
        6..8 => GroupOrder::Group,
        _ => GroupOrder::Sender,
    }
}

/// Some of the nodes, rarely none.
fn some(chance: &mut impl Chance, nodes: usize, percent: u64) -> Vec<usize> {
    let mut chosen: Vec<usize> = (0..nodes).filter(|_| chance.percent(percent)).collect();
    if chosen.is_empty() && !chance.percent(10) {
        chosen.push(chance.index(nodes));
    }
    chosen
}

/// So many nodes, none of which has started.
pub fn nodes(groups: usize, count: usize) -> Vec<Node> {
    (0..count)
        .map(|number| Node {
            name: format!("n{number}"),
            inc: 0,
            up: false,
            muted: false,
            stuck: false,
            queue: Vec::new(),
            at: 0,
            joined_at: 0,
            view: vec![None; groups],
            log: Vec::new(),
            kept: vec![0; groups],
            upto: vec![None; groups],
            held: Vec::new(),
            posts: 0,
            sent: 0,
        })
        .collect()
}
