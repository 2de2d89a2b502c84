//! The processes of other nodes, on the disk of a replica.
//!
//! A process that returns has a higher incarnation than every earlier one of its node, also after
//! all processes of the overlay have ended. So a replica saves each process of a replica before it
//! meets it, and each client's place before it gives the place away. Only replicas of the root give
//! places to clients, so only they save clients.

use std::sync::Weak;

use tramontane_core::ids::NodeId;
use tramontane_log::{GroupCommit, Log, SystemFolder};

use crate::shards::lives::Life;
use crate::shards::places::Places;

/// The prefix of the names of values that contain a node's process.
const LIFE: &str = "life.";

/// The processes that a replica has saved.
#[derive(Debug)]
pub(in crate::shards) struct KnownLives {
    commits: Weak<GroupCommit<SystemFolder>>,
    places: Places,
    keeps_clients: bool,
    found: Vec<(NodeId, Life)>,
}

impl KnownLives {
    pub(super) fn new(
        commits: Weak<GroupCommit<SystemFolder>>,
        places: Places,
        keeps_clients: bool,
        found: Vec<(NodeId, Life)>,
    ) -> Self {
        Self { commits, places, keeps_clients, found }
    }

    /// Returns the processes in a log.
    pub(super) fn find(log: &Log<SystemFolder>) -> Vec<(NodeId, Life)> {
        let found = log.value_names().filter_map(|name| {
            let node = NodeId(name.strip_prefix(LIFE)?.parse().ok()?);
            Some((node, life_of(log.value(name)?)?))
        });
        found.collect()
    }

    /// Returns the processes that an earlier process of this replica has saved.
    pub(in crate::shards) fn take_found(&mut self) -> Vec<(NodeId, Life)> {
        std::mem::take(&mut self.found)
    }

    /// Saves processes. Returns false if this fails; the replica then ends with its next entry.
    #[must_use]
    pub(in crate::shards) fn keep(&self, lives: &[(NodeId, Life)]) -> bool {
        let is_kept = |node: &NodeId| self.keeps_clients || self.places.client(*node).is_none();
        let kept: Vec<(String, [u8; 12])> = lives
            .iter()
            .filter(|(node, _)| is_kept(node))
            .map(|(node, life)| (name_of(*node), life_bytes(*life)))
            .collect();
        let values = kept.iter().map(|(name, bytes)| (name.as_str(), Some(bytes.as_slice())));
        kept.is_empty() || self.set(&values.collect::<Vec<_>>())
    }

    /// Forgets all processes and saves these instead, because the group has formed.
    #[must_use]
    pub(in crate::shards) fn keep_only(&self, lives: &[(NodeId, Life)]) -> bool {
        let Some(commits) = self.commits.upgrade() else { return false };
        let all: Vec<String> =
            commits.with_log(|log| log.value_names().map(str::to_owned).collect());
        drop(commits);
        let values: Vec<(&str, Option<&[u8]>)> = all
            .iter()
            .filter(|name| name.starts_with(LIFE))
            .map(|name| (name.as_str(), None))
            .collect();
        self.set(&values) && self.keep(lives)
    }

    fn set(&self, values: &[(&str, Option<&[u8]>)]) -> bool {
        // A replica that has ended needs to remember nothing.
        let Some(commits) = self.commits.upgrade() else { return false };
        match commits.with_log(|log| log.set_values(values)) {
            Ok(()) => true,
            Err(error) => {
                tracing::error!(%error, "cannot save a process of another node");
                false
            }
        }
    }
}

fn name_of(node: NodeId) -> String {
    format!("{LIFE}{}", node.get())
}

fn life_bytes(life: Life) -> [u8; 12] {
    let mut bytes = [0; 12];
    let (process, incarnation) = bytes.split_at_mut(8);
    process.copy_from_slice(&life.life.to_le_bytes());
    incarnation.copy_from_slice(&life.incarnation.to_le_bytes());
    bytes
}

fn life_of(bytes: &[u8]) -> Option<Life> {
    let (process, incarnation) = bytes.split_at_checked(8)?;
    Some(Life {
        life: u64::from_le_bytes(process.try_into().ok()?),
        incarnation: u32::from_le_bytes(incarnation.try_into().ok()?),
    })
}
