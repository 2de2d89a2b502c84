//! An overlay as its file describes it: groups in a tree, and the replicas of each group.
//!
//! All processes have the same file, and derive the same values from it: the ids of groups, by
//! their order; the node ids of replicas and clients ([`Places`](super::Places)); and the digest
//! with which two processes check that they have the same file.

use std::collections::BTreeSet;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tramontane_control::HostAddress;
use tramontane_core::ids::GroupId;
use tramontane_core::tram::{GROUPS_MAX, Group, Limits, Overlay, OverlayError, ReplicaLinks};

use super::description_error::DescriptionError;
use crate::carrier::Carrier;
use crate::group::description::digest::{Fields, hash};
use crate::rdma::DeviceOptions;

/// The maximum number of concurrent clients. Each replica has memory for every one of them.
pub const CLIENTS_MAX: u16 = 1_024;

/// The maximum of `answer_max`, in bytes. Each replica keeps a window of answers for each client.
pub const ANSWER_MAX: u32 = 64 << 10;

/// The fields of an overlay that are compared: those of its file, and the format of the rows that
/// this program derives from them.
const FIELDS: Fields<16> = Fields {
    names: [
        "name",
        "fabric",
        "heartbeat_ms",
        "failure_timeout_ms",
        "client_lease_ms",
        "clients_max",
        "client_window",
        "parent_window",
        "log_entries",
        "message_max",
        "references_from",
        "answer_max",
        "batching",
        "pass_on_early",
        "groups",
        "the format of rows",
    ],
    bits: 3,
};

/// An overlay file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The overlay's name, which must be the same in all processes.
    pub name: String,
    /// The fabric that carries the overlay's writes.
    #[serde(default)]
    pub fabric: Carrier,
    /// For shared memory: the folder below which the processes meet; `/dev/shm` if omitted. Each
    /// process may have its own path to this folder.
    #[serde(default)]
    pub shm_dir: Option<PathBuf>,
    /// The file with the key that all processes share. A relative path is resolved against the
    /// folder of the overlay file.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// Whether unencrypted traffic is allowed at addresses that are not loopback.
    #[serde(default)]
    pub allow_clear: bool,
    /// For RDMA: the device, and how it is used. Each process chooses its own.
    #[serde(default)]
    pub rdma: DeviceOptions,
    /// The heartbeat interval of a replica, in ms.
    #[serde(default = "heartbeat_default")]
    pub heartbeat_ms: u64,
    /// The time without a heartbeat after which a replica no longer leads, in ms. It must exceed
    /// the duration of the longest upcall.
    #[serde(default = "failure_timeout_default")]
    pub failure_timeout_ms: u64,
    /// The time without a connection after which a client's place may be given to another client,
    /// in ms.
    #[serde(default = "client_lease_default")]
    pub client_lease_ms: u64,
    /// The maximum number of concurrent clients.
    #[serde(default = "clients_default")]
    pub clients_max: u16,
    /// The maximum number of unanswered messages per client.
    #[serde(default = "client_window_default")]
    pub client_window: u32,
    /// The maximum number of messages by which a parent may be ahead of a replica of its child.
    #[serde(default = "parent_window_default")]
    pub parent_window: u32,
    /// The number of entries in a replica's log.
    #[serde(default = "log_entries_default")]
    pub log_entries: u32,
    /// The maximum message size, in bytes.
    #[serde(default = "message_max_default")]
    pub message_max: u32,
    /// The minimum size, in bytes, of messages that are passed by reference: clients write such
    /// messages to every replica that should have them, and leaders pass on only the headers. If
    /// `None`, leaders copy all messages.
    #[serde(default)]
    pub references_from: Option<u32>,
    /// The maximum length of an answer in bytes, in addition to its one byte. Each replica keeps
    /// `client_window` answers for each of `clients_max` clients.
    #[serde(default)]
    pub answer_max: u32,
    /// Whether everything available is ordered at once. If false, one message is ordered at a time,
    /// as in the paper.
    #[serde(default = "batching_default")]
    pub batching: bool,
    /// Whether messages are passed on to children while their own group is still replicating them.
    /// If false, they are passed on once they have been decided, as in the paper.
    #[serde(default = "pass_on_early_default")]
    pub pass_on_early: bool,
    /// The groups, each with its parent. Their order must be the same in all processes.
    pub groups: Vec<GroupDescription>,
}

/// A group of the overlay file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupDescription {
    /// Its name.
    pub name: String,
    /// The group that passes messages on to this one; `None` for the root.
    #[serde(default)]
    pub parent: Option<String>,
    /// The group's replicas, by rank.
    pub replicas: Replicas,
}

/// The replicas of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Replicas {
    /// The number of replicas. Used over shared memory.
    Count(u16),
    /// The address of each replica. Used over TCP and RDMA.
    Addresses(Vec<HostAddress>),
}

impl Replicas {
    /// Returns the number of replicas.
    #[must_use]
    pub fn count(&self) -> usize {
        match self {
            Self::Count(count) => usize::from(*count),
            Self::Addresses(addresses) => addresses.len(),
        }
    }
}

const fn heartbeat_default() -> u64 {
    10
}
const fn failure_timeout_default() -> u64 {
    200
}
const fn client_lease_default() -> u64 {
    2_000
}
const fn clients_default() -> u16 {
    16
}
const fn client_window_default() -> u32 {
    64
}
const fn parent_window_default() -> u32 {
    256
}
const fn log_entries_default() -> u32 {
    1_024
}
const fn message_max_default() -> u32 {
    1_024
}
const fn batching_default() -> bool {
    true
}
const fn pass_on_early_default() -> bool {
    true
}

impl Description {
    /// Reads an overlay file, and checks all of it. Relative paths are resolved against the folder
    /// of the file.
    ///
    /// # Errors
    /// [`DescriptionError`].
    pub fn read(path: &Path) -> Result<Self, DescriptionError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| DescriptionError::Read { path: path.to_path_buf(), source })?;
        Self::parse(path, &text)
    }

    /// Parses the text of an overlay file.
    ///
    /// # Errors
    /// [`DescriptionError`].
    pub fn parse(path: &Path, text: &str) -> Result<Self, DescriptionError> {
        let mut description: Self = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let text = error.message().trim_end().replace('\n', " ");
            DescriptionError::Parse { path: path.to_path_buf(), line, text }
        })?;
        if let Some(folder) = path.parent() {
            let beside = [&mut description.key_file, &mut description.shm_dir];
            for own in beside.into_iter().flatten() {
                *own = folder.join(&*own);
            }
        }
        description.overlay()?;
        Ok(description)
    }

    /// Describes a tree of groups with `replicas` replicas each, over shared memory. `parents`
    /// contains the index of each group's parent.
    #[must_use]
    pub fn local(name: &str, parents: &[Option<usize>], replicas: u16) -> Self {
        let group_name = |index: usize| format!("g{}", index + 1);
        let groups = parents.iter().enumerate().map(|(index, parent)| GroupDescription {
            name: group_name(index),
            parent: parent.map(group_name),
            replicas: Replicas::Count(replicas),
        });
        Self {
            name: name.to_owned(),
            fabric: Carrier::default(),
            shm_dir: None,
            key_file: None,
            allow_clear: false,
            rdma: DeviceOptions::default(),
            heartbeat_ms: heartbeat_default(),
            failure_timeout_ms: failure_timeout_default(),
            client_lease_ms: client_lease_default(),
            clients_max: clients_default(),
            client_window: client_window_default(),
            parent_window: parent_window_default(),
            log_entries: log_entries_default(),
            message_max: message_max_default(),
            references_from: None,
            answer_max: 0,
            batching: batching_default(),
            pass_on_early: pass_on_early_default(),
            groups: groups.collect(),
        }
    }

    /// Moves the overlay to TCP on this machine: each replica listens on a free loopback port.
    ///
    /// # Errors
    /// Returns an error of the operating system.
    pub fn over_loopback(mut self) -> io::Result<Self> {
        self.fabric = Carrier::Tcp;
        // All ports are held at the same time, so that no two are equal.
        let mut held = Vec::new();
        for group in &mut self.groups {
            let mut addresses = Vec::new();
            for _ in 0..group.replicas.count() {
                let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
                addresses.push(listener.local_addr()?.into());
                held.push(listener);
            }
            group.replicas = Replicas::Addresses(addresses);
        }
        Ok(self)
    }

    /// Checks everything, and returns the overlay in the form that the core uses.
    ///
    /// # Errors
    /// Returns [`DescriptionError`] with the name of the invalid group.
    pub fn overlay(&self) -> Result<Overlay, DescriptionError> {
        self.check()?;
        let mut groups = Vec::with_capacity(self.groups.len());
        for group in &self.groups {
            let parent = match &group.parent {
                None => None,
                Some(parent) => {
                    Some(self.group(parent).ok_or_else(|| DescriptionError::UnknownParent {
                        group: group.name.clone(),
                        parent: parent.clone(),
                    })?)
                }
            };
            let replicas = u16::try_from(group.replicas.count()).unwrap_or(u16::MAX);
            groups.push(Group { parent, replicas });
        }
        let limits = Limits {
            clients: self.clients_max,
            log_entries: self.log_entries,
            client_window: self.client_window,
            parent_window: self.parent_window,
            payload_max: self.message_max,
        };
        let overlay = Overlay::new(&groups, limits).map_err(|error| self.explain(error))?;
        self.check_views(&overlay)?;
        let overlay = overlay.with_references(self.references_from.unwrap_or(0));
        Ok(overlay.with_answers(self.answer_max))
    }

    /// Returns the id of the group with this name.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<GroupId> {
        let index = self.groups.iter().position(|group| group.name == name)?;
        u16::try_from(index).ok().map(GroupId)
    }

    /// Returns the name of a group, or an empty string if there is no such group.
    #[must_use]
    pub fn group_name(&self, group: GroupId) -> &str {
        self.groups.get(group.index()).map_or("", |group| &group.name)
    }

    /// Returns the digest of everything that must be the same in all processes, including the
    /// format of their rows. Keys, folders and devices are not included, because each process
    /// chooses its own.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let Self { shm_dir: _, key_file: _, allow_clear: _, rdma: _, .. } = self;
        let Self { name, fabric, heartbeat_ms, failure_timeout_ms, client_lease_ms, .. } = self;
        let Self { clients_max, client_window, parent_window, log_entries, message_max, .. } = self;
        let Self { references_from, answer_max, batching, pass_on_early, groups, .. } = self;
        // Device options that do not suit the fabric do not change the identity of the overlay.
        let alike = Self { rdma: DeviceOptions::default(), ..self.clone() };
        FIELDS.digest(&[
            hash(name),
            hash(fabric),
            hash(heartbeat_ms),
            hash(failure_timeout_ms),
            hash(client_lease_ms),
            hash(clients_max),
            hash(client_window),
            hash(parent_window),
            hash(log_entries),
            hash(message_max),
            hash(references_from),
            hash(answer_max),
            hash(batching),
            hash(pass_on_early),
            hash(groups),
            alike.overlay().map_or(0, |overlay| hash(&overlay.digest())),
        ])
    }

    /// Returns the fields of an overlay file in which two digests are known to differ.
    pub(super) fn differing(own: u64, other: u64) -> String {
        let names = FIELDS.differing(own, other);
        // Most fields also change the rows, and are then the actual cause.
        match names.strip_suffix(", the format of rows") {
            Some(causes) => causes.to_owned(),
            None => names,
        }
    }

    fn check(&self) -> Result<(), DescriptionError> {
        if !self.fabric.is_rdma() && self.rdma != DeviceOptions::default() {
            return Err(DescriptionError::NotOnRdma);
        }
        let times = [self.heartbeat_ms, self.client_lease_ms];
        let is_too_soon = self.failure_timeout_ms < self.heartbeat_ms.saturating_mul(3);
        if times.contains(&0) || is_too_soon {
            return Err(DescriptionError::Times);
        }
        if self.clients_max == 0 || self.clients_max > CLIENTS_MAX {
            return Err(DescriptionError::Clients(self.clients_max));
        }
        if let Some(from) = self.references_from
            && (from == 0 || from > self.message_max)
        {
            return Err(DescriptionError::References { from, message_max: self.message_max });
        }
        if self.answer_max > ANSWER_MAX {
            return Err(DescriptionError::Answers(self.answer_max));
        }
        if self.groups.len() > GROUPS_MAX {
            return Err(DescriptionError::TooManyGroups(self.groups.len()));
        }
        let (mut names, mut addresses) = (BTreeSet::new(), BTreeSet::new());
        for group in &self.groups {
            check_name(&group.name)?;
            if !names.insert(&group.name) {
                return Err(DescriptionError::DuplicateGroup(group.name.clone()));
            }
            match (&group.replicas, self.fabric.is_on_one_host()) {
                (Replicas::Count(_), true) => {}
                (Replicas::Count(_), false) => {
                    return Err(DescriptionError::NoAddresses(group.name.clone()));
                }
                (Replicas::Addresses(_), true) => {
                    return Err(DescriptionError::Addresses(group.name.clone()));
                }
                (Replicas::Addresses(listed), false) => {
                    if let Some(wrong) = listed.iter().find(|address| !address.is_destination()) {
                        return Err(DescriptionError::NoDestination(wrong.clone()));
                    }
                    if let Some(twice) = listed.iter().find(|address| !addresses.insert(*address)) {
                        return Err(DescriptionError::DuplicateAddress(twice.clone()));
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks that each replica can have a view with every process that it is linked to.
    fn check_views(&self, overlay: &Overlay) -> Result<(), DescriptionError> {
        let (views, clients) = (self.fabric.views_max(), usize::from(self.clients_max));
        for group in overlay.all().iter() {
            let links = ReplicaLinks::of(overlay, group).len();
            if links > views {
                return Err(DescriptionError::Views {
                    group: self.group_name(group).to_owned(),
                    fabric: self.fabric,
                    clients: self.clients_max,
                    most: (views + clients).saturating_sub(links),
                });
            }
        }
        Ok(())
    }

    /// Converts the core's error to one with names.
    fn explain(&self, error: OverlayError) -> DescriptionError {
        let name = |group: GroupId| self.group_name(group).to_owned();
        match error {
            OverlayError::NoGroups => DescriptionError::NoGroups,
            OverlayError::TooManyGroups => DescriptionError::TooManyGroups(self.groups.len()),
            OverlayError::Replicas(group) => DescriptionError::Replicas(name(group)),
            OverlayError::UnknownParent(group) => {
                DescriptionError::UnknownParent { group: name(group), parent: String::new() }
            }
            OverlayError::Cycle(group) => DescriptionError::Cycle(name(group)),
            OverlayError::SecondRoot(group) => DescriptionError::SecondRoot(name(group)),
            OverlayError::TooManyChildren(group) => DescriptionError::TooManyChildren(name(group)),
            OverlayError::Limits => DescriptionError::Sizes,
        }
    }
}

fn check_name(name: &str) -> Result<(), DescriptionError> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if (1..=64).contains(&name.len()) && name.bytes().all(is_allowed) {
        Ok(())
    } else {
        Err(DescriptionError::Name(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tramontane_core::tram::Destinations;

    const BASE: [Option<usize>; 8] =
        [None, Some(0), Some(0), Some(1), Some(1), Some(2), Some(2), Some(3)];

    fn parsed(text: &str) -> Result<Description, DescriptionError> {
        Description::parse(Path::new("/somewhere/overlay.toml"), text)
    }

    /// Describes an overlay with these lines for its groups.
    fn groups(lines: &str) -> Result<Description, DescriptionError> {
        parsed(&format!("name = \"bank\"\n{lines}"))
    }

    #[test]
    fn error_names_group_with_invalid_parent() {
        let group = |name: &str, parent: &str| {
            let parent =
                if parent.is_empty() { String::new() } else { format!("parent = \"{parent}\"\n") };
            format!("[[groups]]\nname = \"{name}\"\n{parent}replicas = 3\n")
        };
        let error = |lines: &[(&str, &str)]| {
            let lines: String = lines.iter().map(|(name, parent)| group(name, parent)).collect();
            groups(&lines).expect_err("no tree").to_string()
        };
        let cycle = error(&[("a", ""), ("b", "c"), ("c", "b")]);
        assert!(cycle.contains("group \"b\" is its own ancestor"), "{cycle}");
        let twice = error(&[("a", ""), ("b", "a"), ("b", "a")]);
        assert!(twice.contains("group \"b\" is listed twice"), "{twice}");
        let unknown = error(&[("a", ""), ("b", "x")]);
        assert!(unknown.contains("of group \"b\" is \"x\", which does not exist"), "{unknown}");
        let second = error(&[("a", ""), ("b", "")]);
        assert!(second.contains("group \"b\" has no parent"), "{second}");
        let name = error(&[("a.1", "")]);
        assert!(name.contains("\"a.1\" is not a valid group name"), "{name}");
        assert!(matches!(groups("groups = []"), Err(DescriptionError::NoGroups)));
        let none = "[[groups]]\nname = \"a\"\nreplicas = 0\n";
        assert!(matches!(groups(none), Err(DescriptionError::Replicas(name)) if name == "a"));
        let wide: Vec<String> = (0..17).map(|child| format!("c{child}")).collect();
        let mut lines = vec![("a", "")];
        lines.extend(wide.iter().map(|child| (child.as_str(), "a")));
        assert!(error(&lines).contains("more than 16 children"));
    }

    #[test]
    fn only_network_fabrics_have_addresses() {
        let over = |fabric: &str, replicas: &str| {
            let group = format!("[[groups]]\nname = \"a\"\nreplicas = {replicas}\n");
            groups(&format!("fabric = \"{fabric}\"\n{group}"))
        };
        let listed = "[\"127.0.0.1:7001\", \"127.0.0.1:7002\"]";
        assert_eq!(over("tcp", listed).expect("right").groups[0].replicas.count(), 2);
        assert!(matches!(over("tcp", "2"), Err(DescriptionError::NoAddresses(_))));
        assert!(matches!(over("shm", listed), Err(DescriptionError::Addresses(_))));
        assert_eq!(over("verbs", listed).expect("right").fabric, Carrier::Verbs);
        assert!(matches!(over("verbs", "2"), Err(DescriptionError::NoAddresses(_))));
        let twice = "[\"127.0.0.1:7001\", \"127.0.0.1:7001\"]";
        assert!(matches!(over("tcp", twice), Err(DescriptionError::DuplicateAddress(_))));
        for wrong in ["0.0.0.0:7000", "[::]:7000", "alpha:0"] {
            let listed = format!("[\"{wrong}\", \"alpha:7001\"]");
            assert!(matches!(over("tcp", &listed), Err(DescriptionError::NoDestination(_))));
        }
        assert!(over("tcp", "[\"alpha:7000\", \"beta:7000\"]").is_ok());
    }

    #[test]
    fn invalid_overlay_sizes_and_times_are_refused() {
        let with =
            |line: &str| groups(&format!("{line}\n[[groups]]\nname = \"a\"\nreplicas = 3\n"));
        assert!(matches!(with("clients_max = 0"), Err(DescriptionError::Clients(0))));
        assert!(matches!(with("clients_max = 1025"), Err(DescriptionError::Clients(1025))));
        assert!(matches!(with("client_window = 0"), Err(DescriptionError::Sizes)));
        assert!(matches!(with("heartbeat_ms = 0"), Err(DescriptionError::Times)));
        let soon = "heartbeat_ms = 10\nfailure_timeout_ms = 29";
        assert!(matches!(with(soon), Err(DescriptionError::Times)));
        let none = with("references_from = 0").expect_err("no message has no bytes").to_string();
        assert!(
            none.contains("references_from is 0; set it to a value from 1 to message_max (1024)"),
            "{none}"
        );
        let long = with("references_from = 65\nmessage_max = 64").expect_err("none is so long");
        assert!(
            long.to_string()
                .contains("references_from is 65; set it to a value from 1 to message_max (64)")
        );
        let word = with("references_from = \"all\"").expect_err("no number").to_string();
        assert!(word.contains("line 2") && !word.contains('\n'), "{word}");
        let error = with("windows = 3").expect_err("no such field").to_string();
        assert!(error.contains("overlay.toml, line 2") && error.contains("windows"), "{error}");
    }

    #[test]
    fn excess_clients_of_fabric_are_refused() {
        let over = |fabric: &str, clients: u16| {
            let listed = "replicas = [\"10.0.0.1:1\", \"10.0.0.2:1\", \"10.0.0.3:1\"]";
            groups(&format!(
                "fabric = \"{fabric}\"\nclients_max = {clients}\n[[groups]]\nname = \"a\"\n{listed}"
            ))
        };
        assert!(over("tcp", CLIENTS_MAX).is_ok());
        let error = over("verbs", CLIENTS_MAX).expect_err("too many views").to_string();
        let words = "over verbs a replica of group \"a\" can have at most 253 clients; lower";
        assert!(error.contains(words), "{error}");
        assert!(over("verbs", 254).is_err() && over("verbs", 253).is_ok());
    }

    #[test]
    fn group_ids_follow_file_order() {
        let description = Description::local("bank", &BASE, 3);
        let overlay = description.overlay().expect("a tree");
        let g8 = description.group("g8").expect("a group");
        assert_eq!((g8, description.group_name(g8)), (GroupId(7), "g8"));
        assert_eq!(overlay.parent(g8), description.group("g4"));
        let both = Destinations::of(g8).with(GroupId(6));
        assert_eq!(overlay.lowest_common_ancestor(both), description.group("g1"));
        assert_eq!(description.group("g9"), None);
    }

    #[test]
    fn reference_size_is_part_of_overlay_digest() {
        let copied = Description::local("bank", &BASE, 3);
        let mut referred = copied.clone();
        referred.references_from = Some(1_024);
        assert_ne!(copied.digest(), referred.digest());
        let [copied, referred] = [copied, referred].map(|one| one.overlay().expect("a tree"));
        assert_eq!((copied.references_from(), referred.references_from()), (0, 1_024));
        assert_ne!(copied.digest(), referred.digest());
    }

    #[test]
    fn only_shared_settings_change_overlay_digest() {
        let own = Description::local("bank", &BASE, 3);
        let mut other = own.clone();
        other.key_file = Some("key".into());
        other.shm_dir = Some("/tmp".into());
        other.allow_clear = true;
        other.rdma.port = Some(2);
        assert_eq!(own.digest(), other.digest());
        let mut renamed = own.clone();
        renamed.groups[7].name = "h8".into();
        for (field, differs) in [
            ("heartbeat_ms", Description { heartbeat_ms: 70, ..own.clone() }),
            ("batching", Description { batching: !own.batching, ..own.clone() }),
            ("groups", renamed),
        ] {
            assert_ne!(own.digest(), differs.digest());
            assert_eq!(Description::differing(own.digest(), differs.digest()), field);
        }
    }
}
