//! How replicas of a world come to need snapshots, and how they receive them.

use tramontane_core::ids::GroupId;
use tramontane_core::tram::{Destinations, ReplicaId};

use super::{ReplicaHistory, RunningReplica, World};

/// A replica's state, for another replica, together with its deliveries for the judge.
#[derive(Clone)]
pub struct Snapshot {
    pub cells: Vec<u64>,
    pub(super) history: ReplicaHistory,
}

impl World {
    pub fn snapshot_of(&self, id: ReplicaId) -> Snapshot {
        let replica = &self.replicas[&id].replica;
        let mut cells = vec![0; replica.snapshot_cells()];
        replica.snapshot(&mut cells).expect("as many cells");
        Snapshot { cells, history: self.histories[&id].clone() }
    }

    /// Offers a replica a snapshot. Returns false if the replica refuses it.
    pub fn give(&mut self, id: ReplicaId, snapshot: &Snapshot) -> bool {
        let Some(mut running) = self.replicas.remove(&id) else { return false };
        let is_taken = self.give_to(id, &mut running, snapshot);
        self.replicas.insert(id, running);
        is_taken
    }

    /// Offers a replica the cells of a snapshot that it must refuse. Returns whether it took them.
    pub fn give_cells(&mut self, id: ReplicaId, cells: &[u64]) -> bool {
        let running = self.replicas.get_mut(&id).expect("it runs");
        running.replica.restore(cells, &running.memory).expect("it fits")
    }

    fn give_to(&mut self, id: ReplicaId, to: &mut RunningReplica, snapshot: &Snapshot) -> bool {
        let is_taken = to.replica.restore(&snapshot.cells, &to.memory).expect("it fits");
        if is_taken {
            self.histories.insert(id, snapshot.history.clone());
            self.save_snapshot(id, to, snapshot);
            self.restored += 1;
        }
        is_taken
    }

    /// Offers snapshots to the replicas of a group. They must not change replicas that need none.
    pub fn offer_snapshots(&mut self, group: GroupId) {
        for id in self.ids().into_iter().filter(|id| id.group == group) {
            if let Some(mut running) = self.replicas.remove(&id) {
                self.restore(id, &mut running);
                self.replicas.insert(id, running);
            }
        }
    }

    /// Pauses a replica while its group fills its log twice. The leader fills the log once before
    /// it stops waiting for the replica.
    pub fn fall_behind(&mut self, id: ReplicaId) {
        let Some(client) = self.clients.keys().next().copied() else { return };
        let delivered = |world: &Self| {
            let of_group = world.replicas.iter().filter(|(other, _)| other.group == id.group);
            of_group.map(|(_, running)| running.replica.delivered()).max().unwrap_or(0)
        };
        let entries = u64::from(self.settings.log_entries);
        let around = delivered(self) + 2 * entries + 2;
        self.pause(id, u64::MAX);
        // A group without a quorum makes no progress.
        for _ in 0..40 * entries {
            if delivered(self) >= around {
                break;
            }
            let _ = self.multicast(client, Destinations::of(id.group), 8);
            self.run(100);
        }
        self.pause(id, self.now);
    }

    /// Restores the state of a voter at a new replica.
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
        let snapshot = self.snapshot_of(from);
        self.give_to(id, running, &snapshot);
    }
}
