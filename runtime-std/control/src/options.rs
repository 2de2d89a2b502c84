//! Which members meet, and how.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tramontane_core::ids::{NodeId, Rank, ViewId};

use crate::address::Address;
use crate::key::SharedKey;
use crate::listener::Listener;

/// Which members meet, and how.
#[derive(Debug)]
pub struct MeshOptions<'m> {
    /// The own rank.
    pub own: Rank,
    /// The members' node ids, in rank order.
    pub members: &'m [NodeId],
    /// The address at which each member listens, in rank order.
    pub addresses: &'m [Address],
    /// A socket that listens at the own address already, if there is one. It is closed when all
    /// have met; to go on listening with a [`ControlServer`](crate::ControlServer), keep another
    /// handle of it ([`Listener::try_clone`]).
    pub listener: Option<Listener>,
    /// The life of this process, to be the same at its [`ControlServer`](crate::ControlServer) (see
    /// [`incarnation`](crate::incarnation)); none takes a new one.
    pub incarnation: Option<u64>,
    /// The view that is to start: members of another one are refused.
    pub view: ViewId,
    /// The layout's digest: members with another one are refused, both ends knowing why.
    pub digest: u64,
    /// The key that all members share.
    pub key: Option<SharedKey>,
    /// Whether, without a key, addresses may be used that are not local (see
    /// [`Address::is_local`]).
    pub allow_clear: bool,
    /// How long to wait for all members.
    pub time_limit: Duration,
    /// Ends the wait when it becomes true.
    pub cancel: &'m AtomicBool,
}
