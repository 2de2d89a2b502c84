//! The options by which commands that are clients find the members of a group.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tramontane_client::{Level, Members, SharedKey};
use tramontane_runtime::group::ControlEndpoints;
use tramontane_runtime::shared_memory::Root;

use crate::exit::Failure;
use crate::group_file;
use crate::options::seconds;

/// How a client finds a group, and the client's name there.
#[derive(Args, Debug)]
pub struct ClientOptions {
    /// Group file of the nodes, which contains their addresses and the key
    #[arg(long, value_name = "FILE", required_unless_present = "to", conflicts_with = "to")]
    config: Option<PathBuf>,
    /// Addresses of members, if there is no group file: HOST:PORT, or the path of a Unix socket
    #[arg(long, value_name = "ADDRESS,...", value_delimiter = ',')]
    to: Vec<String>,
    /// File with the group's key, for use with --to
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    key_file: Option<PathBuf>,
    /// Permit unencrypted traffic to other hosts; for use with --to if there is no key
    #[arg(long, conflicts_with_all = ["config", "key_file"])]
    allow_clear: bool,
    /// Subgroup [default: the first that accepts clients]
    #[arg(long, value_name = "NAME")]
    subgroup: Option<String>,
    /// Name of this client in the status and the logs of the nodes: at most 64 bytes
    #[arg(long, value_name = "NAME", default_value = "")]
    name: String,
    /// Time limit for finding a member, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "10", allow_negative_numbers = true,
          value_parser = seconds)]
    pub time_limit: Duration,
}

impl ClientOptions {
    /// Returns the members that the client may connect to.
    pub fn members(&self) -> Result<Members, Failure> {
        let members = match &self.config {
            Some(config) => {
                let description = group_file::read(config)?;
                let endpoints = ControlEndpoints::of(&description, &Root::from_env())?;
                let members = Members::at(endpoints.addresses().cloned()).group(&description.name);
                let members = match endpoints.key() {
                    Some(key) => members.key(key.clone()),
                    None => members,
                };
                if description.allow_clear { members.allow_clear() } else { members }
            }
            None => {
                let members = Members::parse(self.to.iter().map(String::as_str))?;
                let members = match &self.key_file {
                    Some(path) => members.key(read_key(path)?),
                    None => members,
                };
                if self.allow_clear { members.allow_clear() } else { members }
            }
        };
        let subgroup = self.subgroup.as_deref().unwrap_or_default();
        Ok(members.subgroup(subgroup).name(&self.name).time_limit(self.time_limit))
    }
}

/// Reads a group's key.
pub fn read_key(path: &std::path::Path) -> Result<SharedKey, Failure> {
    SharedKey::from_file(path).map_err(|error| {
        Failure::usage(format_args!("cannot use the key: {error}"), "give the group's key file")
    })
}

/// The level that a line must reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LevelName {
    /// Every surviving member has received it
    Delivered,
    /// It is on the disk of the member that accepted it
    Here,
    /// It is on the disks of a majority
    Majority,
    /// It is on the disks of all members
    All,
}

impl LevelName {
    /// The level.
    pub const fn level(self) -> Level {
        match self {
            Self::Delivered => Level::Delivered,
            Self::Here => Level::DurableHere,
            Self::Majority => Level::DurableMajority,
            Self::All => Level::DurableEverywhere,
        }
    }

    /// Returns the name of a level.
    pub const fn of(level: Level) -> &'static str {
        match level {
            Level::Delivered => "delivered",
            Level::DurableHere => "here",
            Level::DurableMajority => "majority",
            Level::DurableEverywhere => "all",
        }
    }

    /// Describes lines that have reached the level.
    pub const fn reached(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Here => "durable at a member",
            Self::Majority => "durable at a majority",
            Self::All => "durable everywhere",
        }
    }
}
