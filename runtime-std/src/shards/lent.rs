//! The memory that the core's replica or client borrows.
//!
//! The core borrows all its memory, which this module owns. With `self_cell`, owner and borrower
//! are stored together, and no unsafe code is needed here.

use self_cell::{MutBorrow, self_cell};
use tramontane_core::fabric::Capabilities;
use tramontane_core::tram::{
    Client, ClientLink, ClientLinks, ClientOptions, GroupState, LentState, LinkState, MessageState,
    OpenError, Overlay, Replica, ReplicaId, ReplicaLinks, ReplicaOptions, SourceState,
};

/// The memory that a replica borrows.
pub(super) struct ReplicaLoan {
    overlay: Overlay,
    links: Vec<LinkState>,
    sources: Vec<SourceState>,
    replies: Vec<u64>,
    payload: Vec<u8>,
}

self_cell!(
    /// A replica with the memory that it borrows.
    pub(super) struct ReplicaCell {
        owner: MutBorrow<ReplicaLoan>,
        #[not_covariant]
        dependent: Replica,
    }
);

/// Opens a replica on fresh state.
pub(super) fn open_replica(
    overlay: &Overlay,
    id: ReplicaId,
    options: ReplicaOptions,
    capabilities: Capabilities,
) -> Result<ReplicaCell, OpenError> {
    let limits = *overlay.limits();
    let loan = ReplicaLoan {
        overlay: overlay.clone(),
        links: vec![LinkState::default(); ReplicaLinks::of(overlay, id.group).len()],
        sources: vec![SourceState::default(); usize::from(limits.clients) + 1],
        replies: vec![0; Replica::reply_cells(overlay)],
        payload: vec![0; room(limits.payload_max)],
    };
    ReplicaCell::try_new(MutBorrow::new(loan), |loan| {
        let ReplicaLoan { overlay, links, sources, replies, payload } = loan.borrow_mut();
        let lent = LentState { links, sources, replies, payload };
        Replica::open(overlay, id, options, capabilities, lent)
    })
}

/// The memory that a client borrows.
pub(super) struct ClientLoan {
    overlay: Overlay,
    links: Vec<ClientLink>,
    groups: Vec<GroupState>,
    messages: Vec<MessageState>,
    payloads: Vec<u8>,
}

self_cell!(
    /// A client with the memory that it borrows.
    pub(super) struct ClientCell {
        owner: MutBorrow<ClientLoan>,
        #[not_covariant]
        dependent: Client,
    }
);

/// Opens a client on fresh state.
pub(super) fn open_client(
    overlay: &Overlay,
    options: ClientOptions,
    capabilities: Capabilities,
) -> Result<ClientCell, OpenError> {
    let limits = *overlay.limits();
    let window = room(limits.client_window);
    let loan = ClientLoan {
        overlay: overlay.clone(),
        links: vec![ClientLink::default(); ClientLinks::of(overlay).len()],
        groups: vec![GroupState::default(); overlay.len()],
        messages: vec![MessageState::default(); window],
        payloads: vec![0; window.saturating_mul(room(limits.payload_max))],
    };
    ClientCell::try_new(MutBorrow::new(loan), |loan| {
        let ClientLoan { overlay, links, groups, messages, payloads } = loan.borrow_mut();
        Client::open(overlay, options, capabilities, links, groups, messages, payloads)
    })
}

fn room(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
