//! Clients of groups: groups that accept them, and a client that can send anything.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tramontane_client::{Address, ClientId, ClientLife, Members, SharedKey};
use tramontane_control::client_messages::{
    Bytes, ClientReply, ClientRequest, Level, Target, decode, encode,
};
use tramontane_control::{
    Identity, OpenSessionError, Purpose, QueuedSession, SessionError, open_session,
};
use tramontane_runtime::group::{ControlEndpoints, Description};
use tramontane_runtime::shared_memory::Root;

use crate::support::LONG;
use crate::support::group::{GroupFile, Node, Transport};

/// Creates a group of three nodes whose only subgroup accepts clients and has these fields.
pub fn group_of(carrier: Transport, subgroup: &str) -> GroupFile {
    let group = GroupFile::of(carrier, 3);
    let text =
        format!("{}[[subgroups]]\nname = \"lines\"\nclients = true\n{subgroup}", group.text());
    group.write(&text);
    group
}

/// Starts all nodes of the group, and waits until they are members.
pub fn start(group: &GroupFile) -> Vec<Node> {
    let nodes = (0..3).map(|id| group.node(id, &[])).collect();
    group.await_members(&[0, 1, 2]);
    nodes
}

fn endpoints(group: &GroupFile) -> ControlEndpoints {
    let description = Description::read(group.config.as_ref()).expect("a group file");
    let root = Root::under(group.place.path());
    ControlEndpoints::of(&description, &root).expect("addresses")
}

/// Returns the addresses of the group's nodes.
pub fn addresses(group: &GroupFile) -> Vec<Address> {
    endpoints(group).addresses().cloned().collect()
}

/// Returns the group's members for clients in this process, beginning with node `first`.
pub fn members_from(group: &GroupFile, first: usize) -> Members {
    let mut addresses = addresses(group);
    addresses.rotate_left(first);
    let members = Members::at(addresses);
    match key(group) {
        Some(key) => members.key(key),
        None => members,
    }
}

pub fn key(group: &GroupFile) -> Option<SharedKey> {
    endpoints(group).key().cloned()
}

/// A client that sends arbitrary messages to one node.
pub struct RawClient(QueuedSession);

impl RawClient {
    pub fn at(group: &GroupFile, node: usize) -> Self {
        Self::let_in(group, node).expect("let in")
    }

    /// Connects to a node, which may refuse the client.
    pub fn let_in(group: &GroupFile, node: usize) -> Result<Self, OpenSessionError> {
        let identity = Identity { node: Identity::NO_MEMBER, incarnation: 1, digest: 0 };
        let (never, key) = (AtomicBool::new(false), key(group));
        let address = &addresses(group)[node];
        let opened = open_session(address, &identity, key.as_ref(), Purpose::Client, LONG, &never)?;
        Ok(Self(opened.session.into_queued().expect("it is whole")))
    }

    pub fn say(&mut self, request: &ClientRequest<'_>) {
        self.say_bytes(&encode(request));
    }

    pub fn say_bytes(&mut self, bytes: &[u8]) {
        self.0.put(bytes).expect("no cipher fails");
        // The session may have been cut.
        let _ = self.0.flush();
    }

    pub fn attach(&mut self, life: ClientLife, is_new: bool) {
        let (target, level) = (Target { group: "", subgroup: "", name: "raw" }, Level::Delivered);
        self.say(&ClientRequest::Attach { target, life, is_new, level });
    }

    pub fn publish(&mut self, first: u64, lines: &[&str]) {
        let lines = lines.iter().map(|line| Bytes(line.as_bytes())).collect();
        self.say(&ClientRequest::Publish { first, lines });
    }

    /// Returns the member's next message, skipping keep-alives.
    pub fn hear(&mut self) -> Result<Vec<u8>, SessionError> {
        let until = Instant::now() + LONG;
        while Instant::now() < until {
            if let Some(reply) = self.0.take(1 << 20)? {
                if decode(&reply) != Some(ClientReply::Alive) {
                    return Ok(reply);
                }
                continue;
            }
            self.0.read()?;
            std::thread::sleep(Duration::from_millis(1));
        }
        Err(SessionError::TimeUp)
    }

    /// Returns the next ordinal once the client is attached, or the message that it receives
    /// instead.
    pub fn hear_next(&mut self) -> Result<u64, String> {
        let reply = self.hear().expect("an answer");
        match decode(&reply).expect("it makes sense") {
            ClientReply::Attached { next, .. } => Ok(next),
            other => Err(format!("{other:?}")),
        }
    }

    /// Waits until `lines` of the client's lines have been delivered.
    pub fn await_delivered(&mut self, lines: u64) {
        loop {
            let reply = self.hear().expect("an answer");
            match decode(&reply).expect("it makes sense") {
                ClientReply::Reached(reached) if reached.delivered >= lines => return,
                ClientReply::Reached(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

pub const fn life(id: u64, incarnation: u64) -> ClientLife {
    ClientLife { id: ClientId(id), incarnation }
}
