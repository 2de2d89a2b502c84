//! The server's handling of requests.

use std::collections::BTreeSet;

use openraft::error::{ClientWriteError, RaftError};
use openraft::{BasicNode, ChangeMembers};

use crate::network::{Answer, Request};
use crate::types::Raft;

/// Answers a request.
pub async fn answer(raft: &Raft, request: Request) -> Answer {
    match request {
        Request::Append(request) => Answer::Append(raft.append_entries(request).await),
        Request::Vote(request) => Answer::Vote(raft.vote(request).await),
        Request::Snapshot(request) => Answer::Snapshot(raft.install_snapshot(request).await),
        Request::Write(record) => told(raft.client_write(record).await),
        Request::Join { id, address } => join(raft, id, address).await,
        Request::Leave { id } => leave(raft, id).await,
    }
}

type Written<T> = Result<T, RaftError<u64, ClientWriteError<u64, BasicNode>>>;

fn told<T>(written: Written<T>) -> Answer {
    match written {
        Ok(_) => Answer::Done,
        Err(RaftError::APIError(ClientWriteError::ForwardToLeader(forward))) => {
            Answer::NotLeader(forward.leader_id)
        }
        Err(error) => Answer::Failed(error.to_string()),
    }
}

/// The server is added first as a learner, until it has the log, and then as a voter.
async fn join(raft: &Raft, id: u64, address: String) -> Answer {
    if let Err(answer) = leads(raft).await {
        return answer;
    }
    if voters(raft).contains(&id) {
        return Answer::Done;
    }
    let added = raft.add_learner(id, BasicNode { addr: address }, true).await;
    if added.is_err() {
        return told(added);
    }
    told(raft.change_membership(ChangeMembers::AddVoterIds(BTreeSet::from([id])), true).await)
}

async fn leave(raft: &Raft, id: u64) -> Answer {
    if let Err(answer) = leads(raft).await {
        return answer;
    }
    if !voters(raft).contains(&id) {
        return Answer::Done;
    }
    told(raft.change_membership(ChangeMembers::RemoveVoters(BTreeSet::from([id])), false).await)
}

/// Checks with a majority whether this server leads: otherwise its list of members may be outdated.
async fn leads(raft: &Raft) -> Result<(), Answer> {
    match raft.ensure_linearizable().await {
        Ok(_) => Ok(()),
        Err(_) => Err(Answer::NotLeader(raft.current_leader().await)),
    }
}

fn voters(raft: &Raft) -> BTreeSet<u64> {
    let metrics = raft.metrics();
    let metrics = metrics.borrow();
    metrics.membership_config.membership().voter_ids().collect()
}
