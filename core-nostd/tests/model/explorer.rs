//! Visits every state of a model, or stops at the shortest way to one that is wrong.
//!
//! States are kept whole and compared whole: two that differ are never taken for one, as they can
//! be where only fingerprints are kept. So what is said to be exhausted is.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::rc::Rc;

/// What can be explored.
pub trait Model {
    type State: Clone + Eq + Hash;
    type Action: Copy + Debug;

    fn start(&self) -> Self::State;
    /// Actions of which some may be possible in a state.
    fn actions(&self) -> Vec<Self::Action>;
    /// What an action leads to; nothing where it is not possible.
    fn next(&self, state: &Self::State, action: Self::Action) -> Option<Self::State>;
    /// What must hold in every state.
    fn check(&self, state: &Self::State) -> Result<(), String>;
    /// What must hold where nothing is possible any more.
    fn check_end(&self, state: &Self::State) -> Result<(), String>;
}

/// What was visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub states: usize,
    pub transitions: usize,
    /// States in which nothing is possible any more.
    pub ends: usize,
    /// The most actions that it takes to come to a state.
    pub depth: usize,
}

/// What is wrong, and the actions that lead there.
#[derive(Clone, Debug)]
pub struct Refuted {
    pub what: String,
    pub actions: Vec<String>,
}

/// How a state was come to first: from which one, and by what.
struct Arrival<A> {
    from: usize,
    by: Option<A>,
    depth: usize,
}

/// Where to look for a state; whether it is the same is asked of the state. States are made of
/// bytes, for which the hash of the library is slow.
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
pub fn explore<M: Model>(model: &M) -> Result<Found, Refuted> {
    let start = Rc::new(model.start());
    let mut known = HashMap::with_hasher(BuildHasherDefault::<Mix>::default());
    known.insert(Rc::clone(&start), 0_usize);
    let mut states = vec![start];
    let mut ways = vec![Arrival { from: 0, by: None, depth: 0 }];
    let (actions, mut found) = (model.actions(), Found::default());
    // In the order in which they were found, so that the first way to a state is a shortest one.
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
                ways.push(Arrival { from: at, by: Some(*action), depth });
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

fn actions_to<A: Debug>(ways: &[Arrival<A>], mut at: usize) -> Vec<String> {
    let mut actions = Vec::new();
    while let Some(action) = &ways[at].by {
        actions.push(format!("{action:?}"));
        at = ways[at].from;
    }
    actions.reverse();
    actions
}
