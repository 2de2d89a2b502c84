//! Visits every state of a model, or stops at the shortest path to an incorrect state.
//!
//! Whole states are kept and compared, so different states are never confused, as they can be if
//! only fingerprints are kept. A search that ends has therefore visited every state.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::rc::Rc;

/// A model that can be explored.
pub trait Model {
    type State: Clone + Eq + Hash;
    type Action: Copy + Debug;

    fn start(&self) -> Self::State;
    /// All actions; only some are possible in a given state.
    fn actions(&self) -> Vec<Self::Action>;
    /// Returns the state after an action, or `None` if the action is not possible.
    fn next(&self, state: &Self::State, action: Self::Action) -> Option<Self::State>;
    /// Checks what must hold in every state.
    fn check(&self, state: &Self::State) -> Result<(), String>;
    /// Checks what must hold in a state without possible actions.
    fn check_end(&self, state: &Self::State) -> Result<(), String>;
}

/// Counts of a completed search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchCounts {
    pub states: usize,
    pub transitions: usize,
    /// States without possible actions.
    pub ends: usize,
    /// Largest number of actions needed to reach a state.
    pub depth: usize,
}

/// The fault found, and the actions that lead to it.
#[derive(Clone, Debug)]
pub struct Refuted {
    pub what: String,
    pub actions: Vec<String>,
}

/// How a state was first reached: the previous state and the action.
struct FirstReached<A> {
    from: usize,
    by: Option<A>,
    depth: usize,
}

/// A hasher for the table of states; equality is checked on the states themselves. States consist
/// of bytes, for which the standard library's hash is slow.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u8(*byte);
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.0 = (self.0.rotate_left(5) ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// Visits every state.
pub fn explore<M: Model>(model: &M) -> Result<SearchCounts, Refuted> {
    let start = Rc::new(model.start());
    let mut known = HashMap::with_hasher(BuildHasherDefault::<Mix>::default());
    known.insert(Rc::clone(&start), 0_usize);
    let mut states = vec![start];
    let mut ways = vec![FirstReached { from: 0, by: None, depth: 0 }];
    let (actions, mut found) = (model.actions(), SearchCounts::default());
    // States are visited in the order in which they were found, so the first path to a state is a
    // shortest one.
    while let Some(state) = states.get(found.states).cloned() {
        let at = found.states;
        let refuted = |what| Refuted { what, actions: actions_to(&ways, at) };
        model.check(&state).map_err(refuted)?;
        let before = found.transitions;
        for action in &actions {
            let Some(next) = model.next(&state, *action) else { continue };
            found.transitions += 1;
            let next = Rc::new(next);
            if let std::collections::hash_map::Entry::Vacant(place) = known.entry(Rc::clone(&next))
            {
                place.insert(states.len());
                states.push(next);
                let depth = ways[at].depth + 1;
                ways.push(FirstReached { from: at, by: Some(*action), depth });
            }
        }
        if found.transitions == before {
            found.ends += 1;
            let refuted = |what| Refuted { what, actions: actions_to(&ways, at) };
            model.check_end(&state).map_err(refuted)?;
        }
        found.depth = ways[at].depth;
        found.states += 1;
    }
    Ok(found)
}

fn actions_to<A: Debug>(ways: &[FirstReached<A>], mut at: usize) -> Vec<String> {
    let mut actions = Vec::new();
    while let Some(action) = &ways[at].by {
        actions.push(format!("{action:?}"));
        at = ways[at].from;
    }
    actions.reverse();
    actions
}
