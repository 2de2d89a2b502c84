//! Rings over a network: how writes by others wake a sleeping member without a missed wakeup
//! (IDL-1).
//!
//! A one-sided write raises no event at its destination (HAL-6), so rings are writes without bytes
//! that carry an immediate value, a *notice*. Between two members, on one connection, which keeps
//! the order of all posts:
//!
//! | notice | from | meaning |
//! |---|---|---|
//! | `Asleep` | the sleeper, when it arms | ring once for anything posted since your last ring, or for your next post |
//! | `Ring` | the other, after a post, or upon `Asleep` | a post arrived before this |
//! | `Wake` | `Fabric::wake` | wake up, asleep or not |
//! | `WakeSeen` | the receiver of `Wake` | this many more wakeups may be sent |
//! | `Retired` | the member that ends the view | the sender posts nothing more, and accepts nothing |
//!
//! # No wakeup is lost
//! Suppose A posts D, and B arms. If B's `Asleep` reaches A before A posts D, A rings after D.
//! Otherwise A rings when `Asleep` arrives, unless it has rung since D. In each case a `Ring`
//! follows D on the same connection. When B takes the ring from its completion queue, D has landed,
//! and B is either
//! - armed: B wakes up; or
//! - awake: B may drop the ring. A member checks once more after arming, and finds D.
//!
//! A itself may be asleep when `Asleep` arrives, which is an event for A too. A answers it and
//! continues to sleep.
//!
//! # The exchange ends
//! `Asleep` is resent to a peer only after that peer has rung, and a ring requires an `Asleep`. So
//! a group with nothing to say exchanges at most one of each per pair and then falls silent,
//! however often its members arm. At most [`WAKES_MAX`] wakeups, as many answers, and one or two
//! notices of any other kind are in flight in each direction, so a few posted receives always
//! suffice.

use tramontane_core::fabric::LossCause;

use super::epoch::{EPOCH_BITS, TAG_MAX};

bitflags::bitflags! {
    /// Notices that are to be sent.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct DueNotices: u8 {
        const ASLEEP = 1;
        const RING = 1 << 1;
        const WAKE = 1 << 2;
        const WAKE_SEEN = 1 << 3;
        const RETIRED = 1 << 4;
    }
}

/// The kinds of notice, as encoded in the upper four bits of the immediate value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    Asleep,
    Ring,
    Wake,
    /// Answers the given number of wakeups.
    WakeSeen(u8),
    Retired,
    /// The state and epoch of a region's connection: see `crate::fabric::permissions`.
    Reconnect {
        region: u8,
        epoch: u32,
    },
    /// The answer to `Reconnect`.
    Reconnected {
        region: u8,
        epoch: u32,
    },
    /// Carries the lower half of a key, for an epoch: see `super::keys`.
    KeyLow {
        region: u8,
        tag: u8,
        bits: u16,
    },
    /// Carries the upper half of a key.
    KeyHigh {
        region: u8,
        tag: u8,
        bits: u16,
    },
    /// The peer no longer has a key.
    KeyGone {
        region: u8,
    },
    /// The answer to `KeyHigh` or `KeyGone`.
    KeyTaken {
        region: u8,
    },
}

impl Notice {
    /// Returns the immediate value.
    #[allow(clippy::as_conversions, reason = "widening, in a const fn")]
    pub(crate) const fn encode(self) -> u32 {
        let (kind, rest) = match self {
            Self::Asleep => (1, 0),
            Self::Ring => (2, 0),
            Self::Wake => (3, 0),
            Self::WakeSeen(count) => (4, pack(0, count as u32)),
            Self::Retired => (5, 0),
            Self::Reconnect { region, epoch } => (6, pack(region, epoch)),
            Self::Reconnected { region, epoch } => (7, pack(region, epoch)),
            Self::KeyLow { region, tag, bits } => (12, pack(region, pack_half(tag, bits))),
            Self::KeyHigh { region, tag, bits } => (13, pack(region, pack_half(tag, bits))),
            Self::KeyGone { region } => (14, pack(region, 0)),
            Self::KeyTaken { region } => (15, pack(region, 0)),
        };
        kind << 28 | rest
    }

    /// Decodes an immediate value. Returns `None` if no correct member sends it.
    pub(crate) fn decode(value: u32) -> Option<Self> {
        let region = u8::try_from(value >> EPOCH_BITS & 0x1f).ok()?;
        let epoch = value & ((1 << EPOCH_BITS) - 1);
        match (value >> 28, value & 0x0fff_ffff) {
            (1, 0) => Some(Self::Asleep),
            (2, 0) => Some(Self::Ring),
            (3, 0) => Some(Self::Wake),
            (4, 1..=255) => u8::try_from(epoch).ok().map(Self::WakeSeen),
            (5, 0) => Some(Self::Retired),
            (6, _) => Some(Self::Reconnect { region, epoch }),
            (7, _) => Some(Self::Reconnected { region, epoch }),
            (12, _) => {
                let (tag, bits) = unpack_half(epoch)?;
                Some(Self::KeyLow { region, tag, bits })
            }
            (13, _) => {
                let (tag, bits) = unpack_half(epoch)?;
                Some(Self::KeyHigh { region, tag, bits })
            }
            (14, _) if epoch == 0 => Some(Self::KeyGone { region }),
            (15, _) if epoch == 0 => Some(Self::KeyTaken { region }),
            _ => None,
        }
    }
}

#[allow(clippy::as_conversions, reason = "widening, in a const fn")]
const fn pack_half(tag: u8, bits: u16) -> u32 {
    (tag as u32) << 16 | bits as u32
}

/// Unpacks half of a key. Returns `None` if the tag has bits that no epoch has.
fn unpack_half(value: u32) -> Option<(u8, u16)> {
    let tag = u8::try_from(value >> 16).ok().filter(|tag| *tag <= TAG_MAX)?;
    Some((tag, u16::try_from(value & 0xffff).ok()?))
}

#[allow(clippy::as_conversions, reason = "widening, in a const fn")]
const fn pack(region: u8, epoch: u32) -> u32 {
    (region as u32 & 0x1f) << EPOCH_BITS | epoch & ((1 << EPOCH_BITS) - 1)
}

/// Maximum number of wakeups in flight to one peer. It is more than one so that a member that
/// rings, is heard and rings again does not have to wait for the answer.
const WAKES_MAX: u8 = 4;

/// The effect of a notice on this member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// The notice has no effect.
    Nothing,
    /// The notice rings this member.
    Rung,
    /// The peer has ended the view.
    Retired,
    /// The peer has violated the protocol.
    Broken(LossCause),
}

/// One member's end of the doorbells between itself and one peer.
#[derive(Debug)]
pub(crate) struct Doorbell {
    /// Whether the peer knows that this member is asleep, and has not rung since.
    told: bool,
    /// Whether the peer has reported that it is asleep, and has not been rung since.
    sleeps: bool,
    /// Whether anything has been posted since the last ring.
    posted: bool,
    /// Unanswered wakeups, including any that is due.
    waking: u8,
    /// Whether another wakeup has been requested in the meantime.
    again: bool,
    /// Received wakeups that have yet to be answered.
    seen: u8,
    due: DueNotices,
}

impl Doorbell {
    pub(crate) const fn new() -> Self {
        Self {
            told: false,
            sleeps: false,
            posted: false,
            waking: 0,
            again: false,
            seen: 0,
            due: DueNotices::empty(),
        }
    }

    /// Returns the notices to send as soon as there is room.
    pub(crate) const fn due(&self) -> DueNotices {
        self.due
    }

    /// Records that a notice has been sent.
    pub(crate) fn sent(&mut self, notice: DueNotices) {
        self.due.remove(notice);
        if notice == DueNotices::RING {
            self.posted = false;
        } else if notice == DueNotices::WAKE_SEEN {
            self.seen = 0;
        }
    }

    /// Returns the number of wakeups that an answer covers.
    pub(crate) const fn seen(&self) -> u8 {
        self.seen
    }

    /// Records that this member arms: the peer is notified, unless it already knows.
    pub(crate) fn arm(&mut self) {
        if !self.told {
            self.told = true;
            self.due.insert(DueNotices::ASLEEP);
        }
    }

    /// Returns whether a list posted now must be followed by a ring.
    pub(crate) const fn rings_with_post(&self) -> bool {
        self.sleeps
    }

    /// Records that a list has been posted, followed by a ring if [`Doorbell::rings_with_post`]
    /// returned true.
    pub(crate) fn posted(&mut self) {
        self.posted = !self.sleeps;
        if self.sleeps {
            self.sleeps = false;
            // This ring overtakes the ring that was waiting for room.
            self.due.remove(DueNotices::RING);
        }
    }

    /// Records that a list was sent over another connection, and whether a ring for it follows.
    pub(crate) fn will_ring(&mut self, rings: bool) {
        self.sleeps &= !rings;
    }

    /// Requests a ring for the peer.
    pub(crate) fn ring(&mut self) {
        self.sleeps = false;
        self.due.insert(DueNotices::RING);
    }

    /// Requests a wakeup of the peer regardless of its state.
    pub(crate) fn wake(&mut self) {
        if self.due.contains(DueNotices::WAKE) {
            // The earlier wakeup has not been sent yet, and also covers this one.
            return;
        }
        if self.waking < WAKES_MAX {
            self.waking += 1;
            self.due.insert(DueNotices::WAKE);
        } else {
            self.again = true;
        }
    }

    /// Ends the view for this member.
    pub(crate) fn retire(&mut self) {
        self.due = DueNotices::RETIRED;
    }

    /// Handles a notice. `armed` says whether this member is asleep or about to sleep.
    pub(crate) fn hear(&mut self, notice: Notice, armed: bool) -> Heard {
        match notice {
            Notice::Asleep if self.posted => {
                self.posted = false;
                self.due.insert(DueNotices::RING);
                Heard::Nothing
            }
            Notice::Asleep => {
                self.sleeps = true;
                Heard::Nothing
            }
            Notice::Ring => {
                self.told = false;
                if armed { Heard::Rung } else { Heard::Nothing }
            }
            Notice::Wake => {
                self.seen = self.seen.saturating_add(1);
                self.due.insert(DueNotices::WAKE_SEEN);
                Heard::Rung
            }
            Notice::WakeSeen(count) => self.wake_seen(count),
            Notice::Retired => Heard::Retired,
            // These notices concern regions, which handle them.
            Notice::Reconnect { .. }
            | Notice::Reconnected { .. }
            | Notice::KeyLow { .. }
            | Notice::KeyHigh { .. }
            | Notice::KeyGone { .. }
            | Notice::KeyTaken { .. } => Heard::Nothing,
        }
    }

    fn wake_seen(&mut self, count: u8) -> Heard {
        let Some(waking) = self.waking.checked_sub(count) else {
            return Heard::Broken(LossCause::Misbehaved);
        };
        self.waking = waking;
        if std::mem::take(&mut self.again) {
            self.wake();
        }
        Heard::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_round_trip() {
        for notice in [
            Notice::Asleep,
            Notice::Ring,
            Notice::Wake,
            Notice::WakeSeen(4),
            Notice::Retired,
            Notice::Reconnect { region: 31, epoch: (1 << EPOCH_BITS) - 1 },
            Notice::Reconnected { region: 0, epoch: 5 },
            Notice::KeyLow { region: 31, tag: TAG_MAX, bits: u16::MAX },
            Notice::KeyHigh { region: 1, tag: 2, bits: 3 },
            Notice::KeyGone { region: 31 },
            Notice::KeyTaken { region: 9 },
        ] {
            assert_eq!(Notice::decode(notice.encode()), Some(notice));
        }
        for bad in [0, 1, 0xffff_ffff, 1 << 28 | 1, 4 << 28, 4 << 28 | 256, 9 << 28]
            .into_iter()
            .chain([12 << 28 | 1 << 22, 14 << 28 | 1, 15 << 28 | 1])
        {
            assert_eq!(Notice::decode(bad), None, "{bad:#x}");
        }
    }

    #[test]
    fn post_before_asleep_notice_rings_once() {
        let mut bell = Doorbell::new();
        bell.posted();
        assert_eq!(bell.hear(Notice::Asleep, false), Heard::Nothing);
        assert_eq!(bell.due(), DueNotices::RING);
        bell.sent(DueNotices::RING);
        // The peer woke, checked for work, and went back to sleep: nothing has been posted since.
        bell.hear(Notice::Asleep, false);
        assert_eq!(bell.due(), DueNotices::empty());
        assert!(bell.rings_with_post());
        bell.posted();
        assert!(!bell.rings_with_post(), "once a sleep");
        bell.posted();
        bell.hear(Notice::Asleep, false);
        assert_eq!(bell.due(), DueNotices::RING, "for what was posted after the ring");
    }

    #[test]
    fn repeated_arming_sends_only_one_notice() {
        let mut bell = Doorbell::new();
        bell.arm();
        bell.sent(DueNotices::ASLEEP);
        bell.arm();
        assert_eq!(bell.due(), DueNotices::empty());
        assert_eq!(bell.hear(Notice::Ring, false), Heard::Nothing, "awake: it looks by itself");
        bell.arm();
        assert_eq!(bell.due(), DueNotices::ASLEEP);
        assert_eq!(bell.hear(Notice::Ring, true), Heard::Rung);
    }

    #[test]
    fn wakes_are_bounded_and_never_lost() {
        let (mut from, mut to) = (Doorbell::new(), Doorbell::new());
        let mut sent = 0;
        for _ in 0..1000 {
            from.wake();
            if from.due() == DueNotices::WAKE {
                from.sent(DueNotices::WAKE);
                sent += 1;
            }
        }
        assert_eq!(sent, WAKES_MAX);
        for _ in 0..3 {
            assert_eq!(to.hear(Notice::Wake, false), Heard::Rung);
        }
        assert_eq!((to.due(), to.seen()), (DueNotices::WAKE_SEEN, 3));
        to.sent(DueNotices::WAKE_SEEN);
        assert_eq!(from.hear(Notice::WakeSeen(3), false), Heard::Nothing);
        assert_eq!(from.due(), DueNotices::WAKE, "for those that were asked for meanwhile");
        from.sent(DueNotices::WAKE);
        to.hear(Notice::Wake, false);
        to.hear(Notice::Wake, false);
        from.hear(Notice::WakeSeen(to.seen()), false);
        assert_eq!(from.due(), DueNotices::empty());
        assert_eq!(from.hear(Notice::WakeSeen(1), false), Heard::Broken(LossCause::Misbehaved));
    }
}
