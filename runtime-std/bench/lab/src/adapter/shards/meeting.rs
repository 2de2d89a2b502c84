//! The overlay of one run of the suite, and a node's role in it.
//!
//! Everything is derived from the fields that are the same in every `init` of a run: the groups and
//! their members, in order. So all nodes have the same overlay, whenever they start.

use std::path::PathBuf;
use std::time::Duration;

use crate::adapter::meeting::{name_of_run, ports};
use crate::adapter::protocol::{Init, RunGroup};
use crate::adapter::refusal::{StartRefusal, node_id, not_understood};
use tramontane_local::exit::Failure;
use tramontane_local::shard_trees::Tree;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::rdma::DeviceOptions;
use tramontane_runtime::shards::{Description, GroupDescription, Places, ReplicaId, Replicas};

/// Interval between heartbeats.
const HEARTBEAT_MS: u64 = 20;

/// Time without a heartbeat after which a replica is suspected: short compared with the time that
/// the driver allows for a change of leader, but as long as the driver's deadline permits on a slow
/// machine.
const FAILURE_TIMEOUT_MS_MAX: u64 = 1_000;
const FAILURE_TIMEOUTS_PER_DEADLINE: u64 = 10;

/// Number of log entries, small enough that a run reuses every entry.
const LOG_ENTRIES: u32 = 128;
const PARENT_WINDOW: u32 = 32;

/// The overlay settings of the command line.
#[derive(Clone, Debug)]
pub(in crate::adapter) struct Setting {
    pub(in crate::adapter) tree: Tree,
    pub(in crate::adapter) fabric: Carrier,
    pub(in crate::adapter) device: DeviceOptions,
    pub(in crate::adapter) references_from: Option<u32>,
    /// Whether replicas save everything in their storage folders.
    pub(in crate::adapter) durable: bool,
}

/// The role of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodePart {
    Replica(ReplicaId),
    Client,
}

/// A run of the suite, from one node's view.
pub(super) struct ShardsRun {
    pub(super) description: Description,
    pub(super) places: Places,
    pub(super) part: NodePart,
    pub(super) time_limit: Duration,
    /// The folder in which a durable replica saves everything.
    pub(super) data: Option<PathBuf>,
}

impl ShardsRun {
    /// Creates the run of an `init`.
    pub(super) fn of(init: &Init, setting: Setting) -> Result<Self, StartRefusal> {
        let groups = groups_of(init);
        check_disjoint(init, &groups)?;
        let data = setting.durable.then(|| init.storage.clone());
        let description = describe(init, &groups, setting)?;
        let places = Places::new(&description, description.overlay().map_err(Failure::from)?);
        let part = part_of(init, &groups, &places)?;
        let time_limit = Duration::from_millis(init.limits.deadline_ms);
        Ok(Self { description, places, part, time_limit, data })
    }
}

/// Returns the names of the replicas of each group, by rank.
fn groups_of(init: &Init) -> Vec<(&RunGroup, &[String])> {
    init.groups.iter().map(|group| (group, replicas_of(group))).collect()
}

fn replicas_of(group: &RunGroup) -> &[String] {
    // Drivers of earlier versions send only the running members.
    if group.all_members.is_empty() { &group.members } else { &group.all_members }
}

/// Checks that no node is in two groups, and that replicas do not send.
fn check_disjoint(init: &Init, groups: &[(&RunGroup, &[String])]) -> Result<(), StartRefusal> {
    for node in init.nodes.iter().map(|node| &node.node) {
        let own = groups.iter().filter(|(_, members)| members.contains(node)).count();
        if own > 1 {
            return Err(StartRefusal::Unsupported(format!("{node} is a member of two groups")));
        }
        if own == 1 && groups.iter().any(|(group, _)| group.senders.contains(node)) {
            return Err(StartRefusal::Unsupported(format!(
                "{node} is a replica, so it cannot send"
            )));
        }
    }
    Ok(())
}

fn describe(
    init: &Init,
    groups: &[(&RunGroup, &[String])],
    setting: Setting,
) -> Result<Description, StartRefusal> {
    let Setting { tree, fabric, device, references_from, durable } = setting;
    let parents = tree.parents();
    if groups.len() > parents.len() {
        let what =
            format!("there are {} groups, but the tree has only {}", groups.len(), parents.len());
        return Err(StartRefusal::Unsupported(what));
    }
    let mut description = Description::local(name_of_run(init)?.as_str(), &[], 0);
    description.fabric = fabric;
    description.rdma = device;
    description.references_from = references_from;
    description.durable = durable;
    // The suite uses separate networks.
    description.allow_clear = true;
    description.heartbeat_ms = HEARTBEAT_MS;
    description.failure_timeout_ms =
        (init.limits.deadline_ms / FAILURE_TIMEOUTS_PER_DEADLINE).min(FAILURE_TIMEOUT_MS_MAX);
    // A client that was cut off for a while may continue.
    description.client_lease_ms = init.limits.deadline_ms;
    description.client_window = init.limits.window;
    description.parent_window = PARENT_WINDOW;
    description.log_entries = LOG_ENTRIES;
    description.message_max = init.limits.message_bytes_max;
    let ports = match fabric {
        Carrier::SharedMemory => Vec::new(),
        Carrier::Tcp | Carrier::Verbs => {
            ports(init).map_err(|error| Failure::system("cannot choose ports", &error))?
        }
    };
    let name = |group: usize| groups.get(group).map(|(group, _)| group.group.clone());
    for ((group, members), parent) in groups.iter().zip(parents) {
        description.groups.push(GroupDescription {
            name: group.group.clone(),
            parent: parent.and_then(name),
            replicas: replicas(init, members, fabric, &ports)?,
        });
    }
    Ok(description)
}

/// Returns the number of replicas, or the addresses at which they listen.
fn replicas(
    init: &Init,
    members: &[String],
    fabric: Carrier,
    ports: &[u16],
) -> Result<Replicas, StartRefusal> {
    if fabric == Carrier::SharedMemory {
        return Ok(Replicas::Count(u16::try_from(members.len()).unwrap_or(u16::MAX)));
    }
    let address_of = |member: &String| -> Result<_, StartRefusal> {
        let node = node_id(init, member)? as usize;
        let (Some(named), Some(port)) = (init.nodes.get(node), ports.get(node)) else {
            return Err(not_understood(format_args!("no address of {member}")).into());
        };
        let address = format!("{}:{port}", named.address);
        Ok(address.parse().map_err(|_| not_understood(format_args!("\"{address}\"")))?)
    };
    Ok(Replicas::Addresses(members.iter().map(address_of).collect::<Result<_, _>>()?))
}

fn part_of(
    init: &Init,
    groups: &[(&RunGroup, &[String])],
    places: &Places,
) -> Result<NodePart, StartRefusal> {
    for (group, members) in groups {
        if let Some(rank) = members.iter().position(|member| *member == init.node) {
            let name = format!("{}.{rank}", group.group);
            return Ok(NodePart::Replica(places.replica_named(&name).map_err(Failure::from)?));
        }
    }
    Ok(NodePart::Client)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::protocol::Command;
    use tramontane_local::shard_trees::Tree;
    use tramontane_runtime::rdma::DeviceOptions;
    use tramontane_runtime::shards::GroupId;

    /// Returns an `init` with two groups of three and two clients, for one of the nodes.
    fn init(node: &str, senders: &str, running: &str) -> Init {
        let nodes: Vec<String> =
            (0..8).map(|n| format!(r#"{{"node":"n{n}","address":"127.0.0.1"}}"#)).collect();
        let text = format!(
            r#"{{"type":"init","protocol":1,"node":"{node}","inc":1,"nodes":[{}],"groups":[
            {{"group":"g0","members":[{running}],"senders":[{senders}],"all_members":["n5","n0","n2"]}},
            {{"group":"g1","members":["n7","n1","n3"],"senders":[],"all_members":["n7","n1","n3"]}}],
            "limits":{{"message_bytes_max":10240,"window":64,"deadline_ms":10000}},"shared":"/s","storage":"/t"}}"#,
            nodes.join(",")
        );
        match serde_json::from_str(&text) {
            Ok(Command::Init(init)) => init,
            other => panic!("{other:?}"),
        }
    }

    fn run(init: &Init) -> Result<ShardsRun, StartRefusal> {
        let setting = Setting {
            tree: Tree::Base,
            fabric: Carrier::SharedMemory,
            device: DeviceOptions::default(),
            references_from: None,
            durable: false,
        };
        ShardsRun::of(init, setting)
    }

    #[test]
    fn all_nodes_derive_the_same_overlay() {
        let all = ["n5", "n0", "n2", "n7", "n1", "n3", "n4", "n6"];
        let runs: Vec<ShardsRun> = all
            .iter()
            .zip([r#""n5","n0","n2""#, r#""n0""#].iter().cycle())
            .map(|(node, running)| run(&init(node, r#""n4","n6""#, running)).ok().expect("a run"))
            .collect();
        for run in &runs {
            assert_eq!(run.description.digest(), runs[0].description.digest());
        }
        let names = runs.iter().map(|run| match run.part {
            NodePart::Replica(replica) => run.places.name(replica),
            NodePart::Client => "client".to_owned(),
        });
        let names: Vec<String> = names.collect();
        let expected = ["g0.0", "g0.1", "g0.2", "g1.0", "g1.1", "g1.2", "client", "client"];
        assert_eq!(names, expected);
        assert_eq!(runs[0].places.overlay().parent(GroupId(1)), Some(GroupId(0)));
    }

    #[test]
    fn requests_beyond_shards_are_unsupported() {
        let is_unsupported = |init: &Init| matches!(run(init), Err(StartRefusal::Unsupported(_)));
        assert!(is_unsupported(&init("n0", r#""n1""#, "")), "a replica that sends");
        let mut overlapping = init("n0", "", "");
        overlapping.groups[1].all_members.push("n0".to_owned());
        assert!(is_unsupported(&overlapping), "a node in two groups");
        let mut many = init("n0", "", "");
        for group in 2..9 {
            let members = Vec::new();
            let group = format!("g{group}");
            many.groups.push(RunGroup {
                group,
                senders: Vec::new(),
                all_members: vec![format!("m{}", many.groups.len())],
                members,
            });
        }
        assert!(is_unsupported(&many), "more groups than a tree has");
    }
}
