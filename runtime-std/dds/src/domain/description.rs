//! A domain: the nodes that may participate, and the topics.
//!
//! # Invariants
//! - The first subgroup of a domain's group is [`DISCOVERY`]: all nodes are members of it and
//!   announce their readers in it. One subgroup per topic follows, in the order of the description.
//! - Participants with different topics cannot be members of one group: participants compare
//!   [`Domain::terms`] when they meet.

use std::path::Path;

use md5::{Digest as _, Md5};
use serde::{Deserialize, Serialize};
use tramontane::toml_text::parse;
use tramontane::{Description, DescriptionBuilder, SubgroupDescription, SubgroupId};

use super::topic_description::TopicDescription;
use super::topic_places::TopicPlaces;
use crate::error::DdsError;
use crate::wire::ANNOUNCEMENT_MAX;

/// The subgroup in which participants announce their readers. No topic may have this name.
pub(crate) const DISCOVERY: &str = "DCPS";

/// The window of discovery, which is small because readers are rarely created.
const DISCOVERY_WINDOW: u32 = 8;

/// The version of the format of messages between participants.
const FORMAT: u32 = 4;

/// A domain; the group's name is DDS's domain id.
///
/// ```
/// use tramontane::Description;
/// use tramontane_dds::{Domain, Level, TopicDescription};
///
/// # fn main() -> Result<(), tramontane_dds::DdsError> {
/// let tracks = TopicDescription::new("Tracks", "Track").level(Level::Volatile).publishers([0, 1]);
/// let domain = Domain::new(Description::builder("flight").nodes(3), [tracks])?;
/// assert!(domain.topic("Tracks").is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    group: Description,
    topics: Vec<TopicDescription>,
    places: Vec<TopicPlaces>,
    client_lease_ms: u64,
}

/// A domain's file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    group: Description,
    #[serde(default)]
    topics: Vec<TopicDescription>,
    #[serde(default)]
    places: Vec<TopicPlaces>,
    #[serde(default)]
    client_lease_ms: Option<u64>,
}

impl Domain {
    /// Creates a domain with these topics. Its nodes, fabric and times come from `group`.
    ///
    /// # Errors
    /// Fails with [`DdsError::Domain`] or [`DdsError::Description`].
    pub fn new(
        group: DescriptionBuilder,
        topics: impl IntoIterator<Item = TopicDescription>,
    ) -> Result<Self, DdsError> {
        // The group is built with the default subgroup, which the topics then replace.
        Self::of(group.build()?, topics.into_iter().collect())
    }

    /// Creates a domain with these topics, which replace the group's subgroups.
    ///
    /// # Errors
    /// Fails like [`Domain::new`].
    pub fn of(mut group: Description, topics: Vec<TopicDescription>) -> Result<Self, DdsError> {
        let all: Vec<u32> = group.nodes.iter().map(|node| node.id).collect();
        group.subgroups = vec![SubgroupDescription {
            window: DISCOVERY_WINDOW,
            message_max: ANNOUNCEMENT_MAX,
            clients: topics.iter().any(|topic| topic.clients),
            restart_empty: true,
            ..SubgroupDescription::named(DISCOVERY)
        }];
        for topic in &topics {
            group.subgroups.push(topic.subgroup(&all)?);
        }
        group.complete()?;
        let client_lease_ms = SubgroupDescription::named(DISCOVERY).client_lease_ms;
        Ok(Self { group, topics, places: Vec::new(), client_lease_ms })
    }

    /// Returns the domain with another lease for external participants. If no member has heard from
    /// an external participant for this time, the domain forgets it, together with its writers and
    /// readers. The default is a minute, and the minimum is twice the group's `failure_timeout_ms`.
    ///
    /// # Errors
    /// Fails like [`Domain::new`].
    pub fn with_client_lease_ms(self, client_lease_ms: u64) -> Result<Self, DdsError> {
        let mut changed = Self { client_lease_ms, ..self };
        for subgroup in changed.group.subgroups.iter_mut().filter(|of| of.clients) {
            subgroup.client_lease_ms = client_lease_ms;
        }
        changed.group.complete()?;
        Ok(changed)
    }

    /// Returns the time in ms after which a silent external participant is forgotten.
    #[must_use]
    pub const fn client_lease_ms(&self) -> u64 {
        self.client_lease_ms
    }

    /// Returns the domain with places for topics that are created at run time
    /// ([`DomainParticipant::create_topic`](crate::DomainParticipant::create_topic)).
    ///
    /// # Errors
    /// Fails like [`Domain::new`].
    pub fn with_places(
        self,
        places: impl IntoIterator<Item = TopicPlaces>,
    ) -> Result<Self, DdsError> {
        let Self { mut group, topics, places: mut all, client_lease_ms } = self;
        for places in places {
            group.subgroups.extend(places.subgroups(group.subgroups.len(), client_lease_ms)?);
            all.push(places);
        }
        if let Some(discovery) = group.subgroups.first_mut()
            && all.iter().any(|places| places.clients)
        {
            (discovery.clients, discovery.client_lease_ms) = (true, client_lease_ms);
        }
        group.complete()?;
        Ok(Self { group, topics, places: all, client_lease_ms })
    }

    /// Reads a domain file: a `[group]` table, which is a group file without subgroups, one
    /// `[[topics]]` table per topic, and `[[places]]` tables for topics created at run time.
    /// `client_lease_ms` may precede them.
    ///
    /// # Errors
    /// Fails like [`Domain::new`], and if the file cannot be read or is not a domain file.
    pub fn read(path: &Path) -> Result<Self, DdsError> {
        let wrong =
            |what: &dyn std::fmt::Display| DdsError::Domain(format!("{}: {what}", path.display()));
        let text = std::fs::read_to_string(path)
            .map_err(|error| wrong(&format_args!("{error}; give a domain file")))?;
        let File { mut group, topics, places, client_lease_ms } =
            parse(&text).map_err(|error| {
                let why = "the guide's page on DDS explains every field";
                DdsError::Domain(format!("{}, {error}; {why}", path.display()))
            })?;
        if !group.subgroups.is_empty() {
            return Err(wrong(
                &"a domain's group has topics instead of subgroups; remove the subgroups",
            ));
        }
        if let Some(folder) = path.parent() {
            group.key_file = group.key_file.map(|key| folder.join(key));
            for state in group.nodes.iter_mut().filter_map(|node| node.state.as_mut()) {
                *state = folder.join(&*state);
            }
        }
        let read = Self::of(group, topics)?.with_places(places)?;
        client_lease_ms.map_or(Ok(read.clone()), |lease| read.with_client_lease_ms(lease))
    }

    /// Returns the group that carries the domain.
    #[must_use]
    pub const fn group(&self) -> &Description {
        &self.group
    }

    /// Returns the topics, in the order of their subgroups.
    #[must_use]
    pub fn topics(&self) -> &[TopicDescription] {
        &self.topics
    }

    /// Returns the places for topics created at run time.
    #[must_use]
    pub fn places(&self) -> &[TopicPlaces] {
        &self.places
    }

    /// Returns each place separately. The topics in places have the indices after those in the
    /// description.
    pub(crate) fn each_place(&self) -> Vec<TopicPlaces> {
        let each = |places: &TopicPlaces| {
            let count = usize::try_from(places.count).unwrap_or(0);
            std::iter::repeat_n(*places, count)
        };
        self.places.iter().flat_map(each).collect()
    }

    /// Returns the topic with the name `name`.
    #[must_use]
    pub fn topic(&self, name: &str) -> Option<&TopicDescription> {
        self.topics.iter().find(|topic| topic.name == name)
    }

    /// Returns the domain after a change to its group, such as to the members' meeting addresses.
    #[must_use]
    pub fn with_group(self, change: impl FnOnce(&mut Description)) -> Self {
        let mut changed = self;
        change(&mut changed.group);
        changed
    }

    /// Returns a digest of everything that must be the same for all participants. They compare it
    /// at the start.
    #[must_use]
    pub fn terms(&self) -> u64 {
        let described = (FORMAT, &self.topics, &self.places);
        let described = crate::cdr::encode(&described).unwrap_or_default();
        let digest = Md5::digest(&described);
        digest.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
    }

    /// Returns the topic that a subgroup carries; `None` for discovery.
    pub(crate) fn topic_index(subgroup: SubgroupId) -> Option<usize> {
        subgroup.index().checked_sub(1)
    }

    /// Returns the name of the topic's subgroup.
    pub(crate) fn subgroup_name(index: usize, topic: &TopicDescription, generation: u64) -> String {
        if generation == 0 {
            topic.name.clone()
        } else {
            TopicPlaces::name_of(Self::subgroup_of(index).index())
        }
    }

    /// Returns the subgroup that carries the topic with this index.
    pub(crate) fn subgroup_of(index: usize) -> SubgroupId {
        SubgroupId(u16::try_from(index.saturating_add(1)).unwrap_or(u16::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Level;

    fn domain(topics: Vec<TopicDescription>) -> Result<Domain, DdsError> {
        Domain::new(Description::builder("domain").nodes(4), topics)
    }

    #[test]
    fn topic_subgroup_contains_its_publishers_and_subscribers() {
        let topics = vec![
            TopicDescription::new("a", "A").publishers([2]).subscribers([1, 3]),
            TopicDescription::new("b", "B").level(Level::Unordered),
            TopicDescription::new("c", "C").level(Level::Logged),
        ];
        let domain = domain(topics).expect("well formed");
        let subgroups = &domain.group().subgroups;
        assert_eq!(subgroups[0].members(), [0, 1, 2, 3]);
        assert_eq!((subgroups[1].members(), subgroups[1].senders()), (&[1, 2, 3][..], &[2][..]));
        assert_eq!(subgroups[2].members(), [0, 1, 2, 3]);
        let kinds = subgroups.iter().map(|of| (of.unordered, of.logged, of.restart_empty));
        let kinds: Vec<_> = kinds.skip(1).collect();
        assert_eq!(kinds, [(false, false, true), (true, false, true), (false, true, false)]);
    }

    #[test]
    fn invalid_domain_is_refused() {
        let wrong = [
            TopicDescription::new("a", "A").publishers([7]),
            TopicDescription::new(DISCOVERY, "A"),
            TopicDescription::new("a", "A").level(Level::Logged).window(0),
            TopicDescription { keep_depth: None, ..TopicDescription::new("a", "A") },
            TopicDescription::new("a", "A").level(Level::Unordered).clients(true),
        ];
        for topic in wrong {
            assert!(domain(vec![topic.clone()]).is_err(), "{topic:?}");
        }
    }

    #[test]
    fn domain_terms_cover_every_shared_setting() {
        let topic = || TopicDescription::new("a", "A");
        let terms = |topic| domain(vec![topic]).expect("well formed").terms();
        let others = [
            TopicDescription { type_name: "B".into(), ..topic() },
            topic().level(Level::Volatile),
            TopicDescription { keep_depth: Some(7), ..topic() },
            topic().clients(true),
        ];
        assert_eq!(terms(topic()), terms(topic()));
        for other in others {
            assert_ne!(terms(topic()), terms(other));
        }
    }

    #[test]
    fn domain_is_read_from_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("domain.toml");
        let text = "[group]\nname = \"flight\"\nnodes = [{ id = 0 }, { id = 1 }]\n\
                    [[topics]]\nname = \"Tracks\"\ntype = \"Track\"\nlevel = \"volatile\"\n\
                    publishers = [1]\nkeep_depth = 5\n";
        std::fs::write(&path, text).expect("written");
        let read = Domain::read(&path).expect("well formed");
        let tracks = read.topic("Tracks").expect("it is there");
        assert_eq!((tracks.level, tracks.keep_depth), (Level::Volatile, Some(5)));
        std::fs::write(&path, text.replace("keep_depth", "keeps")).expect("written");
        let told = Domain::read(&path).expect_err("no such field").to_string();
        assert!(told.contains("keeps"), "{told}");
    }
}
