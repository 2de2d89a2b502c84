//! How a command takes part in a domain: as a node of it, from the domain's file.

use std::path::PathBuf;

use clap::Args;
use tramontane_dds::{Domain, DomainParticipant};
use tramontane_runtime::group::StartOptions;

use tramontane_local::exit::Failure;
use tramontane_local::options::JoinOption;

/// Which node of which domain a command is.
#[derive(Args, Debug)]
pub(super) struct PartOptions {
    /// The domain's file: a table [group], and a table [[topics]] for each topic
    #[arg(long, value_name = "FILE")]
    pub(super) domain: PathBuf,
    /// Which node this is: one that has the topics that it works with
    #[arg(long, value_name = "NODE")]
    pub(super) id: u32,
    /// The folder of this node's logs, if it belongs to a topic that is logged
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    join: JoinOption,
}

/// The same for a command that may also look from outside.
#[derive(Args, Debug)]
pub(super) struct OptionalPart {
    /// The domain's file: a table [group], and a table [[topics]] for each topic
    #[arg(long, value_name = "FILE", required_unless_present = "to", conflicts_with = "to")]
    domain: Option<PathBuf>,
    /// Which node this is: one that has the topics that it works with
    #[arg(long, value_name = "NODE", required_unless_present = "to", conflicts_with = "to")]
    id: Option<u32>,
    /// The folder of this node's logs, if it belongs to a topic that is logged
    #[arg(long, value_name = "DIR", conflicts_with = "to")]
    data: Option<PathBuf>,
    #[command(flatten)]
    join: JoinOption,
}

impl OptionalPart {
    /// As which node it takes part, if it does not look from outside.
    pub(super) fn part(&self) -> Option<PartOptions> {
        let (domain, id) = (self.domain.clone()?, self.id?);
        Some(PartOptions { domain, id, data: self.data.clone(), join: self.join })
    }
}

impl PartOptions {
    /// Reads the domain's file.
    pub(super) fn domain(&self) -> Result<Domain, Failure> {
        Ok(Domain::read(&self.domain)?)
    }

    /// Joins the domain.
    pub(super) fn join(&self, domain: &Domain) -> Result<DomainParticipant, Failure> {
        let options = StartOptions {
            time_limit: self.join.join_timeout,
            data: self.data.clone(),
            ..StartOptions::new(self.id)
        };
        Ok(DomainParticipant::join(domain, options)?)
    }
}
