//! A member's requests to the log, one after the other, each repeated until it is done. This
//! preserves the sender's order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;

use crate::network::{Answer, Peer, Request};
use crate::node::Node;
use crate::protocol::{Line, halt, say};
use crate::requests;
use crate::types::{Raft, Record};

/// Time limit of an attempt: the server may be cut off from a majority. The next attempt may append
/// the message a second time, which is harmless.
const ATTEMPT: Duration = Duration::from_secs(2);

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// A job that a member does in turn.
pub enum Job {
    /// Send a message.
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
    /// The leader, if known.
    leader: Option<u64>,
    turn: usize,
}

impl Asking {
    /// Creates a sender that knows no leader yet.
    pub fn new(node: Arc<Node>, raft: Option<Raft>) -> Self {
        Self { node, raft, peers: BTreeMap::new(), leader: None, turn: 0 }
    }

    /// Executes the driver's jobs in turn.
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

    /// Sends a request to the leader, or to servers that may know it, until it is done.
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
                Ok(Ok(answer)) => eprintln!("server {asked} answered {answer:?}"),
                Ok(Err(error)) => eprintln!("cannot reach server {asked}: {error}"),
                Err(_) => eprintln!("server {asked} did not answer"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Returns the local server first, and then one server after the other.
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
