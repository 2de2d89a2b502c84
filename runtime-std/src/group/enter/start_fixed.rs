//! Makes a process a member of a group with fixed membership. It meets all others, and all of them
//! prepare the view's memory; only then does the group start.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tramontane_core::fabric::{Event, LossCause, ViewMemory};
use tramontane_core::fabric::{Fabric as _, HostBlocks as _, HostFabric as _, ViewRows as _};
use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::layout::Layout;

use super::place::StartingMember;
use super::senders::Senders;
use super::start_options::{StartError, StartOptions};
use crate::fabric::AnyFabric;
use crate::group::clients::order::served::Served;
use crate::group::control::clients::NoClients;
use crate::group::control::control_service::{ControlService, MemberAccess};
use crate::group::delivery::application::Application;
use crate::group::description::error::DescriptionError;
use crate::group::description::terms::{Description, Membership};
use crate::group::description::view::{FIRST_VIEW, View};
use crate::group::durable::Logs;
use crate::group::durable::comparison::SharedLogs;
use crate::group::engine::fixed::Fixed;
use crate::group::engine::participant::Participant;
use crate::group::engine::parts::Parts;
use crate::group::engine::request::Requests;
use crate::group::engine::view_memory::open_view;
use crate::group::running::{Handle, Running, Stepped};
use crate::group::status::statistics::Statistics;
use crate::member::{Memory, Settings, Stopped};

/// The interval between checks of whether all peers are ready.
const READY_PAUSE: Duration = Duration::from_micros(200);

/// Nodes that have met, and whose only view is open and ready on all of them. If this is dropped
/// without [`leave`](Self::leave), the process counts as failed.
pub struct Connected {
    pub(crate) fabric: AnyFabric,
    pub(crate) memory: Memory,
    pub(crate) own: Rank,
}

impl Connected {
    /// Returns the rows of the view.
    #[must_use]
    pub fn memory(&self) -> ViewMemory<'_> {
        self.memory.memory()
    }

    /// Leaves the group deliberately.
    pub fn leave(mut self) {
        self.fabric.leave();
    }
}

/// Meets all nodes of a group with fixed membership, and allocates memory of this layout. Intended
/// for protocols that run between the nodes without a member. `layout` is for the description's
/// nodes in their order, and its digest must be the same on all nodes.
///
/// # Errors
/// Returns [`ConnectError`]. In that case nothing is left behind.
pub fn connect(
    mut description: Description,
    mut options: StartOptions<'_>,
    layout: &Layout<'_>,
) -> Result<Connected, ConnectError> {
    description.membership = Membership::Fixed;
    description.complete()?;
    let until = Instant::now() + options.time_limit;
    let cancel = options.cancel;
    options.terms ^= layout.digest();
    let (place, mut fabric) = StartingMember::take(&description, options)?;
    let view = View::first(&description);
    let own = place.rank_in(&view)?;
    place.connect_all(&description, &mut fabric, until, cancel)?;
    let memory = open_at_all(&mut fabric, layout, own, &view, until, cancel)?;
    Ok(Connected { fabric, memory, own })
}

/// The reason why nodes cannot connect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// An error in the description.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// An error that can also occur when a group starts.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl StartingMember {
    fn rank_in(&self, view: &View) -> Result<Rank, StartError> {
        let known = || view.members.iter().map(|node| node.get()).collect();
        view.rank_of(self.own)
            .ok_or_else(|| StartError::UnknownNode { node: self.own.get(), known: known() })
    }

    /// Meets all others, and passes their connections to the fabric.
    fn connect_all(
        &self,
        description: &Description,
        fabric: &mut AnyFabric,
        until: Instant,
        cancel: &AtomicBool,
    ) -> Result<(), StartError> {
        for (node, session) in self.meet_fixed(description, until, cancel)? {
            fabric.connect(node, session);
        }
        Ok(())
    }

    pub(crate) fn become_fixed<A: Application>(
        self,
        description: Description,
        mut fabric: AnyFabric,
        application: A,
        settings: Settings,
        until: Instant,
        cancel: &AtomicBool,
    ) -> Result<Stepped<A>, StartError> {
        let view = View::first(&description);
        let own = self.rank_in(&view)?;
        let layout = description.view_layout(&view)?;
        self.connect_all(&description, &mut fabric, until, cancel)?;
        let service = ControlService::default();
        let nodes = description.nodes.iter().map(|node| NodeId(node.id));
        let server = service.open(self.listener, self.identity, nodes, self.key)?;
        let memory = open_at_all(&mut fabric, layout.get(), own, &view, until, cancel)?;
        let (requests, receiver) = Requests::new(fabric.local_bell());
        let ending = Arc::default();
        let store = fabric.block_store();
        let bell = fabric.local_bell();
        let Senders { send_states, sending, .. } =
            Senders::new(&description, self.own, &store, &ending, &bell);
        let participant =
            Arc::new(Participant { description, own: self.own, options: settings.options, ending });
        let unsent = Arc::new(Mutex::new(Vec::new()));
        let parts = Parts {
            participant: Arc::clone(&participant),
            fabric,
            sending,
            requests: receiver,
            // The subgroups accept no clients.
            application: Served::without(application),
            logs: Logs::default(),
            statistics: Statistics::new(service.board.clone()),
            unsent: Arc::clone(&unsent),
            idle_time: settings.idle_time,
            overdue: None,
        };
        let member = Fixed::open(parts, own, layout, memory)?;
        let _ = service.inside.set(MemberAccess {
            requests: requests.clone(),
            connector: None,
            logs: SharedLogs::default(),
            clients: Arc::new(NoClients),
        });
        let handle = Handle {
            participant,
            send_states,
            requests,
            board: service.board,
            unsent,
            log_notices: Vec::new(),
            clients: Arc::new(NoClients),
            logs: SharedLogs::default(),
            _server: server,
        };
        Ok(Running::fixed(handle, member))
    }
}

/// Opens the view at this member, and waits until it is open at all peers. Once this returns, a
/// member may post.
fn open_at_all(
    fabric: &mut AnyFabric,
    layout: &Layout<'_>,
    own: Rank,
    view: &View,
    until: Instant,
    cancel: &AtomicBool,
) -> Result<Memory, StartError> {
    let memory = open_view(fabric, layout, own, FIRST_VIEW);
    let memory = memory.map_err(|error| Stopped::NoMemory(error.to_string()))?;
    let peers = || (0..).map(Rank).zip(&view.members).filter(|(rank, _)| *rank != own);
    loop {
        while let Some(event) = fabric.poll() {
            if let Event::PeerLost { view: FIRST_VIEW, peer: rank, cause } = event {
                if cause == LossCause::Unreachable
                    && let Some(why) = fabric.no_answer(FIRST_VIEW, rank)
                {
                    return Err(why.into());
                }
                let node = view.members.get(rank.index()).copied();
                return Err(Stopped::PeerLost { rank, node, cause }.into());
            }
        }
        let mut missing = peers().filter(|(rank, _)| !fabric.ready(FIRST_VIEW, *rank));
        let Some((_, node)) = missing.next() else { return Ok(memory) };
        if cancel.load(Ordering::Relaxed) {
            return Err(StartError::Cancelled);
        }
        if Instant::now() >= until {
            return Err(StartError::NotReady { node: node.get() });
        }
        std::thread::sleep(READY_PAUSE);
        // A killed process does not ring the bell, so losses must be checked for.
        fabric.check_peers();
    }
}
