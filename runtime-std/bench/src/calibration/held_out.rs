//! The runs that are predicted. None of them is used to calibrate: [`super::components`] measures
//! parts of the machine, and never a group whose members run beside each other.

use serde::{Deserialize, Serialize};
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{Description, SubgroupDescription};

use crate::error::BenchError;
use crate::options::Senders;

/// Slots of a sender.
pub(super) const WINDOW: u32 = 100;

/// Messages of a run at a low rate.
pub(super) const LOW_RATE_MESSAGES: u64 = 5_000;

/// The wait between two messages at a low rate, in us.
pub(super) const LOW_RATE_INTERVAL_US: u64 = 10;

/// What is looked at in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Figure {
    /// Messages a second that are delivered at the median member while all send that may.
    Rate,
    /// From commit to the sender's own delivery at a low rate, the median of all messages, in ns.
    OwnLatency,
    /// The same to the delivery at the last of the other members, in ns.
    PeerLatency,
    /// Of a block multicast, from the root's send until the last receiver has it whole, the median
    /// of messages that are sent one at a time, in ns.
    BlockLatency,
}

impl Figure {
    pub(super) const fn unit(self) -> &'static str {
        match self {
            Self::Rate => "messages/s",
            Self::OwnLatency | Self::PeerLatency | Self::BlockLatency => "ns",
        }
    }
}

/// A run that is measured and predicted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HeldOut {
    /// What is looked at.
    pub(super) figure: Figure,
    /// `shm` or `tcp`.
    pub(super) fabric: Fabric,
    /// Members.
    pub(super) members: u16,
    /// How many of them send.
    pub(super) senders: u16,
    /// Bytes of a message.
    pub(super) bytes: u32,
    /// The wait of the first sender after each message, in us.
    pub(super) delay_us: u64,
    /// Subgroups of all members in which nobody sends, beside the one in which they do.
    pub(super) idle_subgroups: u16,
}

/// What carries a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Fabric {
    /// Shared memory
    Shm,
    /// TCP over the loopback
    Tcp,
}

impl Fabric {
    /// The runtime's name for it.
    pub(super) const fn carrier(self) -> Carrier {
        match self {
            Self::Shm => Carrier::SharedMemory,
            Self::Tcp => Carrier::Tcp,
        }
    }

    /// The profile that this machine's calibration fills.
    pub(super) const fn profile(self) -> &'static str {
        match self {
            Self::Shm => "here-shared-memory",
            Self::Tcp => "here-tcp",
        }
    }
}

impl HeldOut {
    /// The group of it. Of a block multicast only the members count.
    pub(super) fn group(&self) -> Result<Description, BenchError> {
        let all: Vec<u32> = (0..u32::from(self.members)).collect();
        let senders = all[..usize::from(self.senders)].to_vec();
        let mut builder = Description::builder("bench").nodes(self.members.into()).fixed();
        let subgroup = |name: String, senders: Vec<u32>| SubgroupDescription {
            window: WINDOW,
            message_max: if self.figure == Figure::BlockLatency { 8 } else { self.bytes.max(8) },
            senders: Some(senders),
            ..SubgroupDescription::named(&name)
        };
        builder = builder.subgroup(subgroup("all".into(), senders));
        for index in 0..self.idle_subgroups {
            builder = builder.subgroup(subgroup(format!("idle-{index}"), all.clone()));
        }
        Ok(builder.build()?)
    }

    /// Its name in a table.
    pub(super) fn name(&self) -> String {
        let what = match self.figure {
            Figure::Rate => "rate",
            Figure::OwnLatency => "own latency",
            Figure::PeerLatency => "peer latency",
            Figure::BlockLatency => "block multicast",
        };
        let mut name = what.to_owned();
        if self.delay_us > 0 {
            name += &format!(", one waits {} us", self.delay_us);
        }
        if self.idle_subgroups > 0 {
            name += &format!(", {} idle subgroups", self.idle_subgroups);
        }
        name
    }
}

/// All runs over a fabric, in the order of the table.
pub(super) fn runs(fabric: Fabric) -> Vec<HeldOut> {
    let rate = |members: u16, senders: Senders, bytes: u32| HeldOut {
        figure: Figure::Rate,
        fabric,
        members,
        senders: senders.of(members),
        bytes,
        delay_us: 0,
        idle_subgroups: 0,
    };
    let mut runs = Vec::new();
    for members in 2..=4 {
        for bytes in [1, 128, 1_024, 10_240] {
            runs.push(rate(members, Senders::All, bytes));
        }
    }
    for members in [2, 4] {
        runs.push(rate(members, Senders::One, 1));
        runs.push(rate(members, Senders::One, 10_240));
    }
    for bytes in [1, 10_240] {
        runs.push(rate(4, Senders::Half, bytes));
    }
    for delay_us in [1, 100] {
        runs.push(HeldOut { delay_us, ..rate(2, Senders::All, 10_240) });
    }
    for idle_subgroups in [4, 20] {
        for bytes in [1, 10_240] {
            runs.push(HeldOut { idle_subgroups, ..rate(2, Senders::All, bytes) });
        }
    }
    for (members, bytes) in [(2, 8), (2, 1_024), (2, 10_240)] {
        for figure in [Figure::OwnLatency, Figure::PeerLatency] {
            runs.push(HeldOut { figure, ..rate(members, Senders::All, bytes) });
        }
    }
    for members in 2..=4 {
        for bytes in [1 << 20, 16 << 20] {
            let figure = Figure::BlockLatency;
            runs.push(HeldOut { figure, ..rate(members, Senders::One, bytes) });
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_is_there_once_and_its_group_is_right() {
        for fabric in [Fabric::Shm, Fabric::Tcp] {
            let runs = runs(fabric);
            for (place, run) in runs.iter().enumerate() {
                assert!(!runs[..place].contains(run), "{run:?}");
                let group = run.group().expect("a good group");
                assert_eq!(group.subgroups.len(), usize::from(run.idle_subgroups) + 1);
                assert_eq!(group.subgroups[0].senders().len(), usize::from(run.senders));
            }
            assert!(runs.len() > 25);
        }
    }
}
