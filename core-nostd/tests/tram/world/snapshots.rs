//! How replicas of a world get snapshots.

use tramontane_core::tram::ReplicaId;

use super::{RunningReplica, World};

impl World {
    /// A replica is given a snapshot for which it has not asked.
    pub fn offer_snapshot(&mut self, id: ReplicaId) {
        if let Some(mut running) = self.replicas.remove(&id) {
            self.restore(id, &mut running);
            self.replicas.insert(id, running);
        }
    }

    /// A new replica takes over the state of one that counts.
    pub(super) fn restore(&mut self, id: ReplicaId, running: &mut RunningReplica) {
        if !self.gives_snapshots {
            return;
        }
        let voters: Vec<ReplicaId> = self
            .replicas
            .iter()
            .filter(|(other, peer)| other.group == id.group && peer.replica.is_voter())
            .map(|(other, _)| *other)
            .filter(|other| *other != id)
            .collect();
        if voters.is_empty() {
            return;
        }
        let from = voters[self.random.below(voters.len())];
        let peer = &self.replicas[&from].replica;
        let mut cells = vec![0; peer.snapshot_cells()];
        peer.snapshot(&mut cells).expect("as many cells");
        if running.replica.restore(&cells, &running.memory).expect("it fits") {
            let history = self.histories[&from].clone();
            self.histories.insert(id, history);
            self.restored += 1;
        }
    }
}
