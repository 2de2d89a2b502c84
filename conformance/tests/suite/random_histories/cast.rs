//! The elements of the model: groups, nodes, messages, and the one order of all events.

use tramontane_conformance::history::GroupOrder;

use super::Chance;

/// A group.
pub struct CastGroup {
    pub name: String,
    pub members: Vec<usize>,
    pub senders: Vec<usize>,
    pub order: GroupOrder,
    pub viewed: bool,
    /// The group's latest view, which members may not have installed yet.
    pub view: Option<(u64, Vec<usize>)>,
}

/// A delivery by an incarnation of a node.
#[derive(Clone)]
pub struct CastDelivery {
    pub message: usize,
    pub group: usize,
    pub view: Option<u64>,
}

/// A node, and its last incarnation.
pub struct CastNode {
    pub name: String,
    pub inc: u32,
    pub up: bool,
    /// Whether the node stops sending, because some group continues without it.
    pub muted: bool,
    /// Whether the node started and then became silent.
    pub stuck: bool,
    /// Messages that the node has multicast, but that have no position in the order yet.
    pub queue: Vec<usize>,
    /// The node's position in the order.
    pub at: usize,
    /// Before this position in the order, views belong to earlier incarnations.
    pub joined_at: usize,
    /// The current view of each group.
    pub view: Vec<Option<u64>>,
    /// This incarnation's deliveries, replays first.
    pub log: Vec<CastDelivery>,
    /// Number of deliveries in each group that the next incarnation must replay.
    pub kept: Vec<usize>,
    /// The last durable position that this incarnation reported in each group.
    pub upto: Vec<Option<u64>>,
    /// The messages that the node will deliver later, if no total order forbids this.
    pub held: Vec<usize>,
    pub posts: u64,
    pub sent: u32,
}

/// A message.
pub struct CastMessage {
    pub name: String,
    pub sender: usize,
    pub groups: Vec<usize>,
    pub bytes: Option<u64>,
    pub digest: Option<String>,
}

/// An item with a position in the one order.
#[derive(Clone)]
pub enum Item {
    Message(usize),
    View { group: usize, id: u64, members: Vec<usize> },
}

/// Returns between one and three groups, which may overlap.
pub fn groups(chance: &mut impl Chance, nodes: usize) -> Vec<CastGroup> {
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
            CastGroup {
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

/// Returns between two and four disjoint groups of one to three replicas each, and the number of
/// all nodes. The nodes after the replicas are clients, which send.
pub fn shards(chance: &mut impl Chance) -> (Vec<CastGroup>, usize) {
    let count = 2 + chance.index(3);
    let mut nodes = 0;
    let mut groups: Vec<CastGroup> = (0..count)
        .map(|number| {
            let first = nodes;
            nodes += 1 + chance.index(3);
            CastGroup {
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

/// Returns the order that a group promises.
pub fn order(chance: &mut impl Chance) -> GroupOrder {
    match chance.below(10) {
        0..6 => GroupOrder::Total,
        6..8 => GroupOrder::Group,
        _ => GroupOrder::Sender,
    }
}

/// Returns some of the nodes, rarely none.
fn some(chance: &mut impl Chance, nodes: usize, percent: u64) -> Vec<usize> {
    let mut chosen: Vec<usize> = (0..nodes).filter(|_| chance.percent(percent)).collect();
    if chosen.is_empty() && !chance.percent(10) {
        chosen.push(chance.index(nodes));
    }
    chosen
}

/// Returns `count` nodes that have not started.
pub fn nodes(groups: usize, count: usize) -> Vec<CastNode> {
    (0..count)
        .map(|number| CastNode {
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
