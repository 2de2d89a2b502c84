//! An overlay as its file describes it: groups in a tree, and the replicas of each group.
//!
//! All processes have the same file, and derive the same values from it: the ids of groups, by
//! their order; the node ids of replicas and clients ([`Places`](super::Places)); and the digest
//! with which two processes check that they have the same file.

mod digest;
#[cfg(test)]
mod tests;

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
use crate::rdma::DeviceOptions;
use crate::toml_text::{WrongLine, parse};

/// The maximum number of concurrent clients. Each replica has memory for every one of them.
pub const CLIENTS_MAX: u16 = 1_024;

/// The maximum of `answer_max`, in bytes. Each replica keeps a window of answers for each client.
pub const ANSWER_MAX: u32 = 64 << 10;

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
    #[serde(default = "on_by_default")]
    pub batching: bool,
    /// Whether messages are passed on to children while their own group is still replicating them.
    /// If false, they are passed on once they have been decided, as in the paper.
    #[serde(default = "on_by_default")]
    pub pass_on_early: bool,
    /// Whether replicas save their logs to a disk, so that a group continues after all its replicas
    /// have crashed. Each replica then needs a data folder.
    #[serde(default)]
    pub durable: bool,
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
#[serde(untagged, expecting = "neither a number of replicas, nor a list of their addresses")]
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
const fn on_by_default() -> bool {
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
        let mut description: Self = parse(text).map_err(|wrong| {
            let WrongLine { line, text } = wrong;
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
            batching: on_by_default(),
            pass_on_early: on_by_default(),
            durable: false,
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
        if self.durable && self.references_from.is_some() {
            return Err(DescriptionError::DurableReferences);
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
