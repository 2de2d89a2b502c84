//! What simulated runs come to: inside first, then what a user sees.

use serde::Serialize;

use crate::spread::Spread;

/// The figures of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// Of the run's time, that in which a polling thread posts: it polls all the time.
    pub(super) posting_share: f64,
    /// Of the senders' time, that in which they wait for a free slot.
    pub(super) blocked_share: f64,
    /// Of the polling threads' steps, those that find nothing to do; where that is counted.
    pub(super) idle_share: Option<f64>,
    /// Mean number of own messages that a step which sends sends.
    pub(super) send_batch: f64,
    /// Mean number of messages that a step which receives takes.
    pub(super) receive_batch: f64,
    /// Mean number of messages that are handed over together.
    pub(super) delivery_batch: f64,
    /// Mean time from the moment at which a message was ready to its delivery at a member.
    pub(super) latency_us: f64,
    /// Writes for each message, to one peer.
    pub(super) writes_per_message: f64,
    /// Rounds used without a message, at all members.
    pub(super) nulls: f64,
    /// Delivered at a member.
    pub(super) messages_per_s: f64,
    /// Delivered at a member.
    pub(super) bytes_per_s: f64,
    /// With delayed senders: bytes a second by what the others reach alone.
    pub(super) others_alone: Option<f64>,
}

/// What only the simulator shows of a configuration, over its seeds.
#[derive(Clone, Debug, Serialize)]
pub struct Inside {
    /// The seeds, one run each.
    pub seeds: Vec<u64>,
    /// Of the run's time, that in which a polling thread posts: it polls all the time.
    pub posting_share: Spread,
    /// Of the senders' time, that in which they wait for a free slot.
    pub blocked_share: Spread,
    /// Of the polling threads' steps, those that find nothing to do; where that is counted.
    pub idle_share: Option<Spread>,
    /// Mean number of own messages that a step which sends sends.
    pub send_batch: Spread,
    /// Mean number of messages that a step which receives takes.
    pub receive_batch: Spread,
    /// Mean number of messages that are handed over together.
    pub delivery_batch: Spread,
    /// Mean time from the moment at which a message was ready to its delivery at a member.
    pub latency_us: Spread,
    /// Delivered at a member.
    pub gigabytes_per_s: Spread,
}

impl Inside {
    /// Of one run a seed.
    pub(super) fn of(seeds: Vec<u64>, runs: &[Figures]) -> Self {
        let over = |figure: fn(&Figures) -> f64| spread(runs, figure);
        let idle: Option<Vec<f64>> = runs.iter().map(|run| run.idle_share).collect();
        Self {
            seeds,
            posting_share: over(|run| run.posting_share),
            blocked_share: over(|run| run.blocked_share),
            idle_share: idle.map(|shares| Spread::of(&shares)),
            send_batch: over(|run| run.send_batch),
            receive_batch: over(|run| run.receive_batch),
            delivery_batch: over(|run| run.delivery_batch),
            latency_us: over(|run| run.latency_us),
            gigabytes_per_s: over(|run| run.bytes_per_s / 1e9),
        }
    }
}

/// One figure of all runs.
pub(super) fn spread(runs: &[Figures], figure: impl Fn(&Figures) -> f64) -> Spread {
    Spread::of(&runs.iter().map(figure).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_several_seeds_are_a_median_and_a_spread() {
        let run = |rate: f64| Figures {
            bytes_per_s: rate * 1e9,
            posting_share: rate / 10.0,
            idle_share: Some(rate),
            ..Figures::default()
        };
        let runs = [run(3.0), run(1.0), run(2.0)];
        let inside = Inside::of(vec![7, 8, 9], &runs);
        assert_eq!(inside.gigabytes_per_s, Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(inside.posting_share, Spread { median: 0.2, min: 0.1, max: 0.3 });
        assert_eq!(inside.idle_share.map(|share| share.max), Some(3.0));
        let uncounted = [Figures { idle_share: None, ..run(1.0) }, run(2.0)];
        assert!(Inside::of(vec![1, 2], &uncounted).idle_share.is_none());
    }
}
