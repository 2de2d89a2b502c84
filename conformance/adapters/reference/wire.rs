//! Messages between members and the sequencer over the socket: one JSON object per line.

use std::io::{self, BufRead};

use serde::{Deserialize, Serialize};

/// A message from a member to the sequencer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Up {
    /// The first message: the node, its process, and its groups.
    Hello { node: String, pid: u32, groups: Vec<Membership> },
    /// A message to order. `message` comes back in [`Down::Taken`] and goes no further.
    Send { message: String, groups: Vec<String>, payload: String },
    /// The acknowledgement of all entries up to this one.
    Have { upto: u64 },
    /// The member's request to leave all its groups.
    Leave,
    /// The end of the run: the member ends too, without a change of views.
    Stop,
}

/// A group of a member, with all nodes that are or may become members.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Membership {
    pub group: String,
    pub members: Vec<String>,
}

/// A message from the sequencer to a member.
#[derive(Debug, Serialize, Deserialize)]
pub enum Down {
    /// The member's admission: every later message comes after its first views, and after the
    /// entries up to this one, which are the state that it takes over.
    Welcome { state: u64 },
    /// The end of the state.
    Current,
    /// The member's leadership of the group from now on.
    Leads { group: String, term: u64 },
    /// The next entry for this member, which must wait until it is stable.
    Entry { number: u64, entry: Entry },
    /// The stability of all entries up to this one.
    Stable { upto: u64 },
    /// The stability of a message that this member sent: there is room for another.
    Taken { message: String },
    /// The loss of all members that a message was addressed to; one of them may have delivered it.
    Lost { message: String },
    /// The loss of a group's majority.
    Halt { text: String },
}

/// An entry with a position in the order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Entry {
    /// Someone's message.
    Message { sender: String, groups: Vec<String>, payload: String },
    /// The members of the group from this position on.
    View { group: String, view: u64, members: Vec<String> },
    /// The departure of the member that receives this.
    Left,
}

/// Its line.
pub fn line(frame: &impl Serialize) -> String {
    let mut text = serde_json::to_string(frame).expect("a frame has only text keys");
    text.push('\n');
    text
}

/// Returns the next frame, or `None` at the end of the stream, after a broken connection or after
/// an invalid frame.
pub fn next<T: for<'a> Deserialize<'a>>(stream: &mut impl BufRead) -> Option<T> {
    let mut text = String::new();
    let read: io::Result<usize> = stream.read_line(&mut text);
    read.ok().filter(|read| *read > 0).and_then(|_| serde_json::from_str(&text).ok())
}
