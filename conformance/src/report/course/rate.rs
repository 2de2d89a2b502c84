//! Deliveries and their latencies over time, in slots whose width grows with the history.

/// Limit of slots.
const SLOTS: usize = 128;

/// The initial width of a slot.
const WIDTH_NS: u64 = 1 << 20;

/// Latencies are counted in four steps per power of two, so a figure is at most a quarter above the
/// lower bound of its step.
const STEPS: u32 = 4;

/// The latency of the first step, as a power of two: 1 us.
const FIRST_EXPONENT: u32 = 10;

/// Number of powers of two: up to 17 min.
const EXPONENTS: u32 = 30;

const BINS: usize = (EXPONENTS * STEPS) as usize;

/// The deliveries within one time slot.
#[derive(Clone)]
struct TimeSlot {
    deliveries: u64,
    latencies: [u32; BINS],
}

impl Default for TimeSlot {
    fn default() -> Self {
        Self { deliveries: 0, latencies: [0; BINS] }
    }
}

/// Deliveries over time.
pub(super) struct Rates {
    width_ns: u64,
    slots: Vec<TimeSlot>,
}

/// The figures of a slot to draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figures {
    pub(super) middle_ns: u64,
    pub(super) per_second: f64,
    /// Median latency in nanoseconds, rounded up to a step; the next field is the 99th percentile.
    pub(super) median_ns: Option<u64>,
    pub(super) high_ns: Option<u64>,
}

impl Default for Rates {
    fn default() -> Self {
        Self { width_ns: WIDTH_NS, slots: Vec::new() }
    }
}

impl Rates {
    /// Counts a delivery with its latency since the multicast, if known.
    pub(super) fn deliver(&mut self, t_ns: u64, latency_ns: Option<u64>) {
        while t_ns / self.width_ns >= SLOTS as u64 {
            self.widen();
        }
        let place = usize::try_from(t_ns / self.width_ns).unwrap_or(SLOTS - 1);
        if self.slots.len() <= place {
            self.slots.resize(place + 1, TimeSlot::default());
        }
        let slot = &mut self.slots[place];
        slot.deliveries += 1;
        if let Some(latency_ns) = latency_ns {
            let bin = &mut slot.latencies[bin(latency_ns)];
            *bin = bin.saturating_add(1);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Merges each pair of slots into one.
    fn widen(&mut self) {
        self.width_ns *= 2;
        let merged = self.slots.chunks(2).map(|pair| {
            let mut both = TimeSlot::default();
            for slot in pair {
                both.deliveries += slot.deliveries;
                for (sum, count) in both.latencies.iter_mut().zip(&slot.latencies) {
                    *sum = sum.saturating_add(*count);
                }
            }
            both
        });
        self.slots = merged.collect();
    }

    /// Iterates over the figures of each slot, in order.
    #[expect(clippy::cast_precision_loss, reason = "it is drawn")]
    pub(super) fn figures(&self) -> impl Iterator<Item = Figures> + '_ {
        let seconds = self.width_ns as f64 / 1e9;
        self.slots.iter().enumerate().map(move |(place, slot)| Figures {
            middle_ns: self.width_ns * place as u64 + self.width_ns / 2,
            per_second: slot.deliveries as f64 / seconds,
            median_ns: slot.percentile(50),
            high_ns: slot.percentile(99),
        })
    }
}

impl TimeSlot {
    /// Returns a percentile of the latency, to the precision of a step.
    fn percentile(&self, percent: u64) -> Option<u64> {
        let all: u64 = self.latencies.iter().map(|count| u64::from(*count)).sum();
        let wanted = (all * percent).div_ceil(100).max(1);
        let mut below = 0;
        let reached = self.latencies.iter().position(|count| {
            below += u64::from(*count);
            below >= wanted
        });
        reached.map(bound_ns)
    }
}

/// Returns the step of a latency.
fn bin(latency_ns: u64) -> usize {
    let latency_ns = latency_ns.max(1 << FIRST_EXPONENT);
    let exponent = latency_ns.ilog2();
    let part = (latency_ns >> (exponent - 2)) & u64::from(STEPS - 1);
    let place = u64::from((exponent - FIRST_EXPONENT) * STEPS) + part;
    usize::try_from(place).unwrap_or(BINS).min(BINS - 1)
}

/// Returns the lower bound of a step.
fn bound_ns(bin: usize) -> u64 {
    let (exponent, part) = (bin as u64 / u64::from(STEPS), bin as u64 % u64::from(STEPS));
    (u64::from(STEPS) + part) << (u64::from(FIRST_EXPONENT) + exponent - 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_lies_within_its_histogram_bin() {
        for latency_ns in [1024, 1500, 2047, 2048, 5_000_000, 999_999_999] {
            let bound = bound_ns(bin(latency_ns));
            assert!(bound <= latency_ns && latency_ns < bound + bound / 4 + 1, "{latency_ns}");
        }
        assert_eq!(bin(0), 0);
        assert_eq!(bin(u64::MAX), BINS - 1);
    }

    #[test]
    fn long_history_widens_time_slots_without_loss() {
        let mut rates = Rates::default();
        for second in 0..100 {
            rates.deliver(second * 1_000_000_000, Some(2_000_000));
        }
        let figures: Vec<Figures> = rates.figures().collect();
        assert!(figures.len() <= SLOTS);
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let seconds = rates.width_ns as f64 / 1e9;
        let all: f64 = figures.iter().map(|figures| figures.per_second * seconds).sum();
        assert!((all - 100.0).abs() < 1e-6, "{all}");
        let median = figures[0].median_ns.expect("there is one");
        assert!((1_600_000..=2_000_000).contains(&median), "{median}");
    }
}
