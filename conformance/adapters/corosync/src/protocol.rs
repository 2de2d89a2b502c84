//! The lines of the adapter protocol, version 1: see `conformance/docs/adapter-protocol.md`.

use std::io::{self, Write as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The version that is spoken.
pub const VERSION: u32 = 1;

/// What the driver says.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Command {
    /// Who this member is.
    Init(Init),
    /// Send.
    Multicast {
        /// The message.
        message: String,
        /// For whom.
        groups: Vec<String>,
        /// How long.
        bytes: usize,
    },
    /// Be a slow consumer, once.
    Pause {
        /// How slow.
        ms: u64,
    },
    /// Leave all groups.
    Leave,
    /// Count.
    Stats,
    /// It is over.
    Stop,
}

/// The first command.
#[derive(Clone, Debug, Deserialize)]
pub struct Init {
    /// The protocol's version.
    pub protocol: u32,
    /// This node.
    pub node: String,
    /// All nodes.
    pub nodes: Vec<Node>,
    /// All groups.
    pub groups: Vec<Group>,
    /// What bounds the run.
    pub limits: Limits,
    /// Whether the groups already run.
    #[serde(default)]
    pub join: bool,
    /// A folder that all members see.
    pub shared: PathBuf,
    /// A folder of this node's own.
    pub storage: PathBuf,
}

/// A node and where it is.
#[derive(Clone, Debug, Deserialize)]
pub struct Node {
    /// Its name.
    pub node: String,
    /// Its IP address.
    pub address: String,
}

/// A group.
#[derive(Clone, Debug, Deserialize)]
pub struct Group {
    /// Its name.
    pub group: String,
    /// Who is or may become a member.
    pub members: Vec<String>,
    /// Who may send.
    pub senders: Vec<String>,
}

/// What bounds the run.
#[derive(Clone, Debug, Deserialize)]
pub struct Limits {
    /// How long `init` may take.
    pub deadline_ms: u64,
}

/// What the member says.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Answer<'a> {
    /// Multicasts can be taken.
    InitOk {
        /// The system.
        name: &'a str,
        /// Its version.
        version: &'a str,
        /// What it claims.
        features: &'a [&'a str],
    },
    /// A command was carried out.
    Ok {
        /// The message, if it was a multicast.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<&'a str>,
    },
    /// A command was not carried out.
    Error {
        /// Why, for programs.
        code: &'a str,
        /// Whether it surely had no effect.
        definite: bool,
        /// The message, if it was a multicast.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<&'a str>,
        /// Why, for people.
        text: &'a str,
    },
    /// The application was called.
    Deliver {
        /// The message, unless it was empty.
        message: Option<&'a str>,
        /// Who sent it, as Corosync says.
        sender: &'a str,
        /// The group.
        group: &'a str,
        /// How long it was.
        bytes: usize,
        /// What it was.
        #[serde(skip_serializing_if = "Option::is_none")]
        digest: Option<&'a str>,
    },
    /// A view was installed.
    View {
        /// The group.
        group: &'a str,
        /// Its id.
        view: u64,
        /// Its members.
        members: &'a [String],
    },
    /// The last line.
    Halt {
        /// Why.
        reason: &'a str,
        /// Why, for people.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<&'a str>,
    },
}

/// Writes one line, at once. Lines of different threads never mix: the stream is locked for each.
///
/// # Errors
/// The driver is gone.
pub fn say(answer: &Answer<'_>) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}
