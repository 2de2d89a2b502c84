//! Small messages, sent continuously (Spindle IV): by Derecho as the paper describes it, before
//! Spindle and with each of its steps, or by our own core.

mod own_core;

use serde::Deserialize;
use tramontane_fixtures::derecho::{self, Active, Delay, Report, Run};
use tramontane_fixtures::profile::Profile;

use super::figures::Figures;
use crate::error::BenchError;
use crate::options::{Senders, Technique};

/// Derecho with Spindle's steps up to a given one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Variant {
    /// Derecho before Spindle: it delivers in batches. For the core, nothing is in batches.
    Baseline,
    /// Deliveries in batches: for Derecho, the baseline.
    Delivery,
    /// The baseline with batched receives.
    Receive,
    /// `Receive` with batched sends: all of Spindle's batching.
    Batching,
    /// `Batching` with nulls.
    Nulls,
    /// All of Spindle: `Nulls`, with posts outside the lock.
    Spindle,
}

/// The time for which a sender waits after each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(untagged)]
pub(super) enum Wait {
    /// A number of nanoseconds.
    Ns(u64),
    /// The sender waits forever: it is declared as a sender, but sends nothing.
    ForEver(ForEver),
}

/// The keyword for an endless wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ForEver {
    ForEver,
}

/// The storage of delivered messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Storage {
    Nowhere,
    Memory,
    Disk,
}

/// Continuous sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Sending {
    /// For the core: the steps that correspond most closely to our switches; the baseline means no
    /// switches.
    variant: Variant,
    /// Whether our own core runs instead of Derecho.
    is_core: bool,
    /// For the core: the technique of the variant that is disabled.
    without: Option<Technique>,
    /// Number of ready messages for which a send waits, which the paper tried and rejected (III-A).
    fixed_batch: Option<u16>,
    nodes: u16,
    senders: Senders,
    bytes: u32,
    window: u32,
    /// Number of messages per sender; by default, enough to make the start negligible.
    messages: Option<u64>,
    /// Number of subgroups, each with all nodes.
    subgroups: u16,
    /// Whether all subgroups send; otherwise only the first does.
    all_active: bool,
    wait: Wait,
    /// The senders that wait.
    waiting: Senders,
    /// Duration of the application's upcall.
    upcall_ns: u64,
    /// Whether the application copies messages into slots and out of them.
    copies: bool,
    /// Whether samples are delivered out of order, as soon as they arrive.
    unordered: bool,
    storage: Storage,
}

/// The usual run: messages of 10 KB, a window of 100, one subgroup, and all members send.
impl Default for Sending {
    fn default() -> Self {
        Self {
            variant: Variant::Spindle,
            is_core: false,
            without: None,
            fixed_batch: None,
            nodes: 16,
            senders: Senders::All,
            bytes: 10_240,
            window: 100,
            messages: None,
            subgroups: 1,
            all_active: false,
            wait: Wait::Ns(0),
            waiting: Senders::One,
            upcall_ns: 0,
            copies: false,
            unordered: false,
            storage: Storage::Nowhere,
        }
    }
}

/// The rate of a disk and the time of a sync, if the machine's profile does not give them. They are
/// assumed, because the paper does not say which disk it used.
const DISK_BYTES_PER_US: u64 = 2_000;
const DISK_SYNC_NS: u64 = 20_000;

/// The names of the stages' batches.
const STAGES: [&str; 3] = ["send_batches", "receive_batches", "delivery_batches"];

impl Sending {
    /// Runs the case.
    ///
    /// # Errors
    /// Fails with [`BenchError::Setup`] if the run does not end as it should.
    pub(super) fn run(&self, profile: &Profile, seed: u64) -> Result<Figures, BenchError> {
        let mut profile = profile.clone();
        if (profile.disk_bytes_per_us, profile.disk_sync_ns) == (0, 0) {
            (profile.disk_bytes_per_us, profile.disk_sync_ns) = (DISK_BYTES_PER_US, DISK_SYNC_NS);
        }
        if self.is_core { self.run_core(profile, seed) } else { self.run_derecho(&profile, seed) }
    }

    /// Returns a number of messages that fills a window often.
    fn messages(&self) -> u64 {
        let usual = (12_000 / u64::from(self.senders.of(self.nodes)))
            .clamp(1_000, 2_000)
            .max(5 * u64::from(self.window));
        self.messages.unwrap_or(usual)
    }

    fn run_derecho(&self, profile: &Profile, seed: u64) -> Result<Figures, BenchError> {
        let variant = match self.variant {
            Variant::Baseline | Variant::Delivery => derecho::Variant::BASELINE,
            Variant::Receive => derecho::Variant::RECEIVE,
            Variant::Batching => derecho::Variant::BATCHING,
            Variant::Nulls => derecho::Variant::NULLS,
            Variant::Spindle => derecho::Variant::SPINDLE,
        };
        let variant = match self.fixed_batch {
            Some(messages) => variant.in_batches_of(messages.into()),
            None => variant,
        };
        let senders = self.senders.of(self.nodes);
        let delay = match self.wait {
            Wait::Ns(wait_ns) => Delay::Ns(wait_ns),
            Wait::ForEver(_) => Delay::ForEver,
        };
        let setup = Run {
            senders: senders.into(),
            bytes: self.bytes.into(),
            window: self.window.into(),
            messages: self.messages(),
            subgroups: self.subgroups.into(),
            active: if self.all_active { Active::All } else { Active::One },
            delay,
            delayed: if delay == Delay::Ns(0) { 0 } else { self.waiting.of(senders).into() },
            upcall_ns: self.upcall_ns,
            copies: self.copies,
            storage: match self.storage {
                Storage::Nowhere => derecho::Storage::Nowhere,
                Storage::Memory => derecho::Storage::Memory,
                Storage::Disk => derecho::Storage::Disk,
            },
            ordered: !self.unordered,
            seed,
            ..Run::new(variant, self.nodes.into(), profile)
        };
        let report = derecho::run(&setup);
        if report.is_stalled {
            let what = "the simulated run stalled: nothing was delivered";
            return Err(BenchError::Setup(what.into()));
        }
        Ok(figures(&setup, &report))
    }
}

/// Returns the figures of Derecho, for the mean member unless noted.
fn figures(setup: &Run, report: &Report) -> Figures {
    let messages = setup.messages as f64;
    let senders = setup.senders as u64;
    let whole = |size: u64| size > 0 && size.is_multiple_of(senders);
    let mut figures = Figures::from([
        ("gb_per_s", report.bytes_per_s / 1e9),
        ("messages_per_s", report.messages_per_s),
        // Time from commit to delivery.
        ("latency_us", report.latency_ns / 1e3),
        // Updates handed to the NIC for all peers, per message from a sender.
        ("puts", report.puts / messages),
        ("posting_us", report.posting_ns / 1e3 / messages),
        ("posting_share", report.posting_share),
        // The share of the run that a sender waits for a free slot.
        ("blocked_share", report.blocked_share),
        // The active subgroup's share of the polling thread's time.
        ("active_share", report.active_share),
        ("send_batch", report.send_batches.mean()),
        ("receive_batch", report.receive_batches.mean()),
        ("delivery_batch", report.delivery_batches.mean()),
        // Shares of two kinds of batches: those with fewer than 5 messages, and those whose size is
        // a multiple of the number of senders.
        ("small_send_batches", report.send_batches.share(|size| size < 5)),
        ("whole_delivery_batches", report.delivery_batches.share(whole)),
    ]);
    if setup.delayed > 0 {
        // The first senders wait. Figures: the receive predicates that sent nulls at those senders,
        // and at one that does not wait, per message from a sender.
        let nulls = |sender: usize| report.null_iterations.get(sender).map(|of| *of as f64);
        figures.extend(nulls(0).map(|of| ("waiting_nulls", of / messages)));
        figures.extend(nulls(setup.delayed).map(|of| ("other_nulls", of / messages)));
        // Time from one delivery to the next, for the first sender's messages.
        let since_ns = report.since_previous_ns.first();
        figures.extend(since_ns.map(|since_ns| ("between_us", since_ns / 1e3)));
    }
    let batches = [&report.send_batches, &report.receive_batches, &report.delivery_batches];
    figures.distributions = STAGES.into_iter().zip(batches.map(Clone::clone)).collect();
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_and_derecho_models_report_figures() {
        for is_core in [false, true] {
            let case = Sending { bytes: 100, nodes: 3, is_core, ..Sending::default() };
            let figures = case.run(&Profile::default(), 1).expect("it ran");
            let bytes = figures["gb_per_s"] * 1e9 / figures["messages_per_s"];
            assert!((bytes - 100.0).abs() < 1e-6, "{bytes}");
            assert!(figures.values().all(|figure| *figure >= 0.0 && figure.is_finite()));
        }
    }

    #[test]
    fn stalled_run_has_no_figures() {
        let wait = Wait::ForEver(ForEver::ForEver);
        for (is_core, word) in [(false, "stalled"), (true, "Stalled")] {
            let case = Sending { nodes: 3, wait, is_core, ..Sending::default() };
            case.run(&Profile::default(), 1).expect("nulls take its turns");
            let case = Sending { variant: Variant::Batching, ..case };
            let told = case.run(&Profile::default(), 1).expect_err("it stalls");
            assert!(told.to_string().contains(word), "{told}");
        }
    }

    #[test]
    fn copies_upcalls_and_idle_subgroups_slow_the_core() {
        let profile = Profile { copy_ns: 3000, ..Profile::default() };
        let case = Sending { bytes: 100, nodes: 3, is_core: true, ..Sending::default() };
        let rate = |case: Sending| case.run(&profile, 1).expect("it ran")["gb_per_s"];
        let usual = rate(case);
        for slower in [
            Sending { copies: true, ..case },
            Sending { upcall_ns: 3000, ..case },
            Sending { subgroups: 50, ..case },
            Sending { without: Some(Technique::ReceiveBatching), ..case },
        ] {
            let rate = rate(slower);
            assert!(rate < usual, "{rate} {usual} {slower:?}");
        }
    }

    #[test]
    fn waiting_senders_of_core_use_rounds_as_nulls() {
        let (bytes, wait) = (100, Wait::Ns(100_000));
        let case = Sending { bytes, nodes: 3, is_core: true, wait, ..Sending::default() };
        let figures = case.run(&Profile::default(), 1).expect("it ran");
        assert!(figures["waiting_nulls"] > figures["other_nulls"], "{figures:?}");
        assert!((0.25..0.34).contains(&figures["null_share"]), "{figures:?}");
    }
}
