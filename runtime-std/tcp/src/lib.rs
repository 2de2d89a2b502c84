//! The TCP fabric, for hosts without RDMA, and for members on one host that do not share memory.
//!
//! Each pair of members has one connection, which carries everything in both directions and for all
//! views, many of which may be open at once. A write is a frame. Its receiver checks the frame
//! against its own memory, and stores the bytes into its own copy of the writer's row, or into a
//! region to which the writer may write. So a peer can change only its own row, within its bounds,
//! and the memory to which it has been granted access.
//!
//! Start with [`Tcp`], the fabric of one member. Two members, each in a thread of its own, open a
//! view over loopback. The first writes a number into its row, and the second sees it in its copy:
//!
//! ```
//! # use std::{net::TcpListener, sync::atomic::AtomicBool, time::Duration};
//! # use tramontane_control::{Address, Mesh, MeshOptions};
//! # use tramontane_core::fabric::{Event, Fabric as _, HostFabric as _};
//! # use tramontane_core::fabric::{Kind, ViewPlan, ViewRows as _, Write};
//! # use tramontane_core::ids::{NodeId, Rank, ViewId};
//! # use tramontane_tcp::{Settings, Tcp};
//! # type Failure = Box<dyn std::error::Error + Send + Sync>;
//! fn member(own: Rank, listener: TcpListener, addresses: &[Address]) -> Result<(), Failure> {
//!     let (view, members, digest) = (ViewId(1), [NodeId(1), NodeId(2)], 42);
//!     let peer = Rank(1 - own.get());
//!     let mut connections = Mesh::join(MeshOptions {
//!         own, members: &members, addresses, listener: Some(listener.try_into()?), view, digest,
//!         incarnation: None, key: None, allow_clear: false,
//!         time_limit: Duration::from_secs(30), cancel: &AtomicBool::new(false),
//!     })?.into_connections();
//!     let mut fabric = Tcp::new(members[own.index()], Settings::default())?;
//!     let connection = connections.remove(peer.index()).ok_or("no connection")?;
//!     fabric.add_peer(members[peer.index()], connection)?;
//!     let rows = fabric.rows(&ViewPlan::with_sizes(view, own, &members, &[64; 2], digest))?;
//!     fabric.open(view, &rows.memory())?;
//!     if own == Rank(0) {
//!         while !fabric.ready(view, peer) {
//!             assert!(!matches!(fabric.poll(), Some(Event::PeerLost { .. })));
//!         }
//!         rows.row().cell(0).expect("in the row").publish(7);
//!         fabric.post(view, peer, &[Write::of_row(0, 8, Kind::Guard)], None)?;
//!     }
//!     let arrived = || rows.rows()[0].cell(0).is_ok_and(|cell| cell.load() == 7);
//!     while !arrived() {
//!         // The first member may have left by the time its write is here.
//!         assert!(!matches!(fabric.poll(), Some(Event::PeerLost { .. })) || arrived());
//!     }
//!     fabric.leave();
//!     Ok(())
//! }
//! #
//! # let listeners = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
//! # let addresses = [listeners[0].local_addr()?.into(), listeners[1].local_addr()?.into()];
//! # let addresses = &addresses;
//! # std::thread::scope(|scope| {
//! #     let start = |(own, listener)| scope.spawn(move || member(own, listener, addresses));
//! #     let members: Vec<_> = [Rank(0), Rank(1)].into_iter().zip(listeners).map(start).collect();
//! #     members.into_iter().try_for_each(|member| member.join().expect("no panic"))
//! # })?;
//! # Ok::<(), Failure>(())
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `memory` | the rows of one view at one member |
//! | `blocks` | the [`Blocks`](tramontane_core::fabric::Blocks) of the fabric, and their memory |
//! | `regions` | the [`Permissions`](tramontane_core::fabric::Permissions) of the fabric |
//! | `frame` | the frames of a connection |
//! | `send_queue`, `lent_content` | the queue to a peer; a part of a row or region in it |
//! | `incoming` | the traffic from a peer |
//! | `notice`, `stream_end` | messages that the member must learn of; the end of the stream |
//! | `body` | the destination of a frame's body |
//! | `landing` | the views that both ends have open, and the destination of writes in each |
//! | `connection` | one peer: its socket, and its end |
//! | `connections` | all connections, and a list of the busy ones |
//! | `views`, `peers` | the open views, and the route to each member; individual peers |
//! | `event_queue` | events that the member has not polled yet |
//! | `watch` | waiting for sockets, and for the bell of this process |
//! | `fabric`, `posting` | the [`Fabric`](tramontane_core::fabric::Fabric); its posts |
//! | `host` | the [`HostFabric`](tramontane_core::fabric::HostFabric) |
//!
//! # Guarantees
//! - **Order.** TCP keeps data in order, and the receiver stores it in that order, so both ordering
//!   promises hold.
//! - **Completion.** A list with a token is completed when its receiver confirms that it has been
//!   stored.
//! - **Back-pressure.** A peer that takes nothing costs one list of writes and its socket's
//!   buffers. The next posts to it are `QueueFull`, and the next accepted post covers everything
//!   that has changed in the meantime. Blocks wait in block memory, a few per channel, and are sent
//!   in pieces, with lists in between.
//! - **Failure.** If a peer's connection ends, the peer is lost for good. Nothing reconnects by
//!   itself, because it is unknown how much of the data in flight has arrived, and only a new view
//!   restores a consistent state.
//! - **Keys.** With a [`SharedKey`](tramontane_control::SharedKey), everything is encrypted by the
//!   cipher of the handshake ([`tramontane_control`]). Without one, traffic is unencrypted, which
//!   is refused beyond this machine unless the caller permits it.
//! - **Sleep.** The kernel wakes a thread that waits for a socket as soon as something arrives. A
//!   member that shares its processor should sleep as soon as it finds no work
//!   ([`idle_time`](tramontane_core::fabric::HostFabric::idle_time) of zero), because yielding and
//!   checking again costs whole time slices if another thread is computing on that processor.
//! - **Unauthenticated peers.** They reach no member, because members listen only while they meet,
//!   and the cost of such a peer is bounded during that time.

mod blocks;
mod body;
mod connection;
mod connections;
mod event_queue;
mod fabric;
mod frame;
mod host;
#[cfg(any(test, fuzzing))]
pub mod hostile_bytes;
mod incoming;
mod landing;
mod lent_content;
mod memory;
mod notice;
mod peers;
mod posting;
mod regions;
mod send_queue;
mod stream_end;
mod views;
mod watch;
mod zeroed;

pub use blocks::{BlockBytes, BlockMemory, BlockStore, NoBlockMemory};
pub use connection::Settings;
pub use fabric::{Tcp, VIEWS_MAX};
pub use memory::{NoRows, Rows};
pub use regions::RegionMemory;
pub use watch::Bell;
