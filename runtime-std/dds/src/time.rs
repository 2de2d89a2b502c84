//! Times: what a clock on the wall says, what a clock that only goes forward says, and periods.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A period that never ends.
pub const INFINITE: Duration = Duration::MAX;

/// Nanoseconds since 1970, by the clock of the host where it was taken.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// What the clock of this host says now.
    #[must_use]
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }

    /// So much later. A time that no number holds is the last one.
    #[must_use]
    pub fn after(self, period: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(period.as_nanos()).unwrap_or(i64::MAX)))
    }

    /// How much later this is than `earlier`; nothing if it is not.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Both clocks of this host, read together: all that happens in one step has the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Now {
    /// The clock on the wall: what samples are stamped with, and what their lifespan is judged by.
    pub(crate) wall: Timestamp,
    /// Since this process first asked: what deadlines and leases are judged by.
    pub(crate) elapsed: Duration,
}

impl Now {
    pub(crate) fn read() -> Self {
        static START: OnceLock<Instant> = OnceLock::new();
        let start = START.get_or_init(Instant::now);
        Self { wall: Timestamp::now(), elapsed: start.elapsed() }
    }
}

/// The end of a wait of that length; of one that never ends, a time that does not come.
pub(crate) fn until(timeout: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    Instant::now() + timeout.min(CENTURY)
}

/// How often something that is due once in each period was missed by now, if it was. Moves what is
/// due behind now: however short the period, this takes one step.
pub(crate) fn missed(due: &mut Duration, period: Duration, now: Duration) -> Option<u32> {
    let late = now.checked_sub(*due)?;
    let count = late.as_nanos() / period.as_nanos().max(1) + 1;
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    *due = due.saturating_add(period.saturating_mul(count));
    Some(count)
}

/// Periods as whole nanoseconds, for what travels. The largest number stands for [`INFINITE`].
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
