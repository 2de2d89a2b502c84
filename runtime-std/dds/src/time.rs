//! Times on a wall clock, times on a monotonic clock, and periods.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A period that never ends.
pub const INFINITE: Duration = Duration::MAX;

/// Nanoseconds since 1970, by the clock of the host on which the time was taken.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Returns the current time on this host's clock.
    #[must_use]
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }

    /// Returns this time plus a period, or the last representable time.
    #[must_use]
    pub fn after(self, period: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(period.as_nanos()).unwrap_or(i64::MAX)))
    }

    /// Returns how much later this is than `earlier`, or zero if it is not later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Both clocks of this host, read together: all events in one step have the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Now {
    /// The wall-clock time, with which samples are stamped and by which their lifespan is judged.
    pub(crate) wall: Timestamp,
    /// The time since this process first read the clock, by which deadlines and leases are judged.
    pub(crate) elapsed: Duration,
}

impl Now {
    pub(crate) fn read() -> Self {
        static START: OnceLock<Instant> = OnceLock::new();
        let start = START.get_or_init(Instant::now);
        Self { wall: Timestamp::now(), elapsed: start.elapsed() }
    }
}

/// Returns the end of a wait of this length. For an endless wait, this is a time that never comes.
pub(crate) fn until(timeout: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    Instant::now() + timeout.min(CENTURY)
}

/// Returns the number of periods that have been missed by now. Moves `due` past now, in one step
/// however short the period is.
pub(crate) fn missed(due: &mut Duration, period: Duration, now: Duration) -> Option<u32> {
    let late = now.checked_sub(*due)?;
    let count = late.as_nanos() / period.as_nanos().max(1) + 1;
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    *due = due.saturating_add(period.saturating_mul(count));
    Some(count)
}

/// Encodes periods as whole nanoseconds. The largest number means [`INFINITE`].
pub(crate) mod nanoseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize as _, Serializer};

    pub(crate) fn serialize<S: Serializer>(period: &Duration, to: S) -> Result<S::Ok, S::Error> {
        u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        Ok(match u64::deserialize(from)? {
            u64::MAX => super::INFINITE,
            count => Duration::from_nanos(count),
        })
    }
}
