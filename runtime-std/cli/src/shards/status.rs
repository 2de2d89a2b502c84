//! The status of all replicas of an overlay, as they report it.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tramontane_local::table::Table;
use tramontane_runtime::shards::{AskError, Operator, Places, ReplicaState, ReplicaStatus};

use super::overlay_file::read;
use tramontane_local::exit::{Failure, Status};
use tramontane_local::interrupt::Interrupts;
use tramontane_local::options::seconds;

/// The exit statuses of this command, in addition to those of every command.
pub(super) const STATUSES: [Status; 2] = [Status::Group, Status::NodeDown];

pub(super) const EXAMPLES: &str = "  tramontane shards status --config overlay.toml
  tramontane shards status --config overlay.toml --expect-all --json";

#[derive(Args, Debug)]
pub(super) struct ReplicaStatusOptions {
    /// The overlay file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Time limit for an answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "5", allow_negative_numbers = true,
          value_parser = seconds)]
    time_limit: Duration,
    /// Exit with status 10 if a replica does not answer, or has no vote
    #[arg(long)]
    expect_all: bool,
    /// Print JSON, with everything that the replicas report
    #[arg(long)]
    json: bool,
}

/// A replica's answer, or the reason why there is none.
struct ReplicaAnswer {
    replica: String,
    group: String,
    status: Result<ReplicaStatus, AskError>,
    /// Number of log entries that another replica of its group has but this one has not processed.
    lag: Option<u64>,
}

#[derive(Serialize)]
struct ShardsReport<'a> {
    overlay: &'a str,
    replicas: Vec<ReplicaReport<'a>>,
}

#[derive(Serialize)]
struct ReplicaReport<'a> {
    replica: &'a str,
    /// `None` if the replica does not answer.
    status: Option<&'a ReplicaStatus>,
    lag: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Asks all replicas, and prints their answers.
pub(super) fn run(arguments: &ReplicaStatusOptions) -> Result<(), Failure> {
    let description = read(&arguments.config)?;
    let places = Places::new(&description, description.overlay()?);
    let operator = Operator::new(&description)?;
    let interrupts = Interrupts::watch()?;
    let statuses = operator.statuses(arguments.time_limit, interrupts.flag());
    interrupts.check()?;
    let answers = with_lags(&places, statuses);
    print(arguments.json, &description.name, &answers).map_err(|error| Failure::output(&error))?;
    judge(&places, &answers, arguments.expect_all)
}

fn with_lags(
    places: &Places,
    statuses: Vec<(String, Result<ReplicaStatus, AskError>)>,
) -> Vec<ReplicaAnswer> {
    let mut newest: BTreeMap<String, u64> = BTreeMap::new();
    for status in statuses.iter().filter_map(|(_, status)| status.as_ref().ok()) {
        let processed = newest.entry(status.group.clone()).or_default();
        *processed = (*processed).max(status.decided).max(status.processed);
    }
    let answer = |(replica, (name, status)): (_, (String, Result<ReplicaStatus, AskError>))| {
        let replica: tramontane_runtime::shards::ReplicaId = replica;
        let group = places.group_name(replica.group).to_owned();
        let behind = |status: &ReplicaStatus| {
            newest.get(&group).map(|newest| newest.saturating_sub(status.processed))
        };
        let lag = status.as_ref().ok().and_then(behind);
        ReplicaAnswer { replica: name, group, status, lag }
    };
    places.replicas().zip(statuses).map(answer).collect()
}

fn print(json: bool, overlay: &str, answers: &[ReplicaAnswer]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    if json {
        let replicas = answers.iter().map(|answer| ReplicaReport {
            replica: &answer.replica,
            status: answer.status.as_ref().ok(),
            lag: answer.lag,
            error: answer.status.as_ref().err().map(ToString::to_string),
        });
        let report = ShardsReport { overlay, replicas: replicas.collect() };
        serde_json::to_writer(&mut output, &report)?;
        writeln!(output)?;
    } else {
        write!(output, "{}", table(answers))?;
        for ReplicaAnswer { replica, status, .. } in answers {
            for notice in status.iter().filter_map(|status| status.notice.as_ref()) {
                writeln!(output, "{replica}: {notice}")?;
            }
        }
    }
    output.flush()
}

fn table(answers: &[ReplicaAnswer]) -> Table {
    let headings = "replica  state  leader  round  tail  decided  lag  msgs/s  delivered  clients";
    let mut table = Table::new(headings, &[0, 1, 2]);
    for answer in answers {
        match &answer.status {
            Ok(status) => table.row([
                answer.replica.clone(),
                status.state.name().to_owned(),
                status.leader.clone().unwrap_or_else(|| "-".to_owned()),
                status.round.to_string(),
                status.tail.to_string(),
                status.decided.to_string(),
                answer.lag.unwrap_or(0).to_string(),
                status.delivered_per_second.to_string(),
                status.delivered.to_string(),
                status.clients.to_string(),
            ]),
            Err(error) => {
                let text = error.to_string();
                let short = text.split(';').next().unwrap_or_default().to_owned();
                table.row([answer.replica.clone(), short]);
            }
        }
    }
    table
}

/// Fails unless each group has a leader and a majority of replicas that count in quorums.
fn judge(places: &Places, answers: &[ReplicaAnswer], expect_all: bool) -> Result<(), Failure> {
    let counts = |answer: &&ReplicaAnswer| {
        let status = answer.status.as_ref();
        status.is_ok_and(|status| status.state.counts())
    };
    for group in places.overlay().all().iter() {
        let name = places.group_name(group);
        let of_group = || answers.iter().filter(|answer| answer.group == name);
        let leads = |answer: &ReplicaAnswer| {
            answer.status.as_ref().is_ok_and(|status| status.state == ReplicaState::Leading)
        };
        let voters = of_group().filter(counts).count();
        if voters < usize::from(places.overlay().quorum(group)) {
            let what = format_args!("group {name} has no majority of voting replicas");
            let advice = "start those that have ended: tramontane shards --id";
            return Err(Failure::group(what, advice));
        }
        if !of_group().any(leads) {
            let what = format_args!("group {name} has no leader now");
            return Err(Failure::group(what, "ask again"));
        }
    }
    let down: Vec<&str> =
        answers.iter().filter(|of| !counts(of)).map(|of| of.replica.as_str()).collect();
    if expect_all && !down.is_empty() {
        let what =
            format_args!("these replicas are down, or do not have a vote yet: {}", down.join(" "));
        return Err(Failure::new(Status::NodeDown, what, "start them: tramontane shards --id"));
    }
    Ok(())
}
