//! Tramontane's core: atomic multicast over remote memory, without `std` and without a heap.
//!
//! A message sent to a group arrives at every member or at none, in the same order everywhere.
//! Begin with [`node::Node`], which is one member of a group. Its [`step`](node::Node::step) sends,
//! receives and delivers; a [`layout::Layout`] describes the group and the memory that the node
//! needs; a [`fabric::Fabric`] carries its writes to the other members. Programs on an operating
//! system should use the crate `tramontane` instead.
//!
//! The protocols are those of Derecho with Spindle (Jha, Rosa, Birman, ICDCS 2022). Ids such as
//! COR-1 below are the project's requirements.
//!
//! # Properties
//! - It has no I/O, no clock and no threads: [`node::Node::step`] does a bounded amount of work and
//!   returns.
//! - It never blocks, recurses or allocates, and no input from a peer or a caller makes it panic.
//! - The caller lends all memory: the rows, the state and the outboxes. [`layout::Layout`] computes
//!   the sizes.
//! - A [`fabric::Fabric`] is its only connection to the outside.
//! - Cells only grow. Data larger than a cell is published by a counter that is written after the
//!   data.
//!
//! # Example
//! Two members in one process, whose rows are in shared memory, so that the fabric has nothing to
//! carry:
//!
//! ```
//! use tramontane_core::fabric::{
//!     Capabilities, ErrorKind, Event, Fabric, Promises, Token, ViewMemory, Write,
//! };
//! use tramontane_core::ids::{NodeId, Rank, SubgroupId, Time, ViewId};
//! use tramontane_core::layout::{Delivery, Group, Layout, StateSizes, Subgroup};
//! use tramontane_core::memory::NodeMemory;
//! use tramontane_core::multicast::Batch;
//! use tramontane_core::node::{Loan, Node, Options};
//! use tramontane_core::storage::{RowStorage, lines};
//!
//! const RANKS: [Rank; 2] = [Rank(0), Rank(1)];
//! const LAYOUT: Layout<'static> = match Layout::new(Group {
//!     members: &[NodeId(7), NodeId(9)],
//!     subgroups: &[Subgroup {
//!         members: &RANKS,
//!         senders: &RANKS,
//!         window: 8,
//!         message_max: 100,
//!         delivery: Delivery::Ordered,
//!     }],
//! }) {
//!     Ok(layout) => layout,
//!     Err(_) => panic!("the group is wrong"),
//! };
//! const SIZES: StateSizes = LAYOUT.state_sizes(Rank(0));
//! static ROWS: [RowStorage<{ lines(LAYOUT.row_bytes(Rank(0))) }>; 2] =
//!     [RowStorage::new(), RowStorage::new()];
//!
//! struct OneMemory;
//!
//! impl Fabric for OneMemory {
//!     type Error = ErrorKind;
//!     fn capabilities(&self) -> Capabilities {
//!         Capabilities {
//!             promises: Promises::all(),
//!             writes_max: 16,
//!             write_bytes_max: usize::MAX,
//!             guard_bytes_max: 64,
//!             write_overhead_bytes: usize::MAX,
//!         }
//!     }
//!     fn post(
//!         &mut self,
//!         _: ViewId,
//!         _: Rank,
//!         _: &[Write],
//!         _: Option<Token>,
//!     ) -> Result<(), ErrorKind> {
//!         Ok(()) // The store was the write.
//!     }
//!     fn poll(&mut self) -> Option<Event> {
//!         None
//!     }
//!     # fn open(&mut self, _: ViewId, _: &ViewMemory<'_>) -> Result<(), ErrorKind> {
//!     #     Ok(())
//!     # }
//!     # fn ready(&self, _: ViewId, _: Rank) -> bool {
//!     #     true
//!     # }
//!     # fn cut(&mut self, _: ViewId, _: Rank) {}
//!     # fn retire(&mut self, _: ViewId) -> bool {
//!     #     true
//!     # }
//!     # fn wake(&mut self, _: ViewId, _: Rank) {}
//!     # fn arm(&mut self) -> bool {
//!     #     true
//!     # }
//!     # fn disarm(&mut self) {}
//!     # fn observe_barrier(&self) {}
//! }
//!
//! let rows = [ROWS[0].reader(), ROWS[1].reader()];
//! let mut storage: [tramontane_core::node_storage!(SIZES); 2] = Default::default();
//! let mut own = RANKS.iter().zip(&mut storage).map(|(own, storage)| {
//!     let lent = storage.lend(&SIZES).expect("it has these sizes");
//!     // SAFETY: each row has one writer, this node.
//!     let memory = unsafe {
//!         NodeMemory::new(&rows, ROWS[own.index()].writer(), lent.cells, lent.ready)
//!     };
//!     let loan = Loan { memory, state: lent.state };
//!     Node::open(ViewId(1), &LAYOUT, *own, loan, Options::default(), OneMemory.capabilities())
//! });
//! let mut nodes = [own.next().unwrap()?, own.next().unwrap()?];
//!
//! let outbox = nodes[0].outbox(SubgroupId(0)).expect("it sends");
//! let mut message = outbox.reserve(5)?;
//! message.payload().copy_from_slice(b"hello");
//! message.commit();
//!
//! let mut delivered = 0;
//! for now in (0..4).map(Time) {
//!     for node in &mut nodes {
//!         node.step(now, &mut OneMemory, &mut |batch: &mut Batch<'_>| {
//!             for message in batch {
//!                 assert_eq!((message.sender.0, message.payload), (0, &b"hello"[..]));
//!                 delivered += 1;
//!             }
//!         })?;
//!     }
//! }
//! assert_eq!(delivered, 2, "once at each member");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Reading order
//! [`ids`], [`layout`], [`fabric`], [`check`], [`memory`], [`smc`], [`multicast`], [`node`]; then
//! [`storage`] for statically declared memory, [`health`] for partners that may fall silent or
//! restart, `view` for a membership that changes, `rdmc` for messages sent in blocks, and [`turn`]
//! for several threads that drive one node.
//!
//! # Features
//! No feature is on by default. A partition with a fixed membership needs none, so the code of the
//! features is neither built nor reviewed for it.
//!
//! | feature | adds |
//! |---|---|
//! | `views` | a membership that changes: the module `view`, `node::ViewNode`, and the columns of the view protocol in [`layout`] |
//! | `blocks` | block multicast: the module `rdmc`, `fabric::Blocks`, and in [`layout`] channels and subgroups with large messages |
//! | `tram` | order across many groups: the module `tram` |
//! | `durable` | counts of the messages that members have made durable, in logged subgroups; with `views`, promises that are made durable before a seal is echoed; the module `restart` |
//! | `prefetch` | a hint to the processor while a burst of messages is built; this is the only assembly |
//! | `defmt` | formats for a `defmt` logger |
//!
//! In every build a slot may hold the descriptor of a large message, so the stages of [`multicast`]
//! compile to the same machine code in all builds. Without `blocks` no layout allows such a
//! descriptor, and a sender that publishes one misbehaves.
//!
//! # Targets
//! Counts are 64 bits wide and shared between processors, so a target needs 64-bit atomics.
//!
//! Requirement: COR-1.
#![cfg_attr(not(any(test, loom, tramontane_interleave)), no_std)]

pub mod check;
pub mod fabric;
pub mod health;
pub mod ids;
pub mod layout;
pub mod memory;
pub mod multicast;
pub mod node;
#[cfg(feature = "blocks")]
pub mod rdmc;
#[cfg(feature = "durable")]
pub mod restart;
pub mod smc;
#[cfg(not(loom))]
pub mod storage;
mod sync;
#[cfg(feature = "tram")]
pub mod tram;
pub mod turn;
#[cfg(feature = "views")]
pub mod view;

#[cfg(tramontane_interleave)]
pub use sync::interleave;
