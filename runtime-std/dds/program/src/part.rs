//! A command's participation in a domain as one of its nodes, configured by the domain file.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tramontane_dds::{Domain, DomainParticipant};
use tramontane_runtime::group::StartOptions;

use tramontane_local::exit::Failure;
use tramontane_local::interrupt::Interrupts;
use tramontane_local::options::JoinOption;

/// Time limit for the others to continue without this node.
pub(super) const LEAVE: Duration = Duration::from_secs(10);

/// The domain that a command joins, and the node that it joins as.
#[derive(Args, Debug)]
pub(super) struct PartOptions {
    /// The domain file: a [group] table, and one [[topics]] table per topic
    #[arg(long, value_name = "FILE")]
    pub(super) domain: PathBuf,
    /// The id of this node, which must publish or subscribe to the topics that the command uses
    #[arg(long, value_name = "NODE")]
    pub(super) id: u32,
    /// The folder of this node's logs, if it belongs to a logged topic
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    join: JoinOption,
}

/// The same options, for a command that may also be an external participant.
#[derive(Args, Debug)]
pub(super) struct OptionalPart {
    /// The domain file: a [group] table, and one [[topics]] table per topic
    #[arg(long, value_name = "FILE", required_unless_present = "to", conflicts_with = "to")]
    domain: Option<PathBuf>,
    /// The id of this node, which must publish or subscribe to the topics that the command uses
    #[arg(long, value_name = "NODE", required_unless_present = "to", conflicts_with = "to")]
    id: Option<u32>,
    /// The folder of this node's logs, if it belongs to a logged topic
    #[arg(long, value_name = "DIR", conflicts_with = "to")]
    data: Option<PathBuf>,
    #[command(flatten)]
    join: JoinOption,
}

impl OptionalPart {
    /// Returns the node options, unless the command is an external participant.
    pub(super) fn part(&self) -> Option<PartOptions> {
        let (domain, id) = (self.domain.clone()?, self.id?);
        Some(PartOptions { domain, id, data: self.data.clone(), join: self.join })
    }
}

impl PartOptions {
    /// Reads the domain file.
    pub(super) fn domain(&self) -> Result<Domain, Failure> {
        Ok(Domain::read(&self.domain)?)
    }

    /// Joins the domain, unless a signal arrives.
    pub(super) fn join(
        &self,
        domain: &Domain,
        interrupts: &Interrupts,
    ) -> Result<DomainParticipant, Failure> {
        let options = StartOptions {
            time_limit: self.join.join_timeout,
            data: self.data.clone(),
            cancel: interrupts.flag(),
            ..StartOptions::new(self.id)
        };
        let joined = DomainParticipant::join(domain, options);
        if joined.is_err() {
            interrupts.check()?;
        }
        Ok(joined?)
    }

    /// Joins the domain, does the work, and leaves in any case: a member that disappears silently
    /// counts as failed, and in a group of two, the other member would then end.
    pub(super) fn as_member(
        &self,
        domain: &Domain,
        interrupts: &Interrupts,
        work: impl FnOnce(&DomainParticipant) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let participant = self.join(domain, interrupts)?;
        let done = work(&participant);
        let left = participant.leave(LEAVE);
        done?;
        Ok(left?)
    }
}
