//! Elects one leader among the members. Start it three times, with the arguments 0, 1 and 2.
//!
//! If the leader is no longer a member, each of the others proposes itself. The first proposal in
//! the order wins, and the others come too late for its term.

use std::time::Duration;

use tramontane::serde::{Deserialize, Serialize};
use tramontane::{Description, Replicated, StartOptions, StateMachine};

const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(crate = "tramontane::serde")]
struct Election {
    term: u64,
    leader: Option<u32>,
}

/// A node that wants to lead after a term.
#[derive(Serialize, Deserialize)]
#[serde(crate = "tramontane::serde")]
struct Candidate {
    node: u32,
    after_term: u64,
}

impl StateMachine for Election {
    type Command = Candidate;
    type Answer = Election;

    fn apply(&mut self, candidate: Candidate) -> Election {
        if candidate.after_term == self.term {
            *self = Election { term: self.term + 1, leader: Some(candidate.node) };
        }
        *self
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = std::env::args().nth(1).ok_or("which node: 0, 1 or 2?")?.parse()?;
    let group = Description::local("election", 3, 100, 64);
    let election = Replicated::start(group, StartOptions::new(node), Election::default())?;
    let mut shown = Election::default();
    loop {
        let mut seen = election.query_local(|election| *election)?;
        let members = election.status().members;
        if members.contains(&node) && !seen.leader.is_some_and(|leader| members.contains(&leader)) {
            let candidate = Candidate { node, after_term: seen.term };
            seen = election.propose(candidate).wait(PATIENCE)?;
        }
        if seen != shown {
            println!("term {}: node {:?} leads", seen.term, seen.leader);
            shown = seen;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
