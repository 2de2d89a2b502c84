//! Runs what is asked for on this machine: the systems in turn, round by round, so that all see the
//! machine alike.

use std::io::Write;
use std::time::Duration;

use tramontane_core::ids::GroupId;
use tramontane_fixtures::baselines::{Options, Protocol};
use tramontane_local::crew::CrewError;
use tramontane_local::interrupt::Interrupts;
use tramontane_local::print::print;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::shared_memory::Root;

use super::command::{RealArguments, RealSystem};
use super::load::Seen;
use super::report::{Report, Row};
use super::takeover::{self, Takeovers};
use super::tram::{self, REPLICAS, Setting};
use crate::baselines;
use crate::error::BenchError;
use crate::machine::machine;
use crate::progress::Progress;

/// After how long a run of a baseline is given up.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// A configuration: a system, and what it runs over.
#[derive(Clone, Copy, Debug)]
struct Configuration {
    system: RealSystem,
    setting: Setting,
}

/// Runs what is asked for, and prints what came of it.
pub(crate) fn run(
    arguments: &RealArguments,
    json: bool,
    out: &mut impl Write,
) -> Result<(), BenchError> {
    let interrupts = Interrupts::watch()?;
    let carriers = arguments.carriers()?;
    let mut report = Report { machine: machine(), rows: Vec::new(), takeovers: Vec::new() };
    if arguments.kills > 0 {
        report.takeovers = takeovers(arguments, &carriers, &interrupts)?;
    } else {
        report.rows = loads(arguments, &carriers, &interrupts)?;
    }
    // What processes that were killed may have left.
    Root::from_env().sweep()?;
    Ok(print(out, json, &report, Report::text)?)
}

fn loads(
    arguments: &RealArguments,
    carriers: &[Carrier],
    interrupts: &Interrupts,
) -> Result<Vec<Row>, BenchError> {
    let configurations = arguments.configurations(carriers);
    let mut seen: Vec<Vec<[Seen; 2]>> = vec![Vec::new(); configurations.len()];
    let progress = Progress::new(configurations.len() as u64 * arguments.rounds);
    for _ in 0..arguments.rounds {
        for (configuration, seen) in configurations.iter().zip(&mut seen) {
            interrupts.check().map_err(CrewError::from)?;
            seen.push(configuration.run(interrupts)?);
            progress.inc(1);
        }
    }
    let rows = configurations.iter().zip(&seen).flat_map(|(configuration, seen)| {
        [0, 1].map(|load| {
            let of_load: Vec<Seen> = seen.iter().map(|seen| seen[load]).collect();
            let Configuration { system, setting } = configuration;
            let under_way = if load == 0 { 1 } else { setting.window };
            Row::of(system.name(), system.replicas(), setting, under_way, &of_load)
        })
    });
    Ok(rows.collect())
}

fn takeovers(
    arguments: &RealArguments,
    carriers: &[Carrier],
    interrupts: &Interrupts,
) -> Result<Vec<Takeovers>, BenchError> {
    let progress = Progress::new(u64::from(arguments.kills) * carriers.len() as u64);
    let inc = || progress.inc(1);
    let one = |carrier: &Carrier| {
        let (Some(system), Some(bytes)) = (arguments.system.first(), arguments.bytes.first())
        else {
            return Err(BenchError::Arguments("--kills needs a system and a size".into()));
        };
        if system.baseline().is_some() {
            let what = "--kills is of TRAM: give --system tram or tram-references";
            return Err(BenchError::Arguments(what.into()));
        }
        let setting = arguments.setting(*system, *carrier, 1, *bytes);
        takeover::run(&setting, arguments.kills, interrupts, &inc)
    };
    carriers.iter().map(one).collect()
}

impl RealArguments {
    fn carriers(&self) -> Result<Vec<Carrier>, BenchError> {
        let of = |kind: &crate::options::FabricKind| match kind.carrier() {
            Some(carrier @ (Carrier::SharedMemory | Carrier::Tcp)) => Ok(carrier),
            _ => Err(BenchError::Arguments("--real runs over shm and tcp".into())),
        };
        self.fabric.iter().map(of).collect()
    }

    fn setting(&self, system: RealSystem, carrier: Carrier, groups: u16, bytes: u32) -> Setting {
        let Self { clients, window, messages, .. } = *self;
        let references = system == RealSystem::TramReferences;
        Setting { carrier, groups, clients, window, messages, bytes, references }
    }

    fn configurations(&self, carriers: &[Carrier]) -> Vec<Configuration> {
        let mut configurations = Vec::new();
        for carrier in carriers {
            for groups in &self.destinations {
                for bytes in &self.bytes {
                    let of = |system: &RealSystem| Configuration {
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

impl RealSystem {
    const fn name(self) -> &'static str {
        match (self, self.baseline()) {
            (_, Some(protocol)) => protocol.name(),
            (Self::TramReferences, None) => "TRAM, references",
            (_, None) => "TRAM",
        }
    }

    const fn replicas(self) -> u16 {
        match self {
            Self::Tram | Self::TramReferences | Self::Ramcast => REPLICAS,
            Self::Skeen | Self::Byzcast => 1,
        }
    }
}

impl Configuration {
    fn run(&self, interrupts: &Interrupts) -> Result<[Seen; 2], BenchError> {
        match self.system.baseline() {
            None => tram::run(&self.setting, interrupts),
            Some(protocol) => self.run_baseline(protocol),
        }
    }

    fn run_baseline(&self, protocol: Protocol) -> Result<[Seen; 2], BenchError> {
        let Setting { carrier, groups, clients, window, messages, bytes, .. } = self.setting;
        let run = |messages: u32, window: u32| {
            let report = baselines::run(&baselines::Settings {
                carrier,
                options: Options { protocol, batching: true },
                parents: (0..groups).map(|group| (group > 0).then_some(GroupId(0))).collect(),
                replicas: self.system.replicas(),
                clients,
                window,
                messages,
                destinations: groups.into(),
                payload_bytes: bytes,
                seed: 1,
                time_limit: TIME_LIMIT,
            })?;
            let messages_per_s = report.messages as f64 / report.seconds.max(1e-9);
            Ok::<_, BenchError>(Seen { messages_per_s, latency_us: report.latency_us })
        };
        Ok([run(messages / 10, 1)?, run(messages, window)?])
    }
}
