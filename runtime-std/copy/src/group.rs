//! The group of a copy: one sending member, and its receivers.
//!
//! | subgroup | senders | contents |
//! |---|---|---|
//! | [`ORDER`] | all members | the notices that decide: manifest, readiness, commit |
//! | [`DATA`] | the member that copies | the archive, in large messages sent by block multicast |
//!
//! A member knows the manifest before it receives data, and the sender commits only after all
//! receivers are ready. So the relative order of the two subgroups does not matter.
//!
//! # A majority is required
//! A view needs a majority of the previous one. Otherwise, after a network split, one side might
//! commit and the other not: either side could deliver a commit in its ragged trim, and there would
//! be two trims. So a member on the smaller side halts. It has nothing unless it delivered the
//! commit before the split, in which case all members on the larger side deliver the commit too.
//! With two members, only both together are a majority, so a copy with one receiver ends when
//! either is lost.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tramontane_control::MeshError;
use tramontane_core::ids::SubgroupId;

use super::messages::{NOTICE_MAX, Terms};
use tramontane_local::exit::Failure;
use tramontane_runtime::group::{
    self, Application, Description, Forming, LargeBlocks, Running, StartError, StartOptions,
    SubgroupDescription,
};

/// The subgroup of notices.
pub(super) const ORDER: SubgroupId = SubgroupId(0);

/// The subgroup of the copied data.
pub(super) const DATA: SubgroupId = SubgroupId(1);

/// Size, in bytes, of the part of the archive that one large message carries.
pub(super) const CHUNK_BYTES: usize = 16 << 20;

/// Maximum block size in bytes. A large message then has two blocks, the minimum for a pipeline.
/// With larger blocks, the pipeline would need more memory than the message.
const BLOCK_MAX: usize = CHUNK_BYTES / 2;

/// Number of large messages in flight at once.
const CHUNKS_UNDER_WAY: u32 = 2;

/// Number of chunks that may be sent before the slowest receiver has taken the first of them. Each
/// receiver has memory for that many.
pub(super) const CHUNKS_AHEAD: u64 = 4;

/// Maximum number of one member's notices in flight.
const NOTICES: u32 = 4;

/// Default time without progress, in seconds, after which a copy is given up.
pub(super) const STALL_DEFAULT_S: &str = "60";

/// Heartbeat interval for small groups, in milliseconds. The exit of a killed process is noticed
/// within this time.
const HEARTBEAT_MS: u64 = 200;

/// Addition to the heartbeat interval per member, in milliseconds, because each member sends to all
/// others.
const HEARTBEAT_MS_PER_MEMBER: u64 = 4;

/// A member's task in a copy.
pub(super) struct Job {
    /// The name, fabric, nodes and trust of the group. All other settings are the same in every
    /// copy.
    pub(super) group: Description,
    /// The sending member.
    pub(super) sender: u32,
    /// The member's node id, and its start options.
    pub(super) options: StartOptions<'static>,
    /// Time without progress after which the copy is given up.
    pub(super) stall: Duration,
    pub(super) blocks: LargeBlocks,
}

/// Parses a block size.
pub(super) fn block_bytes(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(bytes) if (4096..=BLOCK_MAX).contains(&bytes) => Ok(bytes),
        _ => Err(format!("not a number of bytes from 4096 to {BLOCK_MAX}")),
    }
}

/// Parses the time without progress after which a copy is given up.
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

    /// Returns the node ids of the receivers, in order.
    pub(super) fn receivers(&self) -> impl Iterator<Item = u32> + '_ {
        let nodes = self.group.nodes.iter().map(|node| node.id);
        nodes.filter(|node| *node != self.sender)
    }

    /// Returns how long a member may go without sending heartbeats. This is shorter than the time
    /// limit for progress, so that a lost member can be named.
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
        application: impl Application + 'static,
        cancel: &AtomicBool,
    ) -> Result<Running, Failure> {
        let description = self.describe()?;
        let unused = StartOptions::new(self.own());
        let options = StartOptions {
            cancel,
            forming: Forming { new_group: true, first_view_only: true, ..Forming::default() },
            ..std::mem::replace(&mut self.options, unused)
        };
        group::start(description, options, application).map_err(|error| self.not_started(error))
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
            // Lists the nodes in order of id, so that nodes that disagree on the sender still meet.
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

    /// Explains in terms of the command line why the members of a copy did not meet.
    fn not_started(&self, error: StartError) -> Failure {
        match &error {
            StartError::Listen { address, source, .. }
                if source.kind() == std::io::ErrorKind::AddrInUse =>
            {
                let what = format_args!(
                    "{address} is in use, perhaps by this node of the group; the copy needs that \
                     address"
                );
                let advice = "stop the node during the copy, or use a group file with other ports \
                              on all nodes";
                Failure::group(what, advice)
            }
            StartError::OtherConfiguration { node, .. } => {
                let what = format_args!(
                    "node {node} does not copy from node {}, or has a different group file or \
                     --stall-timeout",
                    self.sender
                );
                let advice = "give the same --from, --stall-timeout and group file at all nodes";
                Failure::group(what, advice)
            }
            StartError::Meet(MeshError::Running { peer }) => {
                let what = format_args!(
                    "a copy from node {} is running already, as node {peer} reports",
                    self.sender
                );
                Failure::group(what, "wait until it ends, and copy again")
            }
            _ => error.into(),
        }
    }
}

#[cfg(test)]
impl Job {
    /// Returns one member's task in a copy from node 0 to `receivers` receivers. All members are
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
    fn largest_number_of_receivers_is_accepted() {
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
