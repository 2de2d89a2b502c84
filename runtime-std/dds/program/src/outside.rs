//! How a command looks at a domain without being a member of it: it knows addresses of members.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tramontane_client::Members;

use tramontane_local::client_options::read_key;
use tramontane_local::exit::Failure;

/// How long to look for a member.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Which members a command goes to.
#[derive(Args, Debug)]
pub(super) struct OutsideOptions {
    /// Look from outside: addresses of members, HOST:PORT or the path of a Unix socket
    #[arg(
        long,
        value_name = "ADDRESS,...",
        value_delimiter = ',',
        required_unless_present = "domain"
    )]
    to: Vec<String>,
    /// The group's key, with --to
    #[arg(long, value_name = "FILE", requires = "to")]
    key_file: Option<PathBuf>,
    /// With --to and without a key: what is said may be read on the way to other hosts
    #[arg(long, requires = "to", conflicts_with = "key_file")]
    allow_clear: bool,
    /// What the status and the logs of the nodes call this command, with --to: 64 bytes at most
    #[arg(long, value_name = "NAME", requires = "to")]
    name: Option<String>,
}

impl OutsideOptions {
    /// The members that the command may go to.
    pub(super) fn members(&self) -> Result<Members, Failure> {
        let members = Members::parse(self.to.iter().map(String::as_str))?;
        let members = match &self.key_file {
            Some(path) => members.key(read_key(path)?),
            None => members,
        };
        let members = if self.allow_clear { members.allow_clear() } else { members };
        let name = self.name.as_deref().unwrap_or("dds spy");
        Ok(members.name(name).time_limit(TIME_LIMIT))
    }
}
