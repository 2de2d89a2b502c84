//! A node: opened once, and stepped repeatedly.

use core::ffi::c_void;
use core::ptr::NonNull;

use tramontane_core::fabric::Fabric;
use tramontane_core::ids::{Rank, Time, ViewId};
use tramontane_core::layout::Layout;
use tramontane_core::memory::{NodeMemory, Row, RowWriter};
use tramontane_core::multicast::{
    Batch, EachMessage, Link, MemberState, Message, SenderState, SubgroupState,
};
use tramontane_core::node::{Loan, Node, OpenError, Options, State};
use tramontane_core::smc::{HandOffCells, ReadyFlag};

use crate::fabric::{Carried, tramontane_fabric};
use crate::layout::{TRAMONTANE_CACHE_LINE, give, slice_of, tramontane_group, with_layout};
use crate::state::{Rest, bytes};
use crate::tramontane_status::{
    self, TRAMONTANE_BAD_FABRIC, TRAMONTANE_BAD_POINTER, TRAMONTANE_BROKEN,
    TRAMONTANE_NOT_A_MEMBER, TRAMONTANE_OUT_OF_ROW, TRAMONTANE_TOO_SMALL,
};

/// Alignment of the state's memory.
pub const TRAMONTANE_STATE_ALIGN: usize = 128;
/// Maximum size in bytes of the state for the node itself.
pub const TRAMONTANE_NODE_BYTES: usize = 384;
/// Maximum size in bytes of the state per member of the group.
pub const TRAMONTANE_ROW_REF_BYTES: usize = 16;
/// Maximum size in bytes of the state per subgroup of the node.
pub const TRAMONTANE_SUBGROUP_BYTES: usize = 384;
/// Maximum size in bytes of the state per sender of these subgroups.
pub const TRAMONTANE_SENDER_BYTES: usize = 256;
/// Maximum size in bytes of the state per member of these subgroups.
pub const TRAMONTANE_MEMBER_BYTES: usize = 96;
/// Maximum size in bytes of the state per other member of these subgroups.
pub const TRAMONTANE_LINK_BYTES: usize = 192;
/// Maximum size in bytes of the state per subgroup that the node sends in.
pub const TRAMONTANE_HANDOFF_BYTES: usize = 384;
/// Maximum size in bytes of the state per slot of these subgroups.
pub const TRAMONTANE_READY_BYTES: usize = 8;

/// The only view of a group with a fixed membership.
pub(crate) const VIEW: ViewId = ViewId(1);

/// A node, stored in the state's memory.
pub struct tramontane_node(pub(crate) Node<'static>);

/// The arguments for opening a node. All of its memory must be zeroed, belong only to this node,
/// and stay valid.
#[repr(C)]
pub struct tramontane_setup {
    /// The group.
    pub group: *const tramontane_group,
    /// Local rank.
    pub rank: u16,
    /// Row of each member, in rank order: the local row, and copies of the other members' rows.
    /// Each begins on a cache line and has the size that tramontane_row_bytes returns.
    pub rows: *const *mut u8,
    /// State, aligned to TRAMONTANE_STATE_ALIGN.
    pub state: *mut u8,
    /// Size in bytes of the state; tramontane_state_bytes returns the required size.
    pub state_bytes: usize,
    /// Maximum number of messages that a step sends, receives and delivers in each subgroup; 0 for
    /// no limit.
    pub messages_max: u32,
}

/// The results of a step.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct tramontane_progress {
    /// Number of local slots published.
    pub sent: u32,
    /// Number of slots received from peers.
    pub received: u32,
    /// Number of messages handed over.
    pub delivered: u64,
    /// Whether nothing was done and nothing waits: another step finds nothing until something
    /// arrives.
    pub is_idle: bool,
    /// Whether everything that this node sent has been delivered everywhere, as far as it knows.
    pub is_settled: bool,
    /// Whether a peer has been lost, now or in an earlier step, so that nothing more becomes
    /// stable.
    pub is_lost: bool,
    /// Number of the impossible value that a peer published, or 0.
    pub refused: u8,
}

/// A delivered message. The payload is lent until the call returns.
#[repr(C)]
pub struct tramontane_message {
    /// The subgroup.
    pub subgroup: u16,
    /// Sender's rank in the group.
    pub rank: u16,
    /// Sequence position in the delivery order.
    pub place: u64,
    /// Payload.
    pub payload: *const u8,
    /// Payload length in bytes.
    pub length: usize,
}

/// Receives a message. It must not call the node.
pub type tramontane_deliver =
    Option<unsafe extern "C" fn(context: *mut c_void, message: *const tramontane_message)>;

/// Computes the size in bytes of the state that a member needs.
///
/// # Safety
/// Pointers that are not null are valid, and so is everything that they point to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tramontane_state_bytes(
    group: *const tramontane_group,
    rank: u16,
    needed: *mut usize,
) -> tramontane_status {
    // SAFETY: the caller's promise.
    unsafe {
        give(
            needed,
            with_layout(group, |layout| {
                if usize::from(rank) >= layout.members() {
                    return Err(TRAMONTANE_NOT_A_MEMBER);
                }
                bytes(&layout.state_sizes(Rank(rank)), layout.members()).ok_or(TRAMONTANE_TOO_SMALL)
            }),
        )
    }
}

/// Opens a node with a fixed membership. The members must have compared tramontane_digest before.
///
/// # Safety
/// Pointers that are not null are valid. The promises about memory in the setup hold as long as the
/// node is used. Only this node stores in the local row, and only tramontane_apply stores in a
/// copy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tramontane_open(
    setup: *const tramontane_setup,
    fabric: *const tramontane_fabric,
    node: *mut *mut tramontane_node,
) -> tramontane_status {
    // SAFETY: the caller's promise.
    let (setup, fabric) = unsafe { (slice_of(setup, 1), slice_of(fabric, 1)) };
    let (Some([setup]), Some([fabric])) = (setup, fabric) else { return TRAMONTANE_BAD_POINTER };
    // SAFETY: as above.
    unsafe { give(node, with_layout(setup.group, |layout| open(setup, fabric, layout))) }
}

/// # Safety
/// The caller's promise is that of [`tramontane_open`].
unsafe fn open(
    setup: &tramontane_setup,
    fabric: &tramontane_fabric,
    layout: &Layout<'_>,
) -> Result<*mut tramontane_node, tramontane_status> {
    let own = Rank(setup.rank);
    if own.index() >= layout.members() {
        return Err(TRAMONTANE_NOT_A_MEMBER);
    }
    let state = NonNull::new(setup.state).ok_or(TRAMONTANE_BAD_POINTER)?;
    if !state.as_ptr().addr().is_multiple_of(TRAMONTANE_STATE_ALIGN) {
        return Err(TRAMONTANE_BAD_POINTER);
    }
    // SAFETY: the caller's promise.
    let bases = unsafe { slice_of(setup.rows, layout.members()) }.ok_or(TRAMONTANE_BAD_POINTER)?;
    let writer = |rank: usize| {
        let base = NonNull::new(*bases.get(rank)?)?;
        let bytes = layout.row_bytes(Rank(u16::try_from(rank).ok()?));
        let is_aligned = base.as_ptr().addr().is_multiple_of(TRAMONTANE_CACHE_LINE);
        // SAFETY: by the caller's promise: there are `bytes` bytes, which are accessed as rows are.
        is_aligned.then(|| unsafe { RowWriter::from_raw(base, bytes) })
    };
    let row = writer(own.index()).ok_or(TRAMONTANE_BAD_POINTER)?;
    if (0..layout.members()).any(|rank| writer(rank).is_none()) {
        return Err(TRAMONTANE_BAD_POINTER);
    }
    // SAFETY: the caller's promise.
    let mut rest = unsafe { Rest::new(state, setup.state_bytes) };
    let sizes = layout.state_sizes(own);
    let node = rest.cut(1, |_| Some(None::<tramontane_node>)).ok_or(TRAMONTANE_TOO_SMALL)?;
    let rows: &[Row<'static>] = rest
        .cut(layout.members(), |rank| Some(writer(rank)?.reader()))
        .ok_or(TRAMONTANE_TOO_SMALL)?;
    let private = State {
        subgroups: rest
            .cut(sizes.subgroups, |_| Some(SubgroupState::VACANT))
            .ok_or(TRAMONTANE_TOO_SMALL)?,
        senders: rest
            .cut(sizes.senders, |_| Some(SenderState::VACANT))
            .ok_or(TRAMONTANE_TOO_SMALL)?,
        members: rest
            .cut(sizes.members, |_| Some(MemberState::VACANT))
            .ok_or(TRAMONTANE_TOO_SMALL)?,
        links: rest.cut(sizes.links, |_| Some(Link::VACANT)).ok_or(TRAMONTANE_TOO_SMALL)?,
    };
    let cells =
        rest.cut(sizes.handoffs, |_| Some(HandOffCells::new())).ok_or(TRAMONTANE_TOO_SMALL)?;
    let ready = rest.cut(sizes.ready, |_| Some(ReadyFlag::new())).ok_or(TRAMONTANE_TOO_SMALL)?;
    // SAFETY: one node uses this memory, which is fresh and is accessed as the caller promised.
    let memory = unsafe { NodeMemory::new(rows, row, cells, ready) };
    let loan = Loan { memory, state: private };
    let messages_max = if setup.messages_max == 0 { u32::MAX } else { setup.messages_max };
    let options = Options { messages_max, ..Options::default() };
    let capabilities = Carried(fabric).capabilities();
    let opened = Node::open(VIEW, layout, own, loan, options, capabilities);
    let opened = opened.map_err(|error| match error {
        OpenError::NotAMember => TRAMONTANE_NOT_A_MEMBER,
        OpenError::WrongRows | OpenError::WrongState => TRAMONTANE_TOO_SMALL,
        OpenError::NoGuard | OpenError::FabricTooSmall | OpenError::NoRelays => {
            TRAMONTANE_BAD_FABRIC
        }
    })?;
    let place = node.first_mut().ok_or(TRAMONTANE_TOO_SMALL)?;
    Ok(&raw mut *place.insert(tramontane_node(opened)))
}

/// Does the pending work: sends, receives, delivers and posts. It never waits. Only one thread at a
/// time may step a node.
///
/// # Safety
/// `node` comes from tramontane_open, and no other call uses it at the same time. The other
/// pointers are valid, and the fabric is like the one with which the node was opened.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tramontane_step(
    node: *mut tramontane_node,
    now_ns: u64,
    fabric: *const tramontane_fabric,
    deliver: tramontane_deliver,
    context: *mut c_void,
    progress: *mut tramontane_progress,
) -> tramontane_status {
    // SAFETY: the caller's promise.
    let (node, fabric) = unsafe { (node.as_mut(), slice_of(fabric, 1)) };
    let (Some(tramontane_node(node)), Some([fabric])) = (node, fabric) else {
        return TRAMONTANE_BAD_POINTER;
    };
    #[cfg(feature = "planted-panic")]
    core::hint::black_box([1, 2, 3][core::hint::black_box(now_ns as usize)]);
    let mut upcall = |batch: &mut Batch<'_>| {
        let subgroup = batch.subgroup().get();
        let mut each = EachMessage(|message: Message<'_>| {
            let message = tramontane_message {
                subgroup,
                rank: message.rank.get(),
                place: message.place.get(),
                payload: message.payload.as_ptr(),
                length: message.payload.len(),
            };
            if let Some(deliver) = deliver {
                // SAFETY: the provider of the function has promised that it may be called in this
                // way.
                unsafe { deliver(context, &raw const message) };
            }
        });
        tramontane_core::multicast::Application::deliver(&mut each, batch);
    };
    let stepped = node.step(Time(now_ns), &mut Carried(fabric), &mut upcall);
    let done = stepped.map_err(|_| TRAMONTANE_BROKEN).map(|done| tramontane_progress {
        sent: done.sent,
        received: done.received,
        delivered: done.delivered,
        is_idle: done.is_idle(),
        is_settled: node.is_settled(),
        is_lost: node.is_lost(),
        refused: done.refused.map_or(0, |(_, what)| what.code()),
    });
    // SAFETY: the caller's promise.
    unsafe { give(progress, done) }
}

/// Stores a peer's posted bytes in the copy of its row. Call it in the order in which the bytes
/// were posted, and not while the node is being stepped.
///
/// # Safety
/// `row` is one of the rows of a setup and has `row_bytes` bytes; `bytes` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tramontane_apply(
    row: *mut u8,
    row_bytes: usize,
    offset: usize,
    bytes: *const u8,
    length: usize,
) -> tramontane_status {
    // SAFETY: the caller's promise.
    let bytes = unsafe { slice_of(bytes, length) };
    let (Some(base), Some(bytes)) = (NonNull::new(row), bytes) else {
        return TRAMONTANE_BAD_POINTER;
    };
    if !row.addr().is_multiple_of(TRAMONTANE_CACHE_LINE) {
        return TRAMONTANE_BAD_POINTER;
    }
    // SAFETY: as above.
    match unsafe { RowWriter::from_raw(base, row_bytes) }.apply(offset, bytes) {
        Ok(()) => tramontane_status::TRAMONTANE_OK,
        Err(_) => TRAMONTANE_OUT_OF_ROW,
    }
}

/// Copies bytes out of a row, for a fabric that sends them elsewhere.
///
/// # Safety
/// `row` is one of the rows of a setup and has `row_bytes` bytes; `into` has room for `length`
/// bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tramontane_read(
    row: *mut u8,
    row_bytes: usize,
    offset: usize,
    into: *mut u8,
    length: usize,
) -> tramontane_status {
    let (Some(base), Some(into)) = (NonNull::new(row), NonNull::new(into)) else {
        return TRAMONTANE_BAD_POINTER;
    };
    if !row.addr().is_multiple_of(TRAMONTANE_CACHE_LINE) || length > row_bytes {
        return TRAMONTANE_BAD_POINTER;
    }
    // SAFETY: the caller's promise; a row is smaller than the address space.
    let into = unsafe { NonNull::slice_from_raw_parts(into, length).as_mut() };
    // SAFETY: as above.
    match unsafe { Row::from_raw(base, row_bytes) }.read(offset, into) {
        Ok(()) => tramontane_status::TRAMONTANE_OK,
        Err(_) => TRAMONTANE_OUT_OF_ROW,
    }
}
