//! What a member asks of the log: one request after the other, each until it is done. That keeps a
//! sender's order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;

use crate::network::{Answer, Peer, Request};
use crate::node::Node;
use crate::protocol::{Line, halt, say};
use crate::requests;
use crate::types::{Raft, Record};

/// An attempt that takes longer is given up: the server that was asked may be cut off from a
/// majority. The next one may find the message in the log already, which is no harm.
const ATTEMPT: Duration = Duration::from_secs(2);

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// What a member is to do in turn.
pub enum Job {
    /// To send a message.
    Send(Record),
    /// To leave.
    Leave,
}

/// Asks servers.
pub struct Asking {
    node: Arc<Node>,
    /// The server of this node, if it has one.
    raft: Option<Raft>,
    peers: BTreeMap<u64, Peer>,
    /// The leader, if it is known.
    leader: Option<u64>,
    turn: usize,
}

impl Asking {
    /// Nobody was asked yet.
    pub fn new(node: Arc<Node>, raft: Option<Raft>) -> Self {
        Self { node, raft, peers: BTreeMap::new(), leader: None, turn: 0 }
    }

    /// Does what the driver wants, in turn.
    pub async fn run(mut self, mut jobs: UnboundedReceiver<Job>) {
        while let Some(job) = jobs.recv().await {
            match job {
                Job::Send(record) => {
                    let message = record.message.clone();
                    self.until_done(|| Request::Write(record.clone())).await;
                    say(&Line::Ok { message: Some(&message) });
                }
                Job::Leave => {
                    let id = self.node.id;
                    self.until_done(|| Request::Leave { id }).await;
                    halt("left", "");
                }
            }
        }
    }

    /// Asks the leader, or whoever may know it, until it has done what is asked.
    pub async fn until_done(&mut self, request: impl Fn() -> Request) {
        loop {
            let asked = self.leader.take().unwrap_or_else(|| self.next_server());
            let answer = tokio::time::timeout(ATTEMPT, self.ask(asked, request())).await;
            match answer {
                Ok(Ok(Answer::Done)) => {
                    self.leader = Some(asked);
                    return;
                }
                Ok(Ok(Answer::NotLeader(Some(leader)))) if leader != asked => {
                    self.leader = Some(leader);
                    continue;
                }
                Ok(Ok(answer)) => eprintln!("{asked} says {answer:?}"),
                Ok(Err(error)) => eprintln!("{asked} is not reached: {error}"),
                Err(_) => eprintln!("{asked} does not answer"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The own server first, and then one after the other.
    fn next_server(&mut self) -> u64 {
        let present = self.node.present();
        let own = present.iter().position(|id| *id == self.node.id).unwrap_or(0);
        let place = (own + self.turn) % present.len().max(1);
        self.turn += 1;
        present.get(place).copied().unwrap_or(self.node.id)
    }

    async fn ask(&mut self, id: u64, request: Request) -> std::io::Result<Answer> {
        if let Some(raft) = self.raft.as_ref().filter(|_| id == self.node.id) {
            return Ok(requests::answer(raft, request).await);
        }
        if !self.peers.contains_key(&id) {
            let address = self.node.address(id).await;
            self.peers.insert(id, Peer::new(id, address));
        }
        let missing = || std::io::Error::other("no such server");
        self.peers.get_mut(&id).ok_or_else(missing)?.ask(&request).await
    }
}
