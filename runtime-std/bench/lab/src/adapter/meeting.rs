//! The group formed by the members of one run of the suite: it meets under a shared-memory name, or
//! at ports that the members find through their shared folder.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;

use super::protocol::Init;
use super::refusal::{StartRefusal, node_id, not_understood};
use tramontane_local::exit::Failure;
use tramontane_local::free_addresses::free_addresses;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{
    Description, NodeDescription, SubgroupDescription, WINDOW_DEFAULT,
};
use tramontane_runtime::shared_memory::GroupName;

/// Interval between heartbeats.
const HEARTBEAT_MS: u64 = 20;

/// Time without a heartbeat after which a member is suspected: longer than any pause that the suite
/// requests, and short compared with the suite's deadline, which indicates how slow the machine may
/// be. The exit of a process is noticed immediately.
const FAILURE_TIMEOUT_MIN_MS: u64 = 1_500;
const FAILURE_TIMEOUTS_PER_DEADLINE: u64 = 10;

/// Size in bytes above which messages are sent by block multicast, in the same order, so that both
/// paths are tested. Every group accepts messages of this size.
const SMALL_MAX: u32 = 1024;

/// Describes the group, identically for all members of a run, including joiners. The members of the
/// first view are not compared.
pub(super) fn describe(
    init: &Init,
    carrier: Carrier,
    is_logged: bool,
) -> Result<Description, StartRefusal> {
    let ids = |names: &[String]| {
        names.iter().map(|name| node_id(init, name)).collect::<Result<Vec<u32>, _>>()
    };
    let mut description = Description::local(name_of_run(init)?.as_str(), 0, WINDOW_DEFAULT, 0);
    description.heartbeat_ms = HEARTBEAT_MS;
    description.failure_timeout_ms =
        (init.limits.deadline_ms / FAILURE_TIMEOUTS_PER_DEADLINE).max(FAILURE_TIMEOUT_MIN_MS);
    description.nodes = (0..).zip(&init.nodes).map(|(id, _)| NodeDescription::of(id)).collect();
    if carrier != Carrier::SharedMemory {
        description.fabric = carrier;
        // The suite uses separate networks.
        description.allow_clear = true;
        let ports = ports(init).map_err(|error| Failure::system("cannot choose ports", &error))?;
        for ((node, named), port) in description.nodes.iter_mut().zip(&init.nodes).zip(ports) {
            let address = format!("{}:{port}", named.address);
            let parsed = address.parse();
            node.address = Some(parsed.map_err(|_| not_understood(format_args!("\"{address}\"")))?);
        }
    }
    let everyone: Vec<u32> = description.nodes.iter().map(|node| node.id).collect();
    let mut initial = BTreeSet::new();
    description.subgroups.clear();
    for group in &init.groups {
        if let Some(outsider) = group.senders.iter().find(|sender| !group.members.contains(sender))
        {
            let what = format!("{outsider} sends to {} but is not a member of it", group.group);
            return Err(StartRefusal::Unsupported(what));
        }
        let (members, senders) = (ids(&group.members)?, ids(&group.senders)?);
        initial.extend(members.iter().copied());
        // If there is only one group, any node may become a member later, and send. The suite lists
        // the initial members.
        let is_only = init.groups.len() == 1;
        let members = if is_only { everyone.clone() } else { members };
        let senders = if is_only { everyone.clone() } else { senders };
        let large_max = init.limits.message_bytes_max.max(init.limits.huge_bytes_max);
        description.subgroups.push(SubgroupDescription {
            members: Some(members),
            senders: Some(senders),
            message_max: SMALL_MAX,
            large_max: u64::from(large_max),
            logged: is_logged,
            ..SubgroupDescription::named(&group.group)
        });
    }
    description.initial = initial.into_iter().collect();
    description.complete().map_err(Failure::from)?;
    Ok(description)
}

/// Returns a port for each node, chosen by the first member that starts.
pub(super) fn ports(init: &Init) -> io::Result<Vec<u16>> {
    std::fs::create_dir_all(&init.shared)?;
    let path = init.shared.join("tramontane.ports");
    let draft = init.shared.join(format!("tramontane.ports.{}", std::process::id()));
    let chosen: Vec<u16> = free_addresses(init.nodes.len())?.iter().map(SocketAddr::port).collect();
    std::fs::write(&draft, serde_json::to_vec(&chosen)?)?;
    // The first member has chosen for all, and a file that exists is complete.
    let linked = std::fs::hard_link(&draft, &path);
    std::fs::remove_file(&draft)?;
    if let Err(error) = linked
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(error);
    }
    Ok(serde_json::from_slice(&std::fs::read(&path)?)?)
}

/// Returns a group name derived from the shared folder: the members of one run share it, and no
/// other run uses it.
pub(super) fn name_of_run(init: &Init) -> Result<GroupName, Failure> {
    let folder = init.shared.as_os_str().as_encoded_bytes();
    let name = format!("conformance-{:016x}", xxhash_rust::xxh3::xxh3_64(folder));
    GroupName::new(&name).map_err(Failure::from)
}
