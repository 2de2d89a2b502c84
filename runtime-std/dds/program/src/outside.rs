//! A command's access to a domain of which it is not a member, given addresses of members.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tramontane_client::Members;

use tramontane_local::client_options::read_key;
use tramontane_local::exit::Failure;

/// Time limit for finding a member.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// The members that a command connects to.
#[derive(Args, Debug)]
pub(super) struct OutsideOptions {
    /// Connect as an external participant: addresses of members, HOST:PORT or the path of a Unix
    /// socket
    #[arg(
        long,
        value_name = "ADDRESS,...",
        value_delimiter = ',',
        required_unless_present = "domain"
    )]
    to: Vec<String>,
    /// The file with the group's key, for use with --to
    #[arg(long, value_name = "FILE", requires = "to")]
    key_file: Option<PathBuf>,
    /// Allow unencrypted connections to other hosts; for use with --to if there is no key
    #[arg(long, requires = "to", conflicts_with = "key_file")]
    allow_clear: bool,
    /// The name of this command in the status and the logs of the nodes, for use with --to: at most
    /// 64 bytes
    #[arg(long, value_name = "NAME", requires = "to")]
    name: Option<String>,
}

impl OutsideOptions {
    /// Returns the members that the command may connect to.
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
