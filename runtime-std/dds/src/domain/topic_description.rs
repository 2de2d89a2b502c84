//! Topic descriptions in a domain file.

use serde::{Deserialize, Serialize};
use tramontane::SubgroupDescription;
use tramontane::group::WINDOW_DEFAULT;

use super::level::Level;
use crate::error::DdsError;
use crate::qos::{History, ResourceLimits};
use crate::topic::{Keep, TopicStore};
use crate::wire::{ANNOUNCEMENT_MAX, HEADER_MAX};

/// Default for the maximum sample size, in bytes of CDR.
pub const SAMPLE_MAX_DEFAULT: u32 = 10_240;

/// Default number of samples per instance that the members keep for late readers.
const DEPTH_DEFAULT: u32 = 1;

/// A topic: its name and type, its publishers and subscribers, and its guarantees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopicDescription {
    /// The topic's name.
    pub name: String,
    /// The name of the topic's type. Programs that use another type for the topic are refused.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The topic's guarantees.
    #[serde(default)]
    pub level: Level,
    /// The nodes that may have writers; `None` permits all.
    #[serde(default)]
    pub publishers: Option<Vec<u32>>,
    /// The nodes that may have readers; `None` permits all.
    #[serde(default)]
    pub subscribers: Option<Vec<u32>>,
    /// Maximum number of samples in flight per publishing node.
    #[serde(default = "window_default")]
    pub window: u32,
    /// Maximum sample size, in bytes of CDR.
    #[serde(default = "sample_max_default")]
    pub sample_max: u32,
    /// DDS's durability service: the number of samples per instance that the members keep for late
    /// readers, at the levels volatile and logged. `None` keeps all of them, up to `keep_samples`.
    #[serde(default = "depth_default")]
    pub keep_depth: Option<u32>,
    /// Maximum number of samples of all instances that the members keep. The oldest is dropped
    /// first.
    #[serde(default)]
    pub keep_samples: Option<u32>,
    /// DDS's topic data: a text for readers and writers.
    #[serde(default)]
    pub topic_data: String,
    /// Whether external participants may write and read the topic. If so, each message takes up to
    /// 25 more bytes, and members keep the last 16 MiB of messages for them.
    #[serde(default)]
    pub clients: bool,
}

pub(super) const fn window_default() -> u32 {
    WINDOW_DEFAULT
}
pub(super) const fn sample_max_default() -> u32 {
    SAMPLE_MAX_DEFAULT
}
#[allow(clippy::unnecessary_wraps, reason = "the field's type")]
const fn depth_default() -> Option<u32> {
    Some(DEPTH_DEFAULT)
}

impl TopicDescription {
    /// Creates a topic with this name and type. Its level is atomic, and every node may publish and
    /// subscribe.
    #[must_use]
    pub fn new(name: &str, type_name: &str) -> Self {
        Self {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            level: Level::default(),
            publishers: None,
            subscribers: None,
            window: WINDOW_DEFAULT,
            sample_max: SAMPLE_MAX_DEFAULT,
            keep_depth: Some(DEPTH_DEFAULT),
            keep_samples: None,
            topic_data: String::new(),
            clients: false,
        }
    }

    /// Sets the level.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Sets whether external participants may write and read the topic.
    #[must_use]
    pub fn clients(mut self, clients: bool) -> Self {
        self.clients = clients;
        self
    }

    /// Restricts publishing to these nodes.
    #[must_use]
    pub fn publishers(mut self, nodes: impl IntoIterator<Item = u32>) -> Self {
        self.publishers = Some(nodes.into_iter().collect());
        self
    }

    /// Restricts subscribing to these nodes.
    #[must_use]
    pub fn subscribers(mut self, nodes: impl IntoIterator<Item = u32>) -> Self {
        self.subscribers = Some(nodes.into_iter().collect());
        self
    }

    /// Sets the maximum number of samples in flight per publishing node.
    #[must_use]
    pub fn window(mut self, samples: u32) -> Self {
        self.window = samples;
        self
    }

    /// Sets the maximum sample size, in bytes of CDR.
    #[must_use]
    pub fn sample_max(mut self, bytes: u32) -> Self {
        self.sample_max = bytes;
        self
    }

    /// Sets the samples that are kept for late readers.
    #[must_use]
    pub fn keep(mut self, history: History, limits: ResourceLimits) -> Self {
        self.keep_depth = match history {
            History::KeepLast(depth) => Some(depth),
            History::KeepAll => None,
        };
        self.keep_samples = limits.max_samples;
        self
    }

    /// Refuses a topic whose settings keep no samples, or keep all samples forever.
    pub(crate) fn check_keep(&self) -> Result<(), DdsError> {
        if self.keep_depth == Some(0) || (self.keep_depth.is_none() && self.keep_samples.is_none())
        {
            return Err(DdsError::Domain(format!(
                "topic \"{}\" would keep no samples, or all samples forever; set keep_depth or \
                 keep_samples to 1 or more",
                self.name
            )));
        }
        Ok(())
    }

    /// Returns the fields in which another description of the topic differs, by their names in
    /// domain files.
    pub(crate) fn differing(&self, other: &Self) -> Vec<&'static str> {
        let Self {
            name,
            type_name,
            level,
            publishers,
            subscribers,
            window,
            sample_max,
            keep_depth,
            keep_samples,
            topic_data,
            clients,
        } = self;
        let differences = [
            ("name", *name != other.name),
            ("type", *type_name != other.type_name),
            ("level", *level != other.level),
            ("publishers", *publishers != other.publishers),
            ("subscribers", *subscribers != other.subscribers),
            ("window", *window != other.window),
            ("sample_max", *sample_max != other.sample_max),
            ("keep_depth", *keep_depth != other.keep_depth),
            ("keep_samples", *keep_samples != other.keep_samples),
            ("topic_data", *topic_data != other.topic_data),
            ("clients", *clients != other.clients),
        ];
        differences.into_iter().filter(|(_, differs)| *differs).map(|(field, _)| field).collect()
    }

    /// Returns the settings for keeping samples for late readers, or `None` at levels that keep
    /// none.
    pub(crate) fn store(&self) -> Option<TopicStore> {
        let index = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
        let keep =
            Keep { depth: self.keep_depth.map(index), samples: self.keep_samples.map(index) };
        self.level.keeps().then(|| TopicStore::new(keep))
    }

    /// Returns the subgroup that carries the topic. Its members are the topic's publishers and
    /// subscribers (DDS-1).
    pub(super) fn subgroup(&self, all: &[u32]) -> Result<SubgroupDescription, DdsError> {
        self.check_keep()?;
        let senders = self.publishers.clone().unwrap_or_else(|| all.to_vec());
        let subscribers = self.subscribers.clone().unwrap_or_else(|| all.to_vec());
        // Members are in the order of the nodes. Unknown nodes come last, and the group reports
        // them.
        let mut members: Vec<u32> = all
            .iter()
            .copied()
            .filter(|node| senders.contains(node) || subscribers.contains(node))
            .collect();
        for node in senders.iter().chain(&subscribers) {
            if !members.contains(node) {
                members.push(*node);
            }
        }
        Ok(SubgroupDescription {
            members: Some(members),
            senders: Some(senders),
            window: self.window,
            message_max: message_max(self.sample_max),
            unordered: self.level == Level::Unordered,
            logged: self.level == Level::Logged,
            clients: self.clients,
            // Samples that are kept only in memory disappear with the topic's last member, and the
            // next member starts empty.
            restart_empty: self.level != Level::Logged,
            ..SubgroupDescription::named(&self.name)
        })
    }
}

/// Returns the maximum message size of a topic whose samples have at most this size.
pub(super) fn message_max(sample_max: u32) -> u32 {
    let overhead = u32::try_from(HEADER_MAX).unwrap_or(u32::MAX);
    sample_max.saturating_add(overhead).max(ANNOUNCEMENT_MAX)
}
