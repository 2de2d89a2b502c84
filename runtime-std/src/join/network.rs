//! Joining over TCP, and what all members on a network say of where they meet.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroU64;
use std::sync::Arc;

use tramontane_control::SharedKey;
use tramontane_core::ids::Rank;
use tramontane_core::layout::Layout;

use super::{JoinError, JoinOptions};
use crate::joined::JoinedFabric;
use crate::member::{FIXED_VIEW, Memory};
use crate::tcp::{self, TcpOptions};

/// Where members meet over TCP.
#[derive(Clone, Debug, Default)]
pub struct NetworkMeeting {
    /// Where each member listens, by rank. The same at all members.
    pub addresses: Vec<SocketAddr>,
    /// A socket that listens at the own address already, if there is one.
    pub listener: Option<Arc<TcpListener>>,
    /// The key that all members share. It may be left out where all addresses are loopback.
    pub key: Option<SharedKey>,
    /// Whether, without a key, other addresses than loopback may be used.
    pub allow_clear: bool,
    /// The most bytes a second that this member sends to each, by rank; who is not listed, or has
    /// none, is sent as many as the network takes. For experiments, and where others share the
    /// network.
    pub rates: Vec<Option<NonZeroU64>>,
    /// What else all members must have been told alike, as a number: who has another is refused, as
    /// with another layout.
    pub terms: u64,
}

impl NetworkMeeting {
    /// A descriptor of the socket that listens already.
    pub fn listener(&self) -> io::Result<Option<TcpListener>> {
        self.listener.as_ref().map(|listener| listener.try_clone()).transpose()
    }
}

/// Waits for all members, opens the fabric over the connections to them, and lends its rows.
pub(super) fn join(
    layout: &Layout<'_>,
    own: Rank,
    meeting: &NetworkMeeting,
    options: &JoinOptions<'_>,
) -> Result<(JoinedFabric, Memory), JoinError> {
    let tcp_options = TcpOptions {
        addresses: &meeting.addresses,
        terms: meeting.terms,
        listener: meeting.listener().map_err(tcp::TcpError::from)?,
        view: FIXED_VIEW,
        key: meeting.key.clone(),
        allow_clear: meeting.allow_clear,
        time_limit: options.time_limit,
        cancel: options.cancel,
        settings: tcp::Settings::default(),
    };
    let (fabric, rows) = tcp::meet(layout, own, tcp_options)?;
    let others = (0..).map(Rank).zip(layout.group().members).filter(|(rank, _)| *rank != own);
    for (rank, member) in others {
        if let Some(Some(rate)) = meeting.rates.get(rank.index()) {
            fabric.limit_rate(*member, *rate).map_err(tcp::TcpError::from)?;
        }
    }
    Ok((JoinedFabric::Tcp(fabric), Memory::new(rows)))
}
