//! Options that several experiments have: what carries the writes, which members send, how a
//! member is driven, and which protocol is simulated.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tramontane_core::multicast::Switches;
use tramontane_fixtures::derecho;

use tramontane_runtime::carrier::Carrier;

/// What carries the writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FabricKind {
    /// Shared memory, with real processes on this machine.
    Shm,
    /// TCP, with real processes on this machine.
    Tcp,
    /// RDMA, with real processes on this machine, if this program is built with it.
    Verbs,
    /// The simulator: virtual time, hardware as in the paper.
    Sim,
}

impl FabricKind {
    /// What carries the writes of real processes; nothing does in the simulator.
    #[must_use]
    pub const fn carrier(self) -> Option<Carrier> {
        match self {
            Self::Shm => Some(Carrier::SharedMemory),
            Self::Tcp => Some(Carrier::Tcp),
            Self::Verbs => Some(Carrier::Verbs),
            Self::Sim => None,
        }
    }
}

/// How many of the members send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Senders {
    /// Every member.
    All,
    /// Every other member.
    Half,
    /// The first member alone.
    One,
}

impl Senders {
    /// The number of senders in a group of this number of members.
    #[must_use]
    pub const fn of(self, nodes: u16) -> u16 {
        match self {
            Self::All => nodes,
            Self::Half => nodes.div_ceil(2),
            Self::One => 1,
        }
    }
}

/// Which thread steps the member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Drive {
    /// The process's own loop, which also sends.
    Caller,
    /// A polling thread; the sending thread helps when it finds no free slot.
    Polled,
}

/// One of Spindle's techniques, to be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Technique {
    /// Send one message a step.
    SendBatching,
    /// Receive one message a step.
    ReceiveBatching,
    /// Deliver one message a step.
    DeliveryBatching,
    /// No null rounds.
    Nulls,
    /// Post after each stage.
    LatePosting,
    /// All of them: the paper's baseline.
    All,
}

/// Which protocol the simulator runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// This project's own core, with the techniques that --without leaves.
    #[default]
    Tramontane,
    /// Derecho with no batches at all: where Fig. 5 of Spindle's paper begins.
    Unbatched,
    /// Derecho before Spindle: it delivers in batches.
    Baseline,
    /// The baseline that receives in batches too.
    Receive,
    /// The same that sends in batches too: all of Spindle's batching.
    Batching,
    /// The same with nulls.
    Nulls,
    /// The same that posts outside the lock: all of Spindle.
    Spindle,
}

impl Variant {
    /// Which Derecho it is, unless it is our own core.
    #[must_use]
    pub const fn derecho(self) -> Option<derecho::Variant> {
        match self {
            Self::Tramontane => None,
            Self::Unbatched => Some(derecho::Variant::UNBATCHED),
            Self::Baseline => Some(derecho::Variant::BASELINE),
            Self::Receive => Some(derecho::Variant::RECEIVE),
            Self::Batching => Some(derecho::Variant::BATCHING),
            Self::Nulls => Some(derecho::Variant::NULLS),
            Self::Spindle => Some(derecho::Variant::SPINDLE),
        }
    }

    /// Its name, as an argument.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Our names for the techniques of a Derecho.
pub(crate) fn techniques_of(variant: derecho::Variant) -> Switches {
    let is_on = [
        (variant.send_batching, Switches::SEND_BATCHING),
        (variant.receive_batching, Switches::RECEIVE_BATCHING),
        (variant.delivery_batching, Switches::DELIVERY_BATCHING),
        (variant.nulls, Switches::NULLS),
        (variant.posts_outside_lock, Switches::LATE_POSTING),
    ];
    let on = is_on.into_iter().filter(|(is_on, _)| *is_on);
    on.fold(Switches::empty(), |all, (_, technique)| all.union(technique))
}

/// The switches that are left without some techniques.
#[must_use]
pub fn switches_without(techniques: &[Technique]) -> Switches {
    techniques.iter().fold(Switches::all(), |switches, technique| {
        switches.difference(match technique {
            Technique::SendBatching => Switches::SEND_BATCHING,
            Technique::ReceiveBatching => Switches::RECEIVE_BATCHING,
            Technique::DeliveryBatching => Switches::DELIVERY_BATCHING,
            Technique::Nulls => Switches::NULLS,
            Technique::LatePosting => Switches::LATE_POSTING,
            Technique::All => Switches::all(),
        })
    })
}

/// The techniques that are on, in short.
pub(crate) fn techniques(switches: Switches) -> String {
    if switches == Switches::all() {
        return "all".into();
    }
    if switches.is_empty() {
        return "none".into();
    }
    let names = [
        (Switches::SEND_BATCHING, "send"),
        (Switches::RECEIVE_BATCHING, "receive"),
        (Switches::DELIVERY_BATCHING, "delivery"),
        (Switches::NULLS, "nulls"),
        (Switches::LATE_POSTING, "late"),
    ];
    let on = names.iter().filter(|(switch, _)| switches.contains(*switch));
    on.map(|(_, name)| *name).collect::<Vec<_>>().join("+")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_members_is_at_least_one() {
        assert_eq!(Senders::Half.of(1), 1);
        assert_eq!(Senders::Half.of(5), 3);
    }

    #[test]
    fn each_derecho_of_the_simulator_can_be_asked_for_by_its_name() {
        let named = |name: &str| Variant::from_str(name, false).expect(name);
        for (name, variant) in derecho::Variant::ALL {
            assert_eq!(named(name).derecho(), Some(variant), "{name}");
            assert_eq!(named(name).name(), name);
        }
        assert_eq!(Variant::value_variants().len(), derecho::Variant::ALL.len() + 1);
        assert_eq!(named("tramontane").derecho(), None);
        assert_eq!(Variant::default(), named("tramontane"));
    }

    #[test]
    fn the_techniques_of_a_derecho_have_our_names() {
        let names = derecho::Variant::ALL.map(|(_, variant)| techniques(techniques_of(variant)));
        assert_eq!(
            names,
            [
                "none",
                "delivery",
                "receive+delivery",
                "send+receive+delivery",
                "send+receive+delivery+nulls",
                "all"
            ]
        );
    }

    #[test]
    fn techniques_are_named() {
        assert_eq!(techniques(Switches::all()), "all");
        assert_eq!(techniques(Switches::empty()), "none");
        assert_eq!(techniques(Switches::NULLS | Switches::SEND_BATCHING), "send+nulls");
    }
}
