//! How long a peer may be silent, as hardware counts it (HAL-4).
//!
//! A reliable connection sends an unanswered packet again after `4.096 us * 2^exponent`, and gives
//! up after so many retries. A caller gives a duration; the pair that is nearest above it is taken,
//! and what it comes to is reported.

use std::time::Duration;

/// The least exponent that is taken: about a millisecond. Below it some devices do not send again
/// at all.
const EXPONENT_MIN: u8 = 8;

/// The exponent has five bits.
const EXPONENT_MAX: u8 = 31;

/// Seven stands for "for ever" in a neighbouring field, and on a software device it never came to
/// an end.
const RETRIES_MAX: u8 = 6;

/// Fewer, and one lost packet would lose a peer.
const RETRIES_MIN: u8 = 3;

/// When an unanswered packet is sent again, and when its peer is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LossTimes {
    /// The packet is sent again after `4.096 us * 2^timeout_exponent`.
    pub timeout_exponent: u8,
    /// So many times.
    pub retries: u8,
}

impl LossTimes {
    /// The shortest times at which a peer is given up no earlier than asked for. The shortest of
    /// all is about 4 ms; the longest, about 17 hours, stands for everything above.
    #[must_use]
    pub fn at_least(wanted: Duration) -> Self {
        let longest = Self { timeout_exponent: EXPONENT_MAX, retries: RETRIES_MAX };
        (EXPONENT_MIN..=EXPONENT_MAX)
            .flat_map(|timeout_exponent| {
                (RETRIES_MIN..=RETRIES_MAX).map(move |retries| Self { timeout_exponent, retries })
            })
            .filter(|times| times.total() >= wanted)
            .min_by_key(Self::total)
            .unwrap_or(longest)
    }

    /// The time to the first retry.
    #[must_use]
    pub fn each(&self) -> Duration {
        Duration::from_nanos(4096_u64 << self.timeout_exponent.min(EXPONENT_MAX))
    }

    /// The time after which a silent peer is given up. Devices may take up to four times as long.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.each().saturating_mul(u32::from(self.retries) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_rounded_up_and_not_far() {
        for milliseconds in [1, 5, 10, 66, 400, 1000, 5000, 60_000] {
            let wanted = Duration::from_millis(milliseconds);
            let times = LossTimes::at_least(wanted);
            assert!(times.total() >= wanted, "{times:?}");
            assert!((RETRIES_MIN..=RETRIES_MAX).contains(&times.retries), "{times:?}");
            if milliseconds >= 5 {
                assert!(times.total() < wanted * 3 / 2, "{wanted:?} became {:?}", times.total());
            }
        }
    }

    #[test]
    fn nothing_below_a_millisecond_and_nothing_that_overflows() {
        assert!(LossTimes::at_least(Duration::ZERO).each() >= Duration::from_millis(1));
        let longest = LossTimes::at_least(Duration::MAX);
        assert_eq!((longest.timeout_exponent, longest.retries), (31, 6));
    }
}
