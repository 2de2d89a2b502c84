//! `tramontane-lab bank`: a bank over eight groups of three, whose leaders are killed while money
//! is transferred between groups.
//!
//! | file | contents |
//! |---|---|
//! | `plan`, `messages` | the plan of a run; the messages between the processes |
//! | `accounts` | the application of a replica |
//! | `replica`, `client` | the processes |
//! | `supervisor` | the parent: it starts and kills processes, and asks for the final states of replicas |
//! | `history`, `report` | the histories and the suite; the outcome |

mod accounts;
mod client;
mod history;
mod messages;
mod plan;
mod replica;
mod report;
mod supervisor;

use std::time::Duration;

use clap::Args;
use tramontane_conformance::history::{Event, GroupOrder, VERSION};
use tramontane_local::crew::Worker;
use tramontane_local::group::LocalError;
use tramontane_local::options::DeviceArguments;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::shards::{Description, Places};
use tramontane_runtime::shared_memory::GroupName;

use history::Merged;
use messages::{BankPart, BankReport, ShardsMember};
use plan::BankPlan;
use report::BankResult;
use supervisor::{BankRun, Supervisor};
use tramontane_local::exit::{Failure, Status};
use tramontane_local::interrupt::Interrupts;
use tramontane_local::options::{JoinOption, seconds};
use tramontane_local::output::print_result;
use tramontane_local::shard_trees::Tree;

/// Number of replicas per group.
const REPLICAS: u16 = 3;

/// The exit statuses of this command, in addition to those of every command.
pub(super) const STATUSES: [Status; 5] =
    [Status::Resources, Status::Group, Status::PeerLost, Status::Disagreement, Status::Out];

pub(super) const EXAMPLES: &str = "  tramontane-lab bank
      eight groups of three replicas; a leader is killed each second
  tramontane-lab bank --tree depth --fabric tcp --duration 60 --json
      groups as a chain, over TCP, for a minute; the result as JSON";

/// Run a bank over eight groups of three replicas: clients transfer money between one to eight
/// groups while leaders are killed; in the end, no money may be missing
#[derive(Args, Debug)]
pub(super) struct BankOptions {
    /// The tree of the groups
    #[arg(long, value_name = "TREE", default_value = "base")]
    tree: Tree,
    /// Time during which clients make transfers, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    duration: Duration,
    /// The number of clients; each is a process
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u16).range(1..=16))]
    clients: u16,
    /// Maximum number of transfers per second, by all clients
    #[arg(long, value_name = "N", default_value_t = 1_000,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: u32,
    /// Interval between kills of a leader, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    kill_interval: Duration,
    /// Refer to messages of this size in bytes or more, like references_from in an overlay file; a
    /// transfer has 14 bytes for each account [default: none, leaders copy all]
    #[arg(long, value_name = "BYTES")]
    references_from: Option<u32>,
    /// The seed from which transfers and kills are drawn
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    join: JoinOption,
    /// The fabric
    #[arg(long, value_parser = tramontane_local::options::carrier(),
          default_value_t = Carrier::SharedMemory)]
    fabric: Carrier,
    #[command(flatten)]
    device: DeviceArguments,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the bank.
pub(super) fn run(options: &BankOptions) -> Result<(), Failure> {
    let (fabric, device) = (options.fabric, &options.device);
    if let (true, Some(option)) = (fabric != Carrier::Verbs, device.given()) {
        return Err(LocalError::NoDevice(option).into());
    }
    let name = GroupName::unique("bank")?;
    let mut overlay = Description::local(name.as_str(), &options.tree.parents(), REPLICAS);
    overlay.references_from = options.references_from;
    if fabric != Carrier::SharedMemory {
        overlay = overlay
            .over_loopback()
            .map_err(|error| Failure::system("cannot listen on the loopback", &error))?;
        overlay.fabric = fabric;
        overlay.rdma = device.options();
    }
    overlay.overlay()?;
    let folder = tempfile::tempdir()
        .map_err(|error| Failure::system("cannot create a folder for histories", &error))?;
    let plan = BankPlan {
        overlay,
        clients: options.clients,
        duration: options.duration,
        kill_interval: options.kill_interval,
        rate: f64::from(options.rate),
        seed: options.seed,
        folder: folder.path().to_owned(),
        join_timeout: options.join.join_timeout,
    };
    let interrupts = Interrupts::watch()?;
    let run = Supervisor::run(&plan, &interrupts)?;
    let outcome = judge(&plan, &run)?;
    print_result(options.json, &outcome.0, BankResult::table)?;
    let kept = folder.path().join("history.jsonl");
    let verdict = outcome.0.verdict(&kept.display().to_string());
    if verdict.is_err() {
        let saved = outcome.1.save(&kept);
        saved.map_err(|error| Failure::system("cannot keep the history", &error))?;
        // The folder is kept for a later examination.
        let _ = folder.keep();
    }
    verdict
}

/// Judges a run by the suite and by the bank's own checks.
fn judge(plan: &BankPlan, run: &BankRun) -> Result<(BankResult, Merged), Failure> {
    let places = Places::new(&plan.overlay, plan.overlay.overlay()?);
    let mut events = vec![Event::Run {
        version: VERSION,
        scenario: Some("bank".into()),
        seed: Some(plan.seed),
        adapter: Some("tramontane".into()),
    }];
    let senders: Vec<_> =
        (0..plan.overlay.clients_max).map(|client| format!("c{client}")).collect();
    for group in places.overlay().all().iter() {
        events.push(Event::Group {
            group: places.group_name(group).to_owned().into(),
            members: places.replicas_of(group).map(|of| places.name(of).into()).collect(),
            senders: senders.iter().map(|sender| sender.clone().into()).collect(),
            order: GroupOrder::Total,
        });
    }
    events.extend(run.events.iter().cloned());
    let merged = Merged::new(&events, &run.files)
        .map_err(|error| Failure::system("cannot read the histories", &error))?;
    let suite =
        merged.judge().unwrap_or_else(|error| format!("the history contradicts itself: {error}"));
    Ok((BankResult::of(plan, &places, run, &merged, suite), merged))
}

/// Runs a process of the demo, and reports any failure to its parent.
pub(crate) fn run_member(task: &str) -> Result<(), Failure> {
    let (task, worker) = Worker::<ShardsMember>::attach(task)
        .map_err(|error| Failure::usage(error, "start it with 'tramontane-lab bank'"))?;
    let reporter = worker.reporter();
    let outcome = match &task.part {
        BankPart::Replica { name, inc } => replica::run(&task, name, *inc, &worker),
        BankPart::Client { seed, rate } => client::run(&task, *seed, *rate, worker),
    };
    let Err(failure) = outcome else { return Ok(()) };
    if !failure.text().is_empty() {
        let (status, text) = (failure.status.code(), failure.text().to_owned());
        // The parent may have exited; then this report is lost.
        let _ = reporter.send(&BankReport::Failed { status, text });
    }
    Err(Failure::silent(failure.status))
}
