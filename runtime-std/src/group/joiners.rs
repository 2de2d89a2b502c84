//! The nodes that this member helps to join: what they are sent, and whom the group is asked to let in.
//!
//! # Invariants
//! - One wish at a time: the core's cell for it holds one, and a later one would replace it.
//! - Who is behind holds this member back, and by its frontier the group, between two steps: never for so long that it is missed.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tramontane_core::ids::{NodeId, SubgroupId};

use super::open_view::OpenView;
use super::queue::{HELD_MAX, Sink, Supplied};
use super::replica::{Message, Replica};
use super::said::Shared;
use super::view::View;

/// Between two looks whether a joiner has caught up.
const HOLD_PAUSE: Duration = Duration::from_micros(200);

/// A node that is being supplied.
struct Joiner {
    node: NodeId,
    subgroups: Vec<SubgroupId>,
    sink: Sink,
    /// For how long it held this member back.
    held: Duration,
}

/// All of them.
#[derive(Default)]
pub(super) struct Joiners {
    supplied: Vec<Joiner>,
    /// Who has caught up and waits for its turn.
    waiting: VecDeque<NodeId>,
    /// For whom the group was asked.
    wished: Option<NodeId>,
    /// Who was let in by the present view, and may not know it yet.
    let_in: Vec<NodeId>,
}

impl Joiners {
    /// Whether anybody has to be handed what is delivered.
    pub(super) fn is_empty(&self) -> bool {
        self.supplied.is_empty()
    }

    /// Who is being supplied.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.supplied.iter().map(|joiner| joiner.node)
    }

    /// Begins to supply a node with the state of this moment and everything from here on. The caller looked whether
    /// it can be. After the state of each subgroup, which may take a while, `between` is called.
    pub(super) fn begin<R: Replica>(
        &mut self,
        node: NodeId,
        subgroups: Vec<SubgroupId>,
        sink: Sink,
        replica: &mut R,
        mut between: impl FnMut(),
    ) {
        self.forget(node);
        let state_of = |subgroup: &SubgroupId| {
            let state = (*subgroup, replica.snapshot(*subgroup));
            between();
            state
        };
        let states = subgroups.iter().map(state_of).collect();
        if sink.put(Supplied::States(states)) {
            self.supplied.push(Joiner { node, subgroups, sink, held: Duration::ZERO });
        }
    }

    /// Hands a delivered message to whoever is being supplied with its subgroup.
    pub(super) fn tap(&mut self, message: &Message<'_>) {
        let mut shared = None;
        self.supplied.retain(|joiner| {
            !joiner.subgroups.contains(&message.subgroup)
                || joiner.sink.put_message(shared.get_or_insert_with(|| Shared::of(message)))
        });
    }

    /// Waits for those that are behind, at most so long. True if there are any.
    pub(super) fn hold_back(&mut self, most: Duration) -> bool {
        let is_behind = |joiner: &Joiner| joiner.sink.is_behind();
        if !self.supplied.iter().any(is_behind) {
            return false;
        }
        let began = Instant::now();
        while began.elapsed() < most && self.supplied.iter().any(is_behind) {
            std::thread::sleep(HOLD_PAUSE);
        }
        for joiner in self.supplied.iter_mut().filter(|joiner| joiner.sink.is_behind()) {
            joiner.held += began.elapsed();
        }
        self.supplied.retain(|joiner| {
            let is_too_slow = joiner.held > HELD_MAX;
            if is_too_slow {
                joiner.sink.put(Supplied::GivenUp);
            }
            !is_too_slow
        });
        true
    }

    /// A node has caught up.
    pub(super) fn wish(&mut self, node: NodeId, view: &mut OpenView) {
        self.waiting.push_back(node);
        self.ask_next(view);
    }

    fn ask_next(&mut self, view: &mut OpenView) {
        while self.wished.is_none() {
            let Some(node) = self.waiting.pop_front() else { return };
            match view.wish(node) {
                Ok(()) => self.wished = Some(node),
                Err(error) => tracing::warn!(%node, %error, "a node cannot be let in"),
            }
        }
    }

    /// A node is gone, or is given up. True if it was let in by the present view.
    pub(super) fn gone(&mut self, node: NodeId, view: &mut OpenView) -> bool {
        self.forget(node);
        self.waiting.retain(|waiting| *waiting != node);
        if self.wished == Some(node) {
            self.wished = None;
            view.take_back();
            self.ask_next(view);
        }
        self.let_in.contains(&node)
    }

    fn forget(&mut self, node: NodeId) {
        self.supplied.retain(|joiner| joiner.node != node);
    }

    /// A view ends here: nothing more is delivered in it. Tells its new members so.
    pub(super) fn view_ends(&mut self, next: &View) {
        let let_in = &mut self.let_in;
        let_in.retain(|node| next.members.contains(node));
        self.supplied.retain(|joiner| {
            let is_in = next.members.contains(&joiner.node);
            if is_in {
                joiner.sink.put(Supplied::Member(next.clone()));
                let_in.push(joiner.node);
            }
            !is_in
        });
        // Whoever was not let in is asked for again: a wish is of one view.
        if let Some(node) = self.wished.take() {
            self.waiting.push_front(node);
        }
        self.waiting.retain(|node| !next.members.contains(node));
    }

    /// The next view has begun.
    pub(super) fn view_begins(&mut self, view: &mut OpenView) {
        self.ask_next(view);
    }
}
