//! Command-line options for the addresses at which a group's members meet on a network, and for
//! their key.

use std::path::PathBuf;

use clap::Args;

use crate::exit::Failure;
use tramontane_control::{HostAddress, KeyError};
use tramontane_runtime::group::{ControlEndpointsError, DescriptionBuilder};

/// The addresses and the key.
#[derive(Args, Debug)]
pub struct NetworkOptions {
    /// Address of each member, in the order of ids; the same for all members
    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',', help_heading = "Network")]
    pub addresses: Vec<HostAddress>,
    /// File with the key that all members share: 64 hexadecimal digits, mode 600
    #[arg(long, value_name = "FILE", help_heading = "Network")]
    key_file: Option<PathBuf>,
    /// Permit unencrypted traffic on a network that you trust: over TCP to other machines without a
    /// key, and over RDMA even with a key, because RDMA is never encrypted
    #[arg(long, help_heading = "Network")]
    allow_clear: bool,
}

impl NetworkOptions {
    /// Returns the name of the first option given. None of these options applies to members that
    /// share memory.
    pub fn given(&self) -> Option<&'static str> {
        let all = [
            ("--addresses", !self.addresses.is_empty()),
            ("--key-file", self.key_file.is_some()),
            ("--allow-clear", self.allow_clear),
        ];
        all.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    /// Adds the addresses and the key to the description of a group over TCP or RDMA.
    pub fn describe(&self, group: DescriptionBuilder) -> DescriptionBuilder {
        let mut group = group.addresses(&self.addresses);
        if let Some(file) = &self.key_file {
            group = group.key_file(file);
        }
        if self.allow_clear { group.allow_clear() } else { group }
    }
}

/// Explains in terms of the command line why members may not meet at these addresses.
pub fn not_permitted(error: ControlEndpointsError) -> Failure {
    match error {
        ControlEndpointsError::Key(KeyError::Io { .. }) => Failure::usage(
            format_args!("cannot read the key: {error}"),
            "give --key-file a readable file",
        ),
        ControlEndpointsError::KeyNeeded(address) => Failure::usage(
            format_args!("{address} is not on this machine, and there is no key"),
            "give all members one --key-file (openssl rand -hex 32), or give --allow-clear on a \
             network that you trust",
        ),
        error => error.into(),
    }
}
