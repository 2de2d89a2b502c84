//! What members and the sequencer say to each other over the socket: one JSON object a line.

use std::io::{self, BufRead};

use serde::{Deserialize, Serialize};

/// A member to the sequencer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Up {
    /// The node, its process, and the groups of which it is to be a member. The first frame.
    Hello { node: String, pid: u32, groups: Vec<Membership> },
    /// Order this. `message` comes back in [`Down::Taken`] and goes no further.
    Send { message: String, groups: Vec<String>, payload: String },
    /// The member has all entries up to this one.
    Have { upto: u64 },
    /// The member wishes to leave all its groups.
    Leave,
    /// The run is at its end, and the member ends with it: no view tells of it.
    Stop,
}

/// A group of a member, with all nodes that are or may become members.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Membership {
    pub group: String,
    pub members: Vec<String>,
}

/// The sequencer to a member.
#[derive(Debug, Serialize, Deserialize)]
pub enum Down {
    /// The member is let in: whatever anyone sends from now on comes after its first views, and
    /// after the entries up to this one, which are the state that it takes over.
    Welcome { state: u64 },
    /// The member has all of the state.
    Current,
    /// The member leads the group from now on.
    Leads { group: String, term: u64 },
    /// The next of the entries that are for this member. Not to be acted on before it is stable.
    Entry { number: u64, entry: Entry },
    /// All members that they concern have the entries up to this one.
    Stable { upto: u64 },
    /// A message that this member sent is stable: there is room for another.
    Taken { message: String },
    /// All members that a message of this member was for are gone; one may have delivered it.
    Lost { message: String },
    /// A group of the member has lost its majority.
    Halt { text: String },
}

/// What has a place in the one order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Entry {
    /// Someone's message.
    Message { sender: String, groups: Vec<String>, payload: String },
    /// From here on the group has these members.
    View { group: String, view: u64, members: Vec<String> },
    /// The member to which this goes has left.
    Left,
}

/// Its line.
pub fn line(frame: &impl Serialize) -> String {
    let mut text = serde_json::to_string(frame).expect("a frame has only text keys");
    text.push('\n');
    text
}

/// The next frame; nothing at the end, which a broken connection and a broken frame are as well.
pub fn next<T: for<'a> Deserialize<'a>>(stream: &mut impl BufRead) -> Option<T> {
    let mut text = String::new();
    let read: io::Result<usize> = stream.read_line(&mut text);
    read.ok().filter(|read| *read > 0).and_then(|_| serde_json::from_str(&text).ok())
}
