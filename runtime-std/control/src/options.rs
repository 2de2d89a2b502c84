//! The members that meet, and their settings.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tramontane_core::ids::{NodeId, Rank, ViewId};

use crate::address::Address;
use crate::key::SharedKey;
use crate::listener::Listener;

/// The members that meet, and their settings.
#[derive(Debug)]
pub struct MeshOptions<'m> {
    /// Local rank.
    pub own: Rank,
    /// The node ids of the members, in rank order.
    pub members: &'m [NodeId],
    /// The address at which each member listens, in rank order.
    pub addresses: &'m [Address],
    /// A socket that already listens at the local address, if there is one. It is closed when all
    /// members have met. To keep listening with a [`ControlServer`](crate::ControlServer), keep
    /// another handle to it ([`Listener::try_clone`]).
    pub listener: Option<Listener>,
    /// The incarnation of this process, which must be the same at its
    /// [`ControlServer`](crate::ControlServer) (see [`incarnation`](crate::incarnation)). `None`
    /// for a new one.
    pub incarnation: Option<u64>,
    /// The view to be started. Members with a different view are refused.
    pub view: ViewId,
    /// The digest of the layout. Members with a different digest are refused, and both ends report
    /// it.
    pub digest: u64,
    /// The key shared by all members.
    pub key: Option<SharedKey>,
    /// Whether addresses that are not local may be used without a key (see [`Address::is_local`]).
    pub allow_clear: bool,
    /// Time limit for all members to arrive.
    pub time_limit: Duration,
    /// Ends the wait when it becomes true.
    pub cancel: &'m AtomicBool,
}
