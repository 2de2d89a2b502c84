//! Where the members of a group are, for commands that are clients of it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tramontane_client::{Level, Members, SharedKey};
use tramontane_runtime::group::ControlEndpoints;
use tramontane_runtime::shared_memory::Root;

use crate::exit::Failure;
use crate::group_file;
use crate::options::seconds;

/// How a client finds a group, and as what it is known there.
#[derive(Args, Debug)]
pub struct ClientOptions {
    /// The group file of the nodes, for their addresses and the key
    #[arg(long, value_name = "FILE", required_unless_present = "to", conflicts_with = "to")]
    config: Option<PathBuf>,
    /// Addresses of members, without a group file: HOST:PORT, or the path of a Unix socket
    #[arg(long, value_name = "ADDRESS,...", value_delimiter = ',')]
    to: Vec<String>,
    /// The group's key, with --to
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    key_file: Option<PathBuf>,
    /// With --to and without a key: what is said may be read on the way to other hosts
    #[arg(long, conflicts_with_all = ["config", "key_file"])]
    allow_clear: bool,
    /// The subgroup [default: the first that takes clients]
    #[arg(long, value_name = "NAME")]
    subgroup: Option<String>,
    /// What the status and the logs of the nodes call this client: 64 bytes at most
    #[arg(long, value_name = "NAME", default_value = "")]
    name: String,
    /// How long to look for a member, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "10", allow_negative_numbers = true,
          value_parser = seconds)]
    pub time_limit: Duration,
}

impl ClientOptions {
    /// The members that the client may go to.
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

/// How far a line must have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LevelName {
    /// Every member that goes on has it
    Delivered,
    /// On the disk of the member that took it
    Here,
    /// On the disks of a majority
    Majority,
    /// On the disks of all members
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

    /// The name of a level.
    pub const fn of(level: Level) -> &'static str {
        match level {
            Level::Delivered => "delivered",
            Level::DurableHere => "here",
            Level::DurableMajority => "majority",
            Level::DurableEverywhere => "all",
        }
    }

    /// What is said of lines that have reached it.
    pub const fn reached(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Here => "durable at a member",
            Self::Majority => "durable at a majority",
            Self::All => "durable everywhere",
        }
    }
}
