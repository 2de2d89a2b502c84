//! The group file on a command line, and requests to its nodes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use crate::exit::{Failure, Status};
use crate::options::seconds;
use tramontane_runtime::group::{Description, OperatorClient, OperatorError};
use tramontane_runtime::shared_memory::Root;

/// How an operator command finds a group.
#[derive(Args, Debug)]
pub struct GroupOptions {
    /// Group file of the nodes; 'tramontane node --example-config' explains its fields
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Time limit for an answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "5", allow_negative_numbers = true,
          value_parser = seconds)]
    pub time_limit: Duration,
}

impl GroupOptions {
    /// Returns the group, and a client for its nodes.
    pub fn open(&self) -> Result<(Description, OperatorClient), Failure> {
        let description = read(&self.config)?;
        let visits = OperatorClient::new(&description, &Root::from_env())?;
        Ok((description, visits))
    }
}

/// Reads a group file.
pub fn read(path: &Path) -> Result<Description, Failure> {
    Ok(Description::read(path)?)
}

/// Fails if the file does not list the node.
pub fn check_node(description: &Description, node: u32) -> Result<(), Failure> {
    if description.nodes.iter().any(|known| known.id == node) {
        return Ok(());
    }
    Err(Failure::with_text(Status::Usage, OperatorError::UnknownNode(node)))
}

/// Formats nodes as a list: `0 1 2`.
pub fn listed(nodes: impl IntoIterator<Item = u32>) -> String {
    nodes.into_iter().map(|node| node.to_string()).collect::<Vec<_>>().join(" ")
}
