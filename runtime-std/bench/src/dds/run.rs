//! Runs each level of each system with each number of subscribers.

use std::io::Write;

use tramontane_core::ids::NodeId;
use tramontane_core::multicast::Switches;
use tramontane_fixtures::derecho::{self, Storage, Variant};
use tramontane_fixtures::payload::Checked;
use tramontane_fixtures::profile::Profile;
use tramontane_fixtures::world::{self, Ending, Load, Plan};
use tramontane_local::print::print;

use super::command::{Arguments, DISK_BYTES_PER_US, DISK_SYNC_NS, MACHINE};
use super::level::{Level, System};
use super::report::{Report, Row};
use crate::error::BenchError;
use crate::progress::Progress;
use crate::record::run::write_text;
use crate::spread::Spread;

/// The paper's window.
const WINDOW: u32 = 100;

/// Virtual time after which a run is given up.
const LIMIT_NS: u64 = 600_000_000_000;

/// Runs them, and prints what came of it.
///
/// # Errors
/// [`BenchError`].
pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), BenchError> {
    if arguments.subscribers.contains(&0) {
        return Err(BenchError::Arguments("--subscribers is 0: a topic has at least one".into()));
    }
    let machine = arguments.machine.machine_or(MACHINE)?;
    let mut profile = machine.profile.clone();
    let disk_is_assumed = profile.disk_bytes_per_us == 0 && profile.disk_sync_ns == 0;
    if disk_is_assumed {
        (profile.disk_bytes_per_us, profile.disk_sync_ns) = (DISK_BYTES_PER_US, DISK_SYNC_NS);
    }
    let cases = System::ALL.iter().flat_map(|system| {
        Level::ALL.iter().flat_map(|level| {
            arguments.subscribers.iter().map(|subscribers| (*system, *level, *subscribers))
        })
    });
    let cases: Vec<_> = cases.collect();
    let progress = Progress::cleared_by_signals(cases.len() as u64 * arguments.seeds);
    let mut rows = Vec::new();
    for (system, level, subscribers) in cases {
        let mut rates = Vec::new();
        for seed in 1..=arguments.seeds {
            rates.push(rate(arguments, &profile, (system, level, subscribers), seed)?);
            progress.inc(1);
        }
        rows.push(Row { system, level, subscribers, gigabytes_per_s: Spread::of(&rates) });
    }
    let report = Report {
        machine: machine.name.clone(),
        bytes: arguments.bytes,
        samples: arguments.samples,
        seeds: arguments.seeds,
        disk_bytes_per_us: profile.disk_bytes_per_us,
        disk_sync_ns: profile.disk_sync_ns,
        disk_is_assumed,
        rows,
    };
    if let Some(path) = &arguments.output {
        write_text(path, &report.page())?;
    }
    Ok(print(out, arguments.json, &report, Report::text)?)
}

/// What a subscriber is handed, in GB/s.
fn rate(
    arguments: &Arguments,
    profile: &Profile,
    (system, level, subscribers): (System, Level, u16),
    seed: u64,
) -> Result<f64, BenchError> {
    match system {
        System::Baseline => {
            derecho_rate(arguments, profile, Variant::BASELINE, level, subscribers, seed)
        }
        System::Spindle => {
            derecho_rate(arguments, profile, Variant::SPINDLE, level, subscribers, seed)
        }
        System::CoreBaseline => {
            core_rate(arguments, profile, Switches::empty(), level, subscribers, seed)
        }
        System::Core => core_rate(arguments, profile, Switches::all(), level, subscribers, seed),
    }
}

fn derecho_rate(
    arguments: &Arguments,
    profile: &Profile,
    variant: Variant,
    level: Level,
    subscribers: u16,
    seed: u64,
) -> Result<f64, BenchError> {
    let members = usize::from(subscribers) + 1;
    let report = derecho::run(&derecho::Run {
        senders: 1,
        bytes: arguments.bytes.into(),
        window: WINDOW.into(),
        messages: arguments.samples,
        storage: level.storage(),
        ordered: level != Level::Unordered,
        seed,
        ..derecho::Run::new(variant, members, profile)
    });
    if report.is_stalled {
        return Err(BenchError::Setup("the simulated run stalled: nothing was delivered".into()));
    }
    Ok(report.bytes_per_s / 1e9)
}

fn core_rate(
    arguments: &Arguments,
    profile: &Profile,
    switches: Switches,
    level: Level,
    subscribers: u16,
    seed: u64,
) -> Result<f64, BenchError> {
    let members = usize::from(subscribers) + 1;
    let mut plan = Plan::fixed(members, 1, WINDOW, arguments.bytes, seed);
    plan.profile = profile.clone();
    plan.switches = switches;
    plan.subgroups[0].delivery = level.delivery();
    plan.payloads.copied = level.storage() != Storage::Nowhere;
    plan.payloads.logged = level.storage() == Storage::Disk;
    plan.until_ns = LIMIT_NS;
    plan.checked = Checked::Ends;
    plan.keep_history = false;
    let bytes = usize::try_from(arguments.bytes).unwrap_or(usize::MAX);
    plan.loads = vec![Load::continuous(NodeId(0), 0, arguments.samples, bytes)];
    let outcome = world::run(&plan).map_err(|error| BenchError::Setup(error.to_string()))?;
    if outcome.ending != Ending::Calm || !outcome.complaints.is_empty() {
        let ending = outcome.ending;
        return Err(BenchError::Setup(format!("the simulated run ended {ending:?}")));
    }
    Ok(outcome.gigabytes_per_second())
}
