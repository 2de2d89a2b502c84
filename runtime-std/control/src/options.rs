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
    /// Node ids of the members, in rank order.
    pub members: &'m [NodeId],
    /// Address at which each member listens, in rank order.
    pub addresses: &'m [Address],
    /// A socket that already listens at the local address, if there is one. It is closed when all
    /// have met; to keep listening with a [`ControlServer`](crate::ControlServer), keep another
    /// handle of it ([`Listener::try_clone`]).
    pub listener: Option<Listener>,
    /// Incarnation of this process, which must be the same at its
    /// [`ControlServer`](crate::ControlServer) (see [`incarnation`](crate::incarnation)); `None`
    /// for a new one.
    pub incarnation: Option<u64>,
    /// View that is to start; members with another view are refused.
    pub view: ViewId,
    /// Digest of the layout; members with another one are refused, and both ends report it.
    pub digest: u64,
    /// Key that all members share.
    pub key: Option<SharedKey>,
    /// Whether, without a key, addresses that are not local may be used (see
    /// [`Address::is_local`]).
    pub allow_clear: bool,
    /// Time limit for all members to arrive.
    pub time_limit: Duration,
    /// Ends the wait when it becomes true.
    pub cancel: &'m AtomicBool,
}
