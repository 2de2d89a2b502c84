//! Digests of the settings that must be the same at all nodes. Comparing two digests reveals which
//! fields differ.
//!
//! The upper bits of a digest are a hash of all fields, and the lower bits contain a few bits of
//! each field's own hash. So two nodes that compare their digests learn which fields to correct
//! without exchanging anything else.

use serde::Serialize;

use super::terms::Description;

/// The fields that are compared, in the order of their bits in the digest.
pub(crate) struct Fields<const COUNT: usize> {
    pub(crate) names: [&'static str; COUNT],
    /// The number of bits of each field's own hash. With four bits, one difference in sixteen
    /// cannot be attributed to its field.
    pub(crate) bits: u32,
}

/// The fields of a group file.
const FIELDS: Fields<10> = Fields {
    names: [
        "name",
        "fabric",
        "membership",
        "majority",
        "heartbeat_ms",
        "failure_timeout_ms",
        "evict_slow_after_ms",
        "initial",
        "nodes",
        "subgroups",
    ],
    bits: 4,
};

impl<const COUNT: usize> Fields<COUNT> {
    /// Returns the digest of these hashes, one per field.
    pub(crate) fn digest(&self, hashes: &[u64; COUNT]) -> u64 {
        let hints = hashes.iter().rev().fold(0, |all, hash| all << self.bits | hash & self.mask());
        hash(&hashes[..]) << self.hint_bits() | hints
    }

    /// Returns a readable list of the fields in which two digests are known to differ. The list is
    /// empty if none is known.
    pub(crate) fn differing(&self, own: u64, other: u64) -> String {
        let differs = |place: u32| (own ^ other) >> (self.bits * place) & self.mask() != 0;
        let names = (0..).zip(self.names).filter(|(place, _)| differs(*place));
        names.map(|(_, name)| name).collect::<Vec<_>>().join(", ")
    }

    /// Returns a mask of the bits that identify fields.
    const fn hint_bits(&self) -> u32 {
        self.bits * COUNT as u32
    }

    const fn mask(&self) -> u64 {
        (1 << self.bits) - 1
    }
}

/// Returns the digest of a description. Nodes that form the first view must also agree on
/// `initial`, which no longer matters afterwards.
///
/// Both times are included, because a member would remove peers whose heartbeats are less frequent
/// than its failure timeout allows.
pub(crate) fn digest(description: &Description, forms: bool) -> u64 {
    let Description {
        name,
        fabric,
        membership,
        majority,
        heartbeat_ms,
        failure_timeout_ms,
        evict_slow_after_ms,
        initial,
        nodes,
        subgroups,
        ..
    } = description;
    // Each node chooses its own state folder.
    let nodes: Vec<_> = nodes.iter().map(|node| (node.id, &node.address, &node.rack)).collect();
    let initial = forms.then_some(initial);
    FIELDS.digest(&[
        hash(name),
        hash(fabric),
        hash(membership),
        hash(majority),
        hash(heartbeat_ms),
        hash(failure_timeout_ms),
        hash(evict_slow_after_ms),
        hash(&initial),
        hash(&nodes),
        hash(subgroups),
    ])
}

/// Returns a value to combine with the digest of nodes that meet, for other terms that they must
/// share. The value leaves the fields' bits unchanged, so that no field is reported when only these
/// terms differ.
pub(crate) fn digest_of_terms(terms: u64) -> u64 {
    if terms == 0 { 0 } else { hash(&terms) << FIELDS.hint_bits() }
}

/// Returns the fields of a group file in which two digests are known to differ.
pub(crate) fn differing(own: u64, other: u64) -> String {
    FIELDS.differing(own, other)
}

/// A field's hash.
pub(crate) fn hash(part: &(impl Serialize + ?Sized)) -> u64 {
    // Plain fields always serialize to JSON.
    let text = serde_json::to_string(part).unwrap_or_default();
    xxhash_rust::xxh3::xxh3_64(text.as_bytes())
}

impl Description {
    /// Returns the digest of everything that must be the same at all members. Keys, state folders
    /// and the initial nodes are not included, because each member chooses its own.
    #[must_use]
    pub fn digest(&self) -> u64 {
        digest(self, false)
    }

    /// Returns the digest for nodes that form the first view, which must also agree on its members.
    /// The initial members no longer matter afterwards.
    #[must_use]
    pub(crate) fn forming_digest(&self) -> u64 {
        digest(self, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::description::terms::Membership;

    type Change = (&'static str, fn(&mut Description));

    #[test]
    fn differing_group_fields_are_detected_and_named() {
        let own = Description::local("g", 3, 8, 16);
        let changes: [Change; 10] = [
            ("name", |d| d.name = "h".into()),
            ("membership", |d| d.membership = Membership::Fixed),
            ("majority", |d| d.majority = false),
            ("heartbeat_ms", |d| d.heartbeat_ms = 70),
            ("failure_timeout_ms", |d| d.failure_timeout_ms = 3_000),
            ("evict_slow_after_ms", |d| d.evict_slow_after_ms = 3_000),
            ("nodes", |d| d.nodes.truncate(2)),
            ("nodes", |d| d.nodes[1].rack = Some("r".into())),
            ("subgroups", |d| d.subgroups[0].window = 10),
            ("subgroups", |d| d.subgroups[0].logged = true),
        ];
        for (field, change) in changes {
            let mut other = own.clone();
            change(&mut other);
            assert_eq!(differing(digest(&own, false), digest(&other, false)), field);
        }
        let mut other = own.clone();
        other.initial = vec![0, 1];
        assert_eq!(digest(&own, false), digest(&other, false), "history");
        assert_eq!(differing(digest(&own, true), digest(&other, true)), "initial");
    }

    #[test]
    fn differing_terms_are_not_blamed_on_fields() {
        let own = digest(&Description::local("g", 3, 8, 16), true);
        for (one, other) in [(0, 1), (1, 2), (7, u64::MAX)] {
            let (one, other) = (own ^ digest_of_terms(one), own ^ digest_of_terms(other));
            assert!(one != other && differing(one, other).is_empty());
        }
    }

    /// Nodes of the same version accept or refuse each other by this number. If the number changes,
    /// the greeting needs a new version, and these values must be updated.
    #[test]
    fn group_digest_matches_the_greeting_version() {
        let description = Description::local("g", 3, 8, 16);
        assert_eq!(tramontane_control::VERSION, 12);
        assert_eq!(format!("{:016x}", digest(&description, false)), "ce8b0e1815c49849");
        assert_eq!(format!("{:016x}", digest(&description, true)), "75abef18a5c49849");
    }

    #[test]
    fn per_node_settings_do_not_change_digest() {
        let own = Description::local("g", 3, 8, 16);
        let mut other = own.clone();
        other.allow_clear = true;
        other.key_file = Some("key".into());
        other.nodes[1].state = Some("state".into());
        assert_eq!(digest(&own, true), digest(&other, true));
    }
}
