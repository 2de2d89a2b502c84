//! The content of the sampling ports: the group, the incarnation, the partner's incarnation last
//! seen, and the state. This module also derives a partition's conclusions from its partner's
//! content.

use crate::group::{DIGEST, WhichPartition};
use crate::ports::{HealthReport, SAMPLE_BYTES};
use tramontane_core::health::{HealthEvent, HealthKind};
use tramontane_core::ids::{Rank, Time, ViewId};

/// The state of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartnerState {
    /// The partition is in no session: it has nothing, and wants to take part.
    Fresh,
    /// The partition is in a view, with the given incarnation of its partner or without a partner.
    InView(ViewId, Option<u32>),
    /// The partition has stopped for good.
    Stopped,
}

/// The information that a partition publishes about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Digest of the partition's group.
    pub digest: u64,
    /// Its incarnation.
    pub incarnation: u32,
    /// Incarnation of the partner that this partition has seen last; zero for none. A partition
    /// begins a session only with an incarnation that has seen this partition's incarnation,
    /// because then both have been alive at the same time.
    pub seen: u32,
    /// Count that grows with each step.
    pub beat: u32,
    /// Its state.
    pub place: PartnerState,
}

/// Version of frames and hellos; it is mixed into the published digest.
const VERSION: u64 = 1 << 56;

impl Hello {
    /// Creates the hello of a partition in this group.
    pub const fn new(incarnation: u32, seen: u32, beat: u32, place: PartnerState) -> Self {
        Self { digest: DIGEST ^ VERSION, incarnation, seen, beat, place }
    }

    /// Returns whether the hello belongs to this group and this version.
    pub const fn is_of_this_group(&self) -> bool {
        self.digest == DIGEST ^ VERSION
    }

    /// Returns the message for the sampling port.
    pub fn encode(&self) -> [u8; SAMPLE_BYTES] {
        let (place, view, partner) = match self.place {
            PartnerState::Fresh => (1_u32, ViewId(0), 0),
            PartnerState::InView(view, partner) => (2, view, partner.unwrap_or(0)),
            PartnerState::Stopped => (3, ViewId(0), 0),
        };
        let mut bytes = [0; SAMPLE_BYTES];
        bytes[..8].copy_from_slice(&self.digest.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.incarnation.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.seen.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.beat.to_le_bytes());
        bytes[20..24].copy_from_slice(&place.to_le_bytes());
        bytes[24..28].copy_from_slice(&partner.to_le_bytes());
        bytes[28..36].copy_from_slice(&view.get().to_le_bytes());
        bytes
    }

    /// Decodes a message, or returns `None` if it is not a hello.
    pub fn decode(bytes: &[u8; SAMPLE_BYTES]) -> Option<Self> {
        let four = |at: usize| {
            let bytes = bytes.get(at..)?.first_chunk::<4>()?;
            Some(u32::from_le_bytes(*bytes))
        };
        let eight =
            |at: usize| Some(u64::from(four(at)?) | u64::from(four(at.wrapping_add(4))?) << 32);
        let partner = Some(four(24)?).filter(|partner| *partner != 0);
        let place = match four(20)? {
            1 => PartnerState::Fresh,
            2 => PartnerState::InView(ViewId(eight(28)?), partner),
            3 => PartnerState::Stopped,
            _ => return None,
        };
        let incarnation = Some(four(8)?).filter(|incarnation| *incarnation != 0)?;
        Some(Self { digest: eight(0)?, incarnation, seen: four(12)?, beat: four(16)?, place })
    }
}

/// The knowledge about the partner.
#[derive(Debug)]
pub struct Watch {
    rank: Rank,
    timeout_ns: u64,
    latest: Option<Hello>,
    since: Time,
    is_silent: bool,
    other_group: bool,
}

impl Watch {
    /// Starts without knowledge. A partner that shows no new beat for longer than `timeout_ns` is
    /// silent.
    pub const fn new(partner: WhichPartition, timeout_ns: u64) -> Self {
        let rank = match partner {
            WhichPartition::A => Rank(0),
            WhichPartition::B => Rank(1),
        };
        Self {
            rank,
            timeout_ns,
            latest: None,
            since: Time::ZERO,
            is_silent: false,
            other_group: false,
        }
    }

    /// Returns the partner's last hello if it belongs to this group.
    pub const fn latest(&self) -> Option<Hello> {
        self.latest
    }

    /// Returns an event about the partner.
    pub const fn event(&self, kind: HealthKind, since: Time) -> HealthEvent {
        let detail = match self.latest {
            Some(hello) => hello.incarnation as u64,
            None => 0,
        };
        HealthEvent { peer: self.rank, kind, since, detail }
    }

    /// Handles the partner's current hello, and reports changes.
    pub fn see(&mut self, hello: Option<Hello>, now: Time, mut report: impl FnMut(HealthReport)) {
        let Some(hello) = hello else { return };
        if !hello.is_of_this_group() {
            if !self.other_group {
                self.other_group = true;
                report(HealthReport::OtherGroup(hello.digest));
            }
            return;
        }
        self.other_group = false;
        let before = self.latest.replace(hello);
        let (kind, since) = match before {
            None => (HealthKind::Started, now),
            Some(before) if before.incarnation != hello.incarnation => (HealthKind::Restarted, now),
            Some(before) if before.beat != hello.beat => {
                self.since = now;
                if !core::mem::take(&mut self.is_silent) {
                    return;
                }
                (HealthKind::Resumed, now)
            }
            Some(_) if !self.is_silent && now.since(self.since) > self.timeout_ns => {
                self.is_silent = true;
                (HealthKind::Silent, self.since)
            }
            Some(_) => return,
        };
        if kind != HealthKind::Silent {
            (self.since, self.is_silent) = (now, false);
        }
        report(HealthReport::Health(self.event(kind, since)));
    }
}
