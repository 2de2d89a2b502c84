//! The group of a copy: one sending member, and its receivers.
//!
//! | subgroup | senders | what it carries |
//! |---|---|---|
//! | [`ORDER`] | all members | the notices that decide: manifest, readiness, the one commit |
//! | [`DATA`] | the member that copies | the archive, in large messages, which go by blocks |
//!
//! A member knows the manifest before it receives data, and the sender commits only after all
//! receivers are ready. So nothing depends on the relative order of the two subgroups.
//!
//! # A majority is required
//! A view needs a majority of the previous one. Otherwise, a network split could leave one side
//! that commits and one that does not: either side may deliver a commit in its ragged trim, and
//! there would be two trims. So a member on the smaller side halts. It has nothing unless it
//! delivered the commit before that; in this case, all on the larger side deliver it too. Two
//! members have no majority but both of them: with one receiver, the copy ends when either is lost.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tramontane_control::MeshError;
use tramontane_core::ids::SubgroupId;

use super::messages::{NOTICE_MAX, Terms};
use tramontane_local::exit::Failure;
use tramontane_runtime::group::{
    self, Description, Forming, LargeBlocks, Replica, Running, StartError, StartOptions,
    SubgroupDescription,
};

/// The subgroup of notices.
pub(super) const ORDER: SubgroupId = SubgroupId(0);

/// The subgroup of the copied data.
pub(super) const DATA: SubgroupId = SubgroupId(1);

/// Bytes of the archive in a large message.
pub(super) const CHUNK_BYTES: usize = 16 << 20;

/// Size of the largest block in bytes: a large message then has two, the minimum for a pipeline.
/// With larger blocks, the pipeline's memory would exceed the message.
const BLOCK_MAX: usize = CHUNK_BYTES / 2;

/// Number of large messages in flight at a time.
const CHUNKS_UNDER_WAY: u32 = 2;

/// Number of chunks that may be sent before the slowest receiver has taken the first of them. Each
/// receiver has memory for as many.
pub(super) const CHUNKS_AHEAD: u64 = 4;

/// Number of notices of a member in flight.
const NOTICES: u32 = 4;

/// Default time without progress, in seconds, after which a copy is given up.
pub(super) const STALL_DEFAULT_S: &str = "60";

/// Heartbeat interval in milliseconds for small groups: the end of a killed process is noticed
/// within this time.
const HEARTBEAT_MS: u64 = 200;

/// Heartbeat interval in milliseconds per member, because each member sends to all others.
const HEARTBEAT_MS_PER_MEMBER: u64 = 4;

/// A member's part in a copy.
pub(super) struct Job {
    /// The name, fabric, nodes and trust of the group. Everything else is the same in every copy.
    pub(super) group: Description,
    /// The sending member.
    pub(super) sender: u32,
    /// The member's node id, and how it starts.
    pub(super) options: StartOptions<'static>,
    /// Longest time without progress.
    pub(super) stall: Duration,
    pub(super) blocks: LargeBlocks,
}

/// Parses the size of a block.
pub(super) fn block_bytes(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(bytes) if (4096..=BLOCK_MAX).contains(&bytes) => Ok(bytes),
        _ => Err(format!("not a number of bytes from 4096 to {BLOCK_MAX}")),
    }
}

/// Parses the longest time without progress.
pub(super) fn stall_time(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (1.0..=86_400.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("not a number of seconds from 1 to 86400".to_owned()),
    }
}

impl Job {
    /// This member.
    pub(super) const fn own(&self) -> u32 {
        self.options.node
    }

    /// Returns the receivers in order.
    pub(super) fn receivers(&self) -> impl Iterator<Item = u32> + '_ {
        let nodes = self.group.nodes.iter().map(|node| node.id);
        nodes.filter(|node| *node != self.sender)
    }

    /// Returns how long a member may miss its heartbeats. It is shorter than the longest time
    /// without progress, so that the lost member can be named.
    pub(super) fn silence(&self) -> Duration {
        self.stall / 2
    }

    /// Returns the settings of the block multicast.
    pub(super) fn terms(&self) -> Terms {
        let LargeBlocks { algorithm, bytes } = self.blocks;
        Terms { algorithm: format!("{algorithm:?}").to_lowercase(), block_bytes: bytes }
    }

    /// Becomes a member once all others have joined.
    pub(super) fn start(
        &mut self,
        replica: impl Replica + 'static,
        cancel: &AtomicBool,
    ) -> Result<Running, Failure> {
        let description = self.describe()?;
        let unused = StartOptions::new(self.own());
        let options = StartOptions {
            cancel,
            forming: Forming { new_group: true, first_view_only: true, ..Forming::default() },
            ..std::mem::replace(&mut self.options, unused)
        };
        group::start(description, options, replica).map_err(|error| self.not_started(error))
    }

    fn describe(&self) -> Result<Description, Failure> {
        let members: Vec<u32> = self.group.nodes.iter().map(|node| node.id).collect();
        if members.len() < 2 {
            let what = "there is no node to copy to";
            return Err(Failure::usage(what, "give a group file with a receiver"));
        }
        let order = SubgroupDescription {
            members: Some(members.clone()),
            senders: Some(members.clone()),
            window: NOTICES,
            message_max: u32::try_from(NOTICE_MAX).unwrap_or(u32::MAX),
            ..SubgroupDescription::named("order")
        };
        let data = SubgroupDescription {
            members: Some(members.clone()),
            senders: Some(vec![self.sender]),
            window: 2 * CHUNKS_UNDER_WAY,
            message_max: 16,
            large_max: CHUNK_BYTES as u64,
            large_window: CHUNKS_UNDER_WAY,
            large_blocks: Some(self.blocks),
            ..SubgroupDescription::named("data")
        };
        let silence_ms = u64::try_from(self.silence().as_millis()).unwrap_or(u64::MAX);
        let usual_ms = HEARTBEAT_MS_PER_MEMBER.saturating_mul(members.len() as u64);
        let mut description = Description {
            heartbeat_ms: usual_ms.max(HEARTBEAT_MS).min(silence_ms / 4),
            failure_timeout_ms: silence_ms,
            majority: true,
            // Lists the nodes in their order, so that those that disagree on the sender still meet.
            initial: members,
            subgroups: vec![order, data],
            ..self.group.clone()
        };
        // The state folders in the group file are for the file's own group, and are not used by a
        // copy.
        description.nodes.iter_mut().for_each(|node| node.state = None);
        description.complete()?;
        Ok(description)
    }

    /// Explains in the command line's terms why members of a copy did not meet.
    fn not_started(&self, error: StartError) -> Failure {
        match &error {
            StartError::Listen { address, source, .. }
                if source.kind() == std::io::ErrorKind::AddrInUse =>
            {
                let what = format_args!(
                    "{address} is in use: by this node of the group, if it runs, whose address a \
                     copy takes meanwhile"
                );
                let advice = "stop the node for so long, or give 'copy' a group file with other \
                              ports, at all nodes";
                Failure::group(what, advice)
            }
            StartError::OtherConfiguration { node, .. } => {
                let what = format_args!(
                    "node {node} does not copy from node {}, or has another group file or \
                     --stall-timeout",
                    self.sender
                );
                let advice = "give the same --from, --stall-timeout and group file at all nodes";
                Failure::group(what, advice)
            }
            StartError::Meet(MeshError::Running { peer }) => {
                let what = format_args!(
                    "a copy from node {} is under way already, as node {peer} says",
                    self.sender
                );
                Failure::group(what, "wait for its end, and copy again")
            }
            _ => error.into(),
        }
    }
}

#[cfg(test)]
impl Job {
    /// Returns the part of a member of a copy from node 0 to `receivers` receivers. All members are
    /// threads that meet over shared memory in a folder.
    pub(super) fn of_threads(folder: &std::path::Path, receivers: u32, own: u32) -> Self {
        use tramontane_runtime::blocks::GroupOptions;
        use tramontane_runtime::carrier::Carrier;
        use tramontane_runtime::shared_memory::Root;
        let usual = GroupOptions::for_fabric(Carrier::SharedMemory, usize::MAX);
        Self {
            group: Description::local("copy", receivers + 1, 1, 0),
            sender: 0,
            options: StartOptions { root: Root::under(folder), ..StartOptions::new(own) },
            stall: Duration::from_secs(60),
            blocks: LargeBlocks { algorithm: usual.algorithm, bytes: usual.block_bytes },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tramontane_local::exit::Status;
    use tramontane_runtime::carrier::Carrier;

    fn job(receivers: u32, carrier: Carrier) -> Job {
        let mut job = Job::of_threads(std::path::Path::new("/dev/shm"), receivers, 1);
        job.group.fabric = carrier;
        for node in &mut job.group.nodes {
            let port = 10_000 + u16::try_from(node.id).expect("few");
            node.address = (carrier != Carrier::SharedMemory)
                .then(|| std::net::SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, port)).into());
        }
        job
    }

    #[test]
    fn largest_group_of_receivers_fits() {
        for carrier in [Carrier::SharedMemory, Carrier::Tcp] {
            for receivers in [1, 3, 511, 1023] {
                let description = job(receivers, carrier).describe().expect("it is a group");
                assert!(description.majority);
                assert!(description.failure_timeout_ms >= 4 * description.heartbeat_ms);
            }
        }
        let failure = job(1024, Carrier::Tcp).describe().expect_err("too many");
        assert_eq!(failure.status, Status::Usage);
        let failure = job(0, Carrier::Tcp).describe().expect_err("too few");
        assert_eq!(failure.status, Status::Usage);
    }
}
