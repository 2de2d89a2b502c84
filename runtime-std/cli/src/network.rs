//! Where the members of a group meet on a network, and with which key, as a command line says it.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;

use clap::Args;

use super::exit::Failure;
use tramontane_control::KeyError;
use tramontane_runtime::group::{ControlEndpointsError, DescriptionBuilder};

/// Addresses and key.
#[derive(Args, Debug)]
pub(super) struct NetworkOptions {
    /// The address of each member, in the order of ids; the same at all members
    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',', help_heading = "Network")]
    pub(super) addresses: Vec<String>,
    /// A file with the key that all members share: 64 hexadecimal digits, mode 600
    #[arg(long, value_name = "FILE", help_heading = "Network")]
    key_file: Option<PathBuf>,
    /// Permit clear text on a network that you trust: over TCP without a key, to other machines;
    /// over RDMA also beside a key, since RDMA is never encrypted
    #[arg(long, help_heading = "Network")]
    allow_clear: bool,
}

impl NetworkOptions {
    /// The first option that was given, by name: none of them means anything to members that share
    /// memory.
    pub(super) fn given(&self) -> Option<&'static str> {
        let all = [
            ("--addresses", !self.addresses.is_empty()),
            ("--key-file", self.key_file.is_some()),
            ("--allow-clear", self.allow_clear),
        ];
        all.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    /// Adds these addresses, and the key, to the description of a group over TCP or RDMA.
    pub(super) fn describe(
        &self,
        group: DescriptionBuilder,
    ) -> Result<DescriptionBuilder, Failure> {
        let mut group = group.addresses(&resolve(&self.addresses)?);
        if let Some(file) = &self.key_file {
            group = group.key_file(file);
        }
        Ok(if self.allow_clear { group.allow_clear() } else { group })
    }
}

/// Why members may not meet at these addresses, in the words of the command line.
pub(super) fn not_permitted(error: ControlEndpointsError) -> Failure {
    match error {
        ControlEndpointsError::Key(KeyError::Io { .. }) => Failure::usage(
            format_args!("cannot read the key: {error}"),
            "give --key-file a file that you may read",
        ),
        ControlEndpointsError::KeyNeeded(address) => Failure::usage(
            format_args!("{address} is not on this machine, and there is no key"),
            "give all members one --key-file (openssl rand -hex 32), or give --allow-clear on a \
             network that you trust",
        ),
        error => error.into(),
    }
}

/// Names become addresses here, once; of several, the first.
fn resolve(addresses: &[String]) -> Result<Vec<SocketAddr>, Failure> {
    let resolve = |text: &String| {
        let wrong = |why: &dyn std::fmt::Display| {
            let what = format_args!("--addresses: cannot make an address of '{text}': {why}");
            Failure::usage(what, "write each as HOST:PORT, such as 10.9.0.1:7000 or [::1]:7000")
        };
        let mut found = text.to_socket_addrs().map_err(|error| wrong(&error))?;
        found.next().ok_or_else(|| wrong(&"no host has that name"))
    };
    let resolved = addresses.iter().map(resolve).collect::<Result<Vec<_>, _>>()?;
    for (id, address) in resolved.iter().enumerate() {
        if address.port() == 0 {
            let what = format_args!("--addresses: member {id} has port 0");
            return Err(Failure::usage(what, "give each a port that the others can connect to"));
        }
        if let Some(other) = resolved[..id].iter().position(|before| before == address) {
            let what = format_args!("--addresses: members {other} and {id} are both at {address}");
            return Err(Failure::usage(what, "give each an address of its own"));
        }
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Status;

    fn resolved(text: &str) -> Result<Vec<SocketAddr>, Failure> {
        resolve(&text.split(',').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn addresses_are_hosts_with_ports() {
        let found = resolved("127.0.0.1:7000,[::1]:7001").expect("addresses");
        assert_eq!(found.iter().map(SocketAddr::port).collect::<Vec<_>>(), [7000, 7001]);
    }

    #[test]
    fn an_address_that_leads_nowhere_is_named() {
        for (text, word) in [
            ("127.0.0.1", "'127.0.0.1'"),
            ("127.0.0.1:70000", "70000"),
            ("127.0.0.1:0", "port 0"),
            ("127.0.0.1:7000,127.0.0.1:7000", "members 0 and 1"),
            ("127.0.0.1:7000,", "''"),
        ] {
            let failure = resolved(text).expect_err(text);
            assert_eq!(failure.status, Status::Usage);
            assert!(
                failure.text().contains(word) && failure.text().contains("; "),
                "{}",
                failure.text()
            );
        }
    }
}
