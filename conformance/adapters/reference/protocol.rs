//! The adapter protocol as the program speaks it: one JSON object a line.
//!
//! Invariants: a line is written whole and flushed at once; nothing follows a `halt`.

use std::io::Write;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What the driver says.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Command {
    /// Become a member.
    Init(Init),
    /// Send a message.
    Multicast { message: String, groups: Vec<String>, bytes: usize },
    /// Let the next upcall take longer.
    Pause { ms: u64 },
    /// Leave all groups.
    Leave,
    /// Say what was posted.
    Stats,
    /// End.
    Stop,
    /// What a later version of the protocol may say.
    #[serde(other)]
    Unknown,
}

/// Who the member is, and what there is.
#[derive(Debug, Deserialize)]
pub struct Init {
    pub protocol: u32,
    pub node: String,
    pub inc: u32,
    pub nodes: Vec<Node>,
    pub groups: Vec<Group>,
    pub limits: Limits,
    pub shared: std::path::PathBuf,
    pub storage: std::path::PathBuf,
}

/// A node of the run.
#[derive(Debug, Deserialize)]
pub struct Node {
    pub node: String,
}

/// A group of the run.
#[derive(Debug, Deserialize)]
pub struct Group {
    pub group: String,
    pub members: Vec<String>,
    pub senders: Vec<String>,
}

/// What the driver keeps to.
#[derive(Debug, Deserialize)]
pub struct Limits {
    pub deadline_ms: u64,
}

/// What the member says.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line<'a> {
    InitOk {
        name: &'a str,
        version: &'a str,
        features: &'a [&'a str],
    },
    Ok {
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<&'a str>,
    },
    Error {
        code: &'a str,
        definite: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<&'a str>,
        text: &'a str,
    },
    Deliver {
        message: Option<&'a str>,
        sender: &'a str,
        group: &'a str,
        view: Option<u64>,
        sequence: u64,
        bytes: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
        replayed: bool,
    },
    View {
        group: &'a str,
        view: u64,
        members: &'a [String],
    },
    Durable {
        group: &'a str,
        upto: u64,
    },
    Stats {
        posts: u64,
    },
    Halt {
        reason: &'a str,
        text: &'a str,
    },
}

/// Writes a line.
pub fn say(line: &Line<'_>) {
    write(&mut std::io::stdout().lock(), line);
}

/// Writes the last line and ends the process. Other threads may be about to speak: they wait for
/// the lock until the process is gone.
pub fn halt(reason: &str, text: &str) -> ! {
    let mut out = std::io::stdout().lock();
    write(&mut out, &Line::Halt { reason, text });
    std::process::exit(0)
}

fn write(out: &mut impl Write, line: &Line<'_>) {
    let mut text = serde_json::to_vec(line).expect("a line has only text keys");
    text.push(b'\n');
    if out.write_all(&text).and_then(|()| out.flush()).is_err() {
        // Nobody listens any more, so there is nobody to be a member for.
        std::process::exit(1);
    }
}

/// The payload of a message: its name and a space, repeated and cut.
pub fn payload(message: &str, bytes: usize) -> String {
    let text: Vec<u8> = message.bytes().chain([b' ']).cycle().take(bytes).collect();
    String::from_utf8_lossy(&text).into_owned()
}

/// The name of the message with that payload. An empty one has no room for its name.
pub fn name(payload: &str) -> Option<&str> {
    payload.split(' ').next().filter(|name| !name.is_empty())
}

/// The digest of a payload, where there is one.
pub fn digest(payload: &str) -> Option<String> {
    let hash = Sha256::digest(payload);
    (!payload.is_empty()).then(|| hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}
