//! Detection times for silent peers, as hardware counts them (HAL-4).
//!
//! A reliable connection retransmits an unanswered packet after `4.096 us * 2^exponent`, and gives
//! up after a number of retries. A caller gives a duration; the smallest pair of exponent and
//! retries that does not give up earlier is used. The device's actual time is longer, and is
//! reported as a minimum and a maximum:
//! - A device may wait up to four times the interval before it retransmits (InfiniBand
//!   specification, volume 1, 9.7.6.1.3).
//! - The firmware of a NIC raises small exponents to its own floor. For some NICs this is known to
//!   be 16, about 268 ms; a device cannot be queried for it.

use std::time::Duration;

use crate::devices::DeviceKind;

/// The smallest exponent used, which means about a millisecond. With smaller exponents, some
/// devices do not retransmit at all.
const EXPONENT_MIN: u8 = 8;

/// The exponent is encoded in five bits.
pub const EXPONENT_MAX: u8 = 31;

/// Maximum number of retries of soft-RoCE. Seven means "forever" in a neighbouring field, and
/// soft-RoCE treats it the same way in this one: it never gives up.
const SOFTWARE_RETRIES_MAX: u8 = 6;

/// Minimum number of retries. With fewer, one lost packet would lose a peer.
const SOFTWARE_RETRIES_MIN: u8 = 3;

/// On a NIC, seven means seven retries, the maximum. For a given duration, many retries at short
/// intervals survive more lost packets than few at long ones.
const ADAPTER_RETRIES: u8 = 7;

/// The largest known floor of a NIC's firmware, 268 ms. It is assumed for all NICs.
const ADAPTER_EXPONENT_FLOOR: u8 = 16;

/// The factor by which a device may exceed the interval.
const STRETCH_MAX: u32 = 4;

/// The times after which an unanswered packet is retransmitted and its peer is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LossTimes {
    /// The requested exponent: the packet is retransmitted after `4.096 us * 2^timeout_exponent`.
    pub timeout_exponent: u8,
    /// The number of retries.
    pub retries: u8,
    /// The exponent to which the device may raise smaller exponents.
    pub exponent_floor: u8,
}

impl LossTimes {
    /// Returns the shortest times with which a device of this kind does not give a peer up earlier
    /// than `wanted`. The shortest possible time is about 4 ms in software and 8 ms on a NIC; the
    /// longest, about 17 hours, is used for all longer durations. `exponent_floor` is the
    /// firmware's floor, if the caller knows it; otherwise, a cautious value for all NICs is used.
    #[must_use]
    pub fn at_least(wanted: Duration, kind: DeviceKind, exponent_floor: Option<u8>) -> Self {
        let (retries, floor_usual) = match kind {
            DeviceKind::Adapter => (ADAPTER_RETRIES..=ADAPTER_RETRIES, ADAPTER_EXPONENT_FLOOR),
            DeviceKind::SoftRoce | DeviceKind::SoftIwarp => {
                (SOFTWARE_RETRIES_MIN..=SOFTWARE_RETRIES_MAX, EXPONENT_MIN)
            }
        };
        let exponent_floor = exponent_floor.unwrap_or(floor_usual).min(EXPONENT_MAX);
        let times = |timeout_exponent, retries| Self { timeout_exponent, retries, exponent_floor };
        let longest = times(EXPONENT_MAX, *retries.end());
        (EXPONENT_MIN..=EXPONENT_MAX)
            .flat_map(|exponent| retries.clone().map(move |retries| times(exponent, retries)))
            .filter(|times| times.least() >= wanted)
            .min_by_key(Self::least)
            .unwrap_or(longest)
    }

    /// Returns the shortest time to the first retry.
    #[must_use]
    pub fn first_retry(&self) -> Duration {
        interval(self.timeout_exponent)
    }

    /// Returns the shortest time after which a silent peer is given up: it is never below the
    /// requested time, except at the upper limit of the encoding.
    #[must_use]
    pub fn least(&self) -> Duration {
        self.first_retry().saturating_mul(u32::from(self.retries) + 1)
    }

    /// Returns the longest time after which a silent peer is given up: every interval is raised to
    /// the floor and multiplied by four.
    #[must_use]
    pub fn longest(&self) -> Duration {
        interval(self.timeout_exponent.max(self.exponent_floor))
            .saturating_mul(STRETCH_MAX * (u32::from(self.retries) + 1))
    }
}

fn interval(exponent: u8) -> Duration {
    Duration::from_nanos(4096_u64 << exponent.min(EXPONENT_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [DeviceKind; 2] = [DeviceKind::SoftRoce, DeviceKind::Adapter];

    fn at_least(milliseconds: u64, kind: DeviceKind) -> LossTimes {
        LossTimes::at_least(Duration::from_millis(milliseconds), kind, None)
    }

    #[test]
    fn loss_time_is_rounded_up_closely() {
        for milliseconds in [1, 10, 66, 400, 1000, 5000, 60_000] {
            let wanted = Duration::from_millis(milliseconds);
            for (kind, factor) in KINDS.into_iter().zip([3, 4]) {
                let times = at_least(milliseconds, kind);
                assert!(times.least() >= wanted, "{times:?}");
                if milliseconds >= 10 {
                    assert!(times.least() < wanted * factor / 2, "{wanted:?} became {times:?}");
                }
            }
        }
    }

    #[test]
    fn only_nics_use_seven_retries() {
        for milliseconds in [1, 10, 66, 400, 1000, 5000, 60_000, u64::MAX] {
            assert_eq!(at_least(milliseconds, DeviceKind::Adapter).retries, 7);
            let software = at_least(milliseconds, DeviceKind::SoftRoce).retries;
            assert!((3..=6).contains(&software), "{software}");
        }
        // NICs get more retries at shorter intervals for the same time.
        let (adapter, software) =
            (at_least(1000, DeviceKind::Adapter), at_least(1000, DeviceKind::SoftRoce));
        assert_eq!((adapter.timeout_exponent, software.timeout_exponent), (15, 16));
    }

    #[test]
    fn longest_loss_time_includes_floor_and_stretch() {
        let short = at_least(10, DeviceKind::Adapter);
        assert_eq!(short.first_retry(), Duration::from_nanos(4096 << 9));
        assert_eq!(short.longest(), Duration::from_nanos(4096 << 16) * 8 * 4);
        let known = LossTimes::at_least(Duration::from_millis(10), DeviceKind::Adapter, Some(12));
        assert_eq!(known.longest(), Duration::from_nanos(4096 << 12) * 8 * 4);
        // Above the floor, only the retransmissions extend the time.
        for times in [at_least(60_000, DeviceKind::Adapter), at_least(10, DeviceKind::SoftRoce)] {
            assert_eq!(times.longest(), times.least() * 4);
        }
    }

    #[test]
    fn extreme_durations_are_clamped() {
        for (kind, retries) in KINDS.into_iter().zip([6, 7]) {
            let shortest = LossTimes::at_least(Duration::ZERO, kind, None);
            assert!(shortest.first_retry() >= Duration::from_millis(1));
            let longest = LossTimes::at_least(Duration::MAX, kind, Some(u8::MAX));
            assert_eq!((longest.timeout_exponent, longest.retries), (31, retries));
            assert!(longest.longest() > longest.least());
        }
    }
}
