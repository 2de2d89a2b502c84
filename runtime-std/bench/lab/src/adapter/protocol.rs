//! The lines exchanged between the conformance suite's driver and this member, in version 1 of its
//! adapter protocol.
//!
//! Defined independently of the suite: the suite judges this program, and shares no code with it.

use std::borrow::Cow;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The protocol version.
pub(super) const VERSION: u32 = 1;

/// A request from the driver.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum DriverCommand {
    Init(Init),
    Multicast {
        message: String,
        groups: Vec<String>,
        bytes: usize,
    },
    Pause {
        ms: u64,
    },
    Leave,
    Stats,
    Stop,
    /// A command that this program does not support.
    #[serde(other)]
    Unknown,
}

/// This member, and the members of its groups.
#[derive(Debug, Deserialize)]
pub(super) struct Init {
    pub(super) protocol: u32,
    pub(super) node: String,
    /// The number of this start of the node, counted from one.
    #[serde(default = "first_start")]
    pub(super) inc: u32,
    pub(super) nodes: Vec<NodeOfRun>,
    pub(super) groups: Vec<GroupOfRun>,
    pub(super) limits: LimitsOfRun,
    pub(super) shared: PathBuf,
    /// This node's own folder, which later starts reuse.
    pub(super) storage: PathBuf,
}

const fn first_start() -> u32 {
    1
}

#[derive(Debug, Deserialize)]
pub(super) struct NodeOfRun {
    pub(super) node: String,
    /// Unused over shared memory.
    pub(super) address: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct GroupOfRun {
    pub(super) group: String,
    pub(super) members: Vec<String>,
    pub(super) senders: Vec<String>,
    /// All current and potential members. Drivers of earlier versions do not send it.
    #[serde(default)]
    pub(super) all_members: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct LimitsOfRun {
    pub(super) message_bytes_max: u32,
    /// Maximum size of a huge message. Drivers of earlier versions do not send it; then no message
    /// is huge.
    #[serde(default)]
    pub(super) huge_bytes_max: u32,
    /// Maximum number of unanswered multicasts.
    pub(super) window: u32,
    pub(super) deadline_ms: u64,
}

/// An answer from this member.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Answer<'a> {
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
        text: String,
    },
    Deliver {
        /// `None` if the message is empty and so has no room for its name.
        message: Option<Cow<'a, str>>,
        sender: &'a str,
        group: &'a str,
        /// `None` in a group without views.
        #[serde(skip_serializing_if = "Option::is_none")]
        view: Option<u64>,
        sequence: u64,
        bytes: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        digest: Option<Cow<'a, str>>,
        /// Whether the message was delivered before this start.
        #[serde(skip_serializing_if = "is_false")]
        replayed: bool,
    },
    View {
        group: &'a str,
        view: u64,
        members: Vec<&'a str>,
    },
    Leader {
        group: &'a str,
        term: u64,
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
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
const fn is_false(value: &bool) -> bool {
    !*value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_and_unknown_commands_are_parsed() {
        let init = r#"{"type":"init","protocol":1,"node":"n1","inc":1,"join":false,"nodes":[{"node":"n0","address":"127.0.0.1"}],
            "groups":[{"group":"g0","members":["n0"],"senders":["n0"]}],
            "limits":{"message_bytes_max":10240,"window":64,"deadline_ms":10000},"seed":7,"shared":"/s","storage":"/t"}"#;
        assert!(matches!(
            serde_json::from_str(init),
            Ok(DriverCommand::Init(Init { protocol: 1, .. }))
        ));
        assert!(matches!(serde_json::from_str(r#"{"type":"leave"}"#), Ok(DriverCommand::Leave)));
        assert!(matches!(serde_json::from_str(r#"{"type":"dance"}"#), Ok(DriverCommand::Unknown)));
        assert!(serde_json::from_str::<DriverCommand>(r#"{"type":"pause"}"#).is_err());
    }

    #[test]
    fn empty_message_is_reported_without_name() {
        let answer = Answer::Deliver {
            message: None,
            sender: "n0",
            group: "g0",
            view: Some(1),
            sequence: 0,
            bytes: 0,
            digest: None,
            replayed: false,
        };
        let text = serde_json::to_string(&answer).expect("JSON");
        assert_eq!(
            text,
            r#"{"type":"deliver","message":null,"sender":"n0","group":"g0","view":1,"sequence":0,"bytes":0}"#
        );
    }
}
