//! Continuous sending of our own core: the real protocol over the simulated network.

use tramontane_core::ids::NodeId;
use tramontane_core::multicast::Switches;
use tramontane_fixtures::payload::Checked;
use tramontane_fixtures::profile::Profile;
use tramontane_fixtures::world::{self, Ending, Load, Outcome, Plan};

use super::figures::Figures;
use super::{Case, MESSAGES};
use crate::error::BenchError;

/// Virtual time after which a run is given up.
const LIMIT_NS: u64 = 60_000_000_000;

/// What a case's runs share.
pub(super) struct Core<'c> {
    pub(super) case: &'c Case,
    pub(super) profile: &'c Profile,
    pub(super) switches: Switches,
}

impl Core<'_> {
    /// One run.
    ///
    /// # Errors
    /// [`BenchError::Setup`] if it does not end as it should.
    pub(super) fn run(&self, seed: u64) -> Result<Figures, BenchError> {
        let Case { senders, delayed, delay_us, .. } = *self.case;
        let messages = self.case.messages.unwrap_or(MESSAGES);
        // What the senders that never wait could do alone comes first: it says how long a run with
        // the others takes, and so how many messages waiting members can send meanwhile.
        let (alone, waiting) = if delayed > 0 && delayed < senders {
            let sent_by = |rank| if rank < delayed { 0 } else { messages };
            let alone = self.simulate(seed, 0, sent_by)?;
            let waits = alone.duration_ns.div_ceil(delay_us * 1_000);
            (Some(alone.gigabytes_per_second()), waits.min(messages))
        } else {
            (None, messages)
        };
        let sent_by = |rank| if rank < delayed { waiting } else { messages };
        let outcome = self.simulate(seed, delayed, sent_by)?;
        let others_alone = alone.map(|alone| outcome.gigabytes_per_second() / alone);
        Ok(Figures { others_alone, ..figures(self.case, &outcome) })
    }

    /// Runs the senders with as many messages as `messages` says by rank; the first `delayed` wait
    /// after each. A sender without messages is left out of the sender list.
    fn simulate(
        &self,
        seed: u64,
        delayed: u16,
        messages: impl Fn(u16) -> u64,
    ) -> Result<Outcome, BenchError> {
        let Case { nodes, senders, bytes, window, delay_us, .. } = *self.case;
        let mut plan = Plan::fixed(nodes.into(), senders.into(), window, bytes, seed);
        plan.profile = self.profile.clone();
        plan.subgroups[0].senders.retain(|node| messages(node.0 as u16) > 0);
        plan.switches = self.switches;
        plan.until_ns = LIMIT_NS;
        plan.checked = Checked::Ends;
        plan.keep_history = false;
        plan.loads = (0..senders)
            .filter(|rank| messages(*rank) > 0)
            .map(|rank| Load {
                delay_ns: if rank < delayed { delay_us * 1_000 } else { 0 },
                ..Load::continuous(NodeId(rank.into()), 0, messages(rank), bytes as usize)
            })
            .collect();
        let outcome = world::run(&plan).map_err(|error| BenchError::Setup(error.to_string()))?;
        if outcome.ending != Ending::Calm || !outcome.complaints.is_empty() {
            let ending = outcome.ending;
            return Err(BenchError::Setup(format!("the simulated run ended {ending:?}")));
        }
        Ok(outcome)
    }
}

/// The figures of a run, but for what it is compared with.
fn figures(case: &Case, outcome: &Outcome) -> Figures {
    let total = |number| outcome.total(number) as f64;
    let sent = total(|process| process.sent).max(1.0);
    let peers = f64::from(case.nodes.saturating_sub(1).max(1));
    Figures {
        posting_share: outcome.posting_share(),
        blocked_share: outcome.blocked_share(case.senders.into()),
        idle_share: Some(outcome.idle_share()),
        send_batch: outcome.batches(|process| &process.send_batches).mean(),
        receive_batch: outcome.batches(|process| &process.receive_batches).mean(),
        delivery_batch: outcome.batches(|process| &process.delivery_batches).mean(),
        latency_us: outcome.latency().mean_ns() / 1e3,
        writes_per_message: total(|process| process.counts.writes) / sent / peers,
        nulls: total(|process| process.nulls),
        messages_per_s: outcome.messages_per_second(),
        bytes_per_s: outcome.gigabytes_per_second() * 1e9,
        others_alone: None,
    }
}
