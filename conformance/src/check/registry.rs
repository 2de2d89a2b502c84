//! The list of checks, in the order of reports.

use std::fmt;

use serde::Serialize;

/// Whether a promise is required or recommended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Strength {
    /// Essential: without it, a system is not an atomic multicast.
    Must,
    /// Expected by users, although a correct implementation need not provide it.
    Should,
}

impl fmt::Display for Strength {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Must => "must",
            Self::Should => "should",
        })
    }
}

/// One check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The check's id.
    #[serde(skip)]
    pub id: CheckId,
    /// The check's name, on the command line and in reports.
    pub name: &'static str,
    /// Whether the promise is required or recommended.
    pub strength: Strength,
    /// The promise, in one sentence.
    pub sentence: &'static str,
    /// The source of the promise.
    pub source: &'static str,
}

macro_rules! checks {
    ($($id:ident, $name:literal, $strength:ident, $sentence:literal, $source:literal;)*) => {
        /// The ids of the checks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum CheckId {
            $(#[doc = $sentence] $id,)*
        }

        impl CheckId {
            /// All checks, in the order of reports.
            pub const ALL: &'static [Self] = &[$(Self::$id,)*];

            /// Returns the check's description.
            #[must_use]
            pub const fn check(self) -> &'static Check {
                match self {
                    $(Self::$id => &Check {
                        id: Self::$id,
                        name: $name,
                        sentence: $sentence,
                        source: $source,
                        strength: Strength::$strength,
                    },)*
                }
            }
        }
    };
}

checks! {
    IntegrityOnce, "integrity-once", Must,
        "A node delivers each message at most once.",
        "TRAM 2.2, uniform integrity";
    IntegritySent, "integrity-sent", Must,
        "A node delivers only messages that were multicast before, and names their senders correctly.",
        "TRAM 2.2, uniform integrity";
    IntegrityAddressee, "integrity-addressee", Must,
        "A node delivers only messages addressed to a group that it is a member of.",
        "TRAM 2.2, uniform integrity";
    IntegrityBytes, "integrity-bytes", Must,
        "A message is delivered with the bytes that were sent.",
        "Spindle II-C, the counter that guards a slot";
    NullsInvisible, "nulls-invisible", Must,
        "The application is never called with data that is not a message.",
        "Spindle III-B, null messages";
    Validity, "validity", Must,
        "A message that a correct node multicasts is delivered.",
        "TRAM 2.2, validity";
    Agreement, "agreement", Must,
        "If one correct node delivers a message, all correct addressees deliver it.",
        "TRAM 2.2, uniform agreement";
    UniformAgreement, "uniform-agreement", Must,
        "If any node delivers a message, even one that fails later, all correct addressees deliver it.",
        "TRAM 2.2, uniform agreement";
    SenderOrder, "sender-order", Must,
        "Messages of one sender are delivered in the order in which it sent them, and none is \
         skipped.",
        "Spindle II-B, FIFO of senders";
    TotalOrder, "total-order", Must,
        "Two members of a group deliver their common messages in the same order.",
        "Spindle II-B, atomic multicast";
    AcyclicOrder, "acyclic-order", Must,
        "The order of deliveries across all groups and nodes has no cycle.",
        "TRAM 2.2, uniform acyclic order";
    PrefixOrder, "prefix-order", Must,
        "Of the messages addressed to two nodes, one node delivers a prefix of the other's deliveries.",
        "TRAM 2.2, uniform prefix order";
    ViewUnique, "view-unique", Must,
        "A view's id identifies one list, which names only members of the group, each of them once.",
        "Derecho's views: Spindle II-A";
    ViewRising, "view-rising", Must,
        "The ids of the views that a node installs increase, even across its restarts.",
        "Derecho's views: Spindle II-A";
    ViewSelf, "view-self", Must,
        "A node is a member of each view that it installs.",
        "virtual synchrony: Spindle II-A";
    ViewMajority, "view-majority", Should,
        "A view, together with the members that left as planned, has a majority of the previous \
         view.",
        "Derecho's partition rule: Spindle II-A";
    ViewDelivery, "view-delivery", Must,
        "A message is delivered in one view, which is the deliverer's installed view.",
        "virtual synchrony: Spindle II-A";
    ViewSameSet, "view-same-set", Must,
        "Two nodes that go from one view to the same next view deliver the same messages in the first.",
        "virtual synchrony: Spindle II-A";
    RemovedSilent, "removed-silent", Must,
        "A node that was removed, left or gave up delivers no message that the others did not deliver.",
        "Derecho's wedge: Spindle II-A";
    Quiescence, "quiescence", Should,
        "While no node sends, the protocol posts nothing.",
        "Spindle III-B, nulls stop; PROTOCOLS NUL-4";
    DurablePrefix, "durable-prefix", Must,
        "The durable deliveries are a prefix of all deliveries, and only grow.",
        "Derecho's persistence frontier: Spindle II-A";
    DurableKept, "durable-kept", Must,
        "After a restart, all durable deliveries are present, unchanged and in order.",
        "Derecho's persistence frontier: Spindle II-A";
    Liveness, "liveness", Must,
        "Once faults have ended, multicast messages are delivered, views follow the members, and no \
         node hangs or gives up without cause.",
        "TRAM 2.1, the leader oracle; Spindle III-B, no stall";
}

impl fmt::Display for CheckId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.check().name)
    }
}

impl std::str::FromStr for CheckId {
    type Err = UnknownCheck;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().copied().find(|id| id.check().name == name);
        found.ok_or_else(|| UnknownCheck(name.to_owned()))
    }
}

/// No check has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no check \"{0}\"; run with --list to see all checks")]
pub struct UnknownCheck(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_found_by_name() {
        for id in CheckId::ALL {
            let check = id.check();
            assert_eq!(check.name.parse(), Ok(*id));
            assert!(
                check.sentence.ends_with('.') && check.sentence.matches(". ").count() == 0,
                "{}",
                check.name
            );
        }
        assert!("sobriety".parse::<CheckId>().is_err());
    }
}
