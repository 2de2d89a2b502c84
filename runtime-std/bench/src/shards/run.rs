//! Runs the requested configurations on this machine: the systems take turns, round by round, so
//! that all run under the same conditions.

use std::io::Write;
use std::path::PathBuf;

use tramontane_local::crew::CrewError;
use tramontane_local::interrupt::Interrupts;
use tramontane_local::print::print;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::shared_memory::Root;

use super::command::{ShardsArguments, TramSystem};
use super::load::ClientFigures;
use super::report::{ShardsReport, ShardsRow};
use super::takeover::{self, Takeovers};
use super::tram::{self, REPLICAS, Setting};
use crate::error::BenchError;
use crate::machine::machine;
use crate::progress::StepsBar;

/// A configuration: a system and its fabric.
#[derive(Clone, Copy, Debug)]
struct Configuration {
    system: TramSystem,
    setting: Setting,
}

/// Runs the requested configurations and prints the results.
///
/// # Errors
/// [`BenchError`].
pub(crate) fn run(arguments: &ShardsArguments, out: &mut impl Write) -> Result<(), BenchError> {
    let interrupts = Interrupts::watch()?;
    let carriers = &arguments.fabric;
    if carriers.contains(&Carrier::Verbs) {
        return Err(BenchError::Arguments(
            "shards are measured only over shm and tcp; use --fabric shm,tcp".into(),
        ));
    }
    let mut report = ShardsReport { machine: machine(), rows: Vec::new(), takeovers: Vec::new() };
    if arguments.kills > 0 {
        report.takeovers = takeovers(arguments, carriers, &interrupts)?;
    } else {
        report.rows = loads(arguments, carriers, &interrupts)?;
    }
    // Removes possible remains of killed processes.
    Root::from_env().sweep()?;
    Ok(print(out, arguments.json, &report, ShardsReport::text)?)
}

fn loads(
    arguments: &ShardsArguments,
    carriers: &[Carrier],
    interrupts: &Interrupts,
) -> Result<Vec<ShardsRow>, BenchError> {
    let configurations = arguments.configurations(carriers);
    let mut seen: Vec<Vec<[ClientFigures; 2]>> = vec![Vec::new(); configurations.len()];
    let progress = StepsBar::new(configurations.len() as u64 * arguments.rounds);
    for _ in 0..arguments.rounds {
        for (configuration, seen) in configurations.iter().zip(&mut seen) {
            interrupts.check().map_err(CrewError::from)?;
            seen.push(tram::run(&configuration.setting, &arguments.disk(), interrupts)?);
            progress.inc(1);
        }
    }
    let rows = configurations.iter().zip(&seen).flat_map(|(configuration, seen)| {
        [0, 1].map(|load| {
            let of_load: Vec<ClientFigures> = seen.iter().map(|seen| seen[load]).collect();
            let Configuration { system, setting } = configuration;
            let under_way = if load == 0 { 1 } else { setting.window };
            ShardsRow::of(system.name(), REPLICAS, setting, under_way, &of_load)
        })
    });
    Ok(rows.collect())
}

fn takeovers(
    arguments: &ShardsArguments,
    carriers: &[Carrier],
    interrupts: &Interrupts,
) -> Result<Vec<Takeovers>, BenchError> {
    let progress = StepsBar::new(u64::from(arguments.kills) * carriers.len() as u64);
    let inc = || progress.inc(1);
    let one = |carrier: &Carrier| {
        let (Some(system), Some(bytes)) = (arguments.system.first(), arguments.bytes.first())
        else {
            return Err(BenchError::Arguments(
                "--kills needs a system and a size; give --system and --bytes".into(),
            ));
        };
        let setting = arguments.setting(*system, *carrier, 1, *bytes);
        takeover::run(&setting, &arguments.disk(), arguments.kills, interrupts, &inc)
    };
    carriers.iter().map(one).collect()
}

impl ShardsArguments {
    fn setting(&self, system: TramSystem, carrier: Carrier, groups: u16, bytes: u32) -> Setting {
        let Self { window, messages, .. } = *self;
        Setting { carrier, groups, window, messages, bytes, system }
    }

    fn disk(&self) -> PathBuf {
        self.folder.clone().unwrap_or_else(std::env::temp_dir)
    }

    fn configurations(&self, carriers: &[Carrier]) -> Vec<Configuration> {
        let mut configurations = Vec::new();
        for carrier in carriers {
            for groups in &self.destinations {
                for bytes in &self.bytes {
                    let of = |system: &TramSystem| Configuration {
                        system: *system,
                        setting: self.setting(*system, *carrier, *groups, *bytes),
                    };
                    configurations.extend(self.system.iter().map(of));
                }
            }
        }
        configurations
    }
}
