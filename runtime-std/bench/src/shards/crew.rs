//! The parent of TRAM's replicas: it starts them, kills leaders, and learns which replica leads.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use tramontane_local::clock::now_ns;
use tramontane_local::crew::{Crew, Launch, WorkerEvent, WorkerId};
use tramontane_local::interrupt::Interrupts;
use tramontane_runtime::shards::{Description, Places};

use super::replica::{ReplicaProcess, ReplicaReport, ReplicaTask};
use crate::durable::run::folder_in;
use crate::error::BenchError;

/// Time limit for replicas to count in quorums.
const VOTES_LIMIT: Duration = Duration::from_secs(30);

/// Interval between checks for signals.
const TICK: Duration = Duration::from_millis(5);

/// A replica, as its parent process sees it.
#[derive(Debug)]
struct CrewReplica {
    name: String,
    votes: bool,
    /// The time at which the replica last began to lead.
    leads_at_ns: Option<u64>,
}

/// A replica's report about its leadership.
#[derive(Clone, Copy, Debug)]
pub(super) enum Leading {
    Begun { at_ns: u64 },
    Delivered { at_ns: u64 },
}

/// All replicas of an overlay, each in a separate process. Dropping this value ends them.
pub(super) struct Replicas<'i> {
    overlay: Description,
    crew: Crew<ReplicaProcess>,
    members: BTreeMap<WorkerId, CrewReplica>,
    interrupts: &'i Interrupts,
    /// The folder in which durable replicas save their logs.
    folder: Option<TempDir>,
}

impl<'i> Replicas<'i> {
    /// Starts all replicas, and waits until they count in quorums.
    pub(super) fn start(
        overlay: &Description,
        places: &Places,
        disk: &Path,
        interrupts: &'i Interrupts,
    ) -> Result<Self, BenchError> {
        let (overlay, crew, members) = (overlay.clone(), Crew::default(), BTreeMap::new());
        let folder = overlay.durable.then(|| folder_in(disk)).transpose()?;
        let mut replicas = Self { overlay, crew, members, interrupts, folder };
        for replica in places.replicas() {
            replicas.start_one(places.name(replica))?;
        }
        replicas.wait_until_all_vote()?;
        Ok(replicas)
    }

    pub(super) fn start_one(&mut self, name: String) -> Result<(), BenchError> {
        let task = ReplicaTask {
            overlay: self.overlay.clone(),
            name: name.clone(),
            data: self.folder.as_ref().map(|folder| folder.path().to_owned()),
        };
        let worker = self.crew.start(&task, &Launch::default())?;
        self.members.insert(worker, CrewReplica { name, votes: false, leads_at_ns: None });
        Ok(())
    }

    /// Waits until all replicas have a vote. Returns the number of times that a replica began to
    /// lead meanwhile.
    pub(super) fn wait_until_all_vote(&mut self) -> Result<u32, BenchError> {
        let until = Instant::now() + VOTES_LIMIT;
        let mut begun = 0;
        while !self.members.values().all(|member| member.votes) {
            if Instant::now() >= until {
                let text = format!("some replicas still had no vote after {VOTES_LIMIT:?}");
                return Err(BenchError::Broken(text));
            }
            begun += u32::from(matches!(self.hear(TICK)?, Some(Leading::Begun { .. })));
        }
        Ok(begun)
    }

    /// Kills the replica that began to lead last. Returns its name and the time of the kill.
    pub(super) fn kill_leader(&mut self) -> Option<(String, u64)> {
        let latest = |(_, member): &(&WorkerId, &CrewReplica)| member.leads_at_ns;
        let leads = self.members.iter().filter(|(_, member)| member.leads_at_ns.is_some());
        let worker = leads.max_by_key(latest).map(|(worker, _)| *worker)?;
        let member = self.members.remove(&worker)?;
        let at_ns = now_ns();
        // Waits until the process has exited.
        self.crew.remove(worker);
        Some((member.name, at_ns))
    }

    /// Takes one report, if one arrives in time.
    pub(super) fn hear(&mut self, timeout: Duration) -> Result<Option<Leading>, BenchError> {
        self.interrupts.check().map_err(tramontane_local::crew::CrewError::from)?;
        let Some((worker, event)) = self.crew.next(timeout) else { return Ok(None) };
        // Earlier reports of a killed replica still arrive.
        let Some(member) = self.members.get_mut(&worker) else { return Ok(None) };
        match event {
            WorkerEvent::Report(ReplicaReport::Votes) => member.votes = true,
            WorkerEvent::Report(ReplicaReport::Leads { at_ns }) => {
                member.leads_at_ns = Some(at_ns);
                return Ok(Some(Leading::Begun { at_ns }));
            }
            WorkerEvent::Report(ReplicaReport::Delivers { at_ns }) => {
                return Ok(Some(Leading::Delivered { at_ns }));
            }
            WorkerEvent::Report(ReplicaReport::Failed(text)) => {
                return Err(BenchError::Broken(format!("replica {}: {text}", member.name)));
            }
            WorkerEvent::Ended(end) => {
                return Err(BenchError::Broken(format!("replica {} ended: {end}", member.name)));
            }
        }
        Ok(None)
    }
}
