//! The list of checks, in the order of reports.

use std::fmt;

use serde::Serialize;

/// How binding a promise is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Strength {
    /// Essential: without it, a system is not an atomic multicast.
    Must,
    /// Expected by users, although a sound implementation may do without it.
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
    /// How binding the promise is.
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
        "A node delivers only what was multicast before, and names its sender rightly.",
        "TRAM 2.2, uniform integrity";
    IntegrityAddressee, "integrity-addressee", Must,
        "A node delivers only messages for a group of which it is a member.",
        "TRAM 2.2, uniform integrity";
    IntegrityBytes, "integrity-bytes", Must,
        "A message is delivered with the bytes that were sent.",
        "Spindle II-C, what a slot's counter guards";
    NullsInvisible, "nulls-invisible", Must,
        "The application is never called for what is nobody's message.",
        "Spindle III-B, null messages";
    Validity, "validity", Must,
        "What a correct node multicasts is delivered.",
        "TRAM 2.2, validity";
    Agreement, "agreement", Must,
        "What one correct node delivers, all correct addressees deliver.",
        "TRAM 2.2, uniform agreement";
    UniformAgreement, "uniform-agreement", Must,
        "What any node delivers, even one that fails later, all correct addressees deliver.",
        "TRAM 2.2, uniform agreement";
    SenderOrder, "sender-order", Must,
        "Messages of one sender are delivered in the order in which it sent them, and none is left out.",
        "Spindle II-B, FIFO of senders";
    TotalOrder, "total-order", Must,
        "Two members of a group deliver the messages that both deliver in the same order.",
        "Spindle II-B, atomic multicast";
    AcyclicOrder, "acyclic-order", Must,
        "The order in which messages are delivered, across all groups and nodes, has no cycle.",
        "TRAM 2.2, uniform acyclic order";
    PrefixOrder, "prefix-order", Must,
        "Of what two nodes both should deliver, one delivers a prefix of what the other does.",
        "TRAM 2.2, uniform prefix order";
    ViewUnique, "view-unique", Must,
        "A view's id stands for one list of members.",
        "Derecho's views: Spindle II-A";
    ViewRising, "view-rising", Must,
        "The ids of the views that a node installs rise, across its restarts too.",
        "Derecho's views: Spindle II-A";
    ViewSelf, "view-self", Must,
        "A node is a member of each view that it installs.",
        "virtual synchrony: Spindle II-A";
    ViewMajority, "view-majority", Should,
        "A view holds, with the members that left as planned, a majority of the view before it.",
        "Derecho's partition rule: Spindle II-A";
    ViewDelivery, "view-delivery", Must,
        "A message is delivered in one view, which is the one its deliverer has installed.",
        "virtual synchrony: Spindle II-A";
    ViewSameSet, "view-same-set", Must,
        "Two nodes that go from one view to the same next one delivered the same messages in it.",
        "virtual synchrony: Spindle II-A";
    RemovedSilent, "removed-silent", Must,
        "A node that was removed, left or gave up delivers nothing that the others did not.",
        "Derecho's wedge: Spindle II-A";
    Quiescence, "quiescence", Should,
        "While nobody sends, the protocol posts nothing.",
        "Spindle III-B, nulls stop; PROTOCOLS NUL-4";
    DurablePrefix, "durable-prefix", Must,
        "What is durable is a prefix of what was delivered, and it grows.",
        "Derecho's persistence frontier: Spindle II-A";
    DurableKept, "durable-kept", Must,
        "What was durable is there, unchanged and in its place, after a restart.",
        "Derecho's persistence frontier: Spindle II-A";
    Liveness, "liveness", Must,
        "Once faults end, what is multicast is delivered, and no node hangs or gives up without cause.",
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
#[error("no check is called \"{0}\"; --list prints them")]
pub struct UnknownCheck(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_found_again_and_says_one_sentence() {
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
