//! Takes a process from finding its group to the first view that contains the process.
//!
//! All members may leave or fail while a node joins them. Then no member is left to admit the node,
//! and initial nodes that start later mistake the joining node for a running group. So the joining
//! node looks for the group again, and forms or restarts it with these nodes, as if it had just
//! been started.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use tramontane_control::{ControlServer, Identity, OpenSessionError};
use tramontane_core::ids::NodeId;

use super::place::{Found, StartingMember};
use super::start_options::StartError;
use crate::fabric::{AnyBell, AnyFabric};
use crate::group::control::control_service::ControlService;
use crate::group::control::peer_connector::{Calls, PeerConnector};
use crate::group::delivery::application::Application;
use crate::group::description::subgroups::logged_subgroups;
use crate::group::description::terms::Description;
use crate::group::description::view::View;
use crate::group::engine::request::{Request, Requests};
use crate::group::join::admission::Admission;
use crate::group::join::attempt_error::AttemptError;
use crate::group::join::joining;
use crate::group::join::joining::LetIn;
use crate::group::join::restoring::Restoring;
use crate::group::join::transfer_progress::TransferProgress;

/// The sockets and services through which a process reaches others and is reached by them.
pub(crate) struct Reception {
    pub(crate) service: ControlService,
    pub(crate) server: ControlServer,
    pub(crate) requests: Requests,
    pub(crate) receiver: Receiver<Request>,
    pub(crate) connector: Arc<PeerConnector>,
}

impl Reception {
    fn open(place: &StartingMember, description: &Description, bell: &AnyBell) -> io::Result<Self> {
        let service = ControlService::default();
        let nodes = description.nodes.iter().map(|node| NodeId(node.id));
        let listener = place.listener.try_clone()?;
        let server = service.open(listener, place.identity, nodes, place.key.clone())?;
        let (requests, receiver) = Requests::new(bell.clone());
        let connector = Arc::new(PeerConnector {
            identity: place.identity,
            addresses: place.addresses.clone(),
            key: place.key.clone(),
            requests: requests.clone(),
            calls: Calls::default(),
        });
        Ok(Self { service, server, requests, receiver, connector })
    }
}

/// A process that is in a view.
pub(crate) struct Entered {
    pub(crate) admission: Admission,
    pub(crate) reception: Reception,
    /// Set if the process was admitted by a member.
    pub(crate) let_in: Option<LetIn>,
}

impl StartingMember {
    /// Finds the group, and enters one of its views.
    pub(crate) fn enter<A: Application>(
        &mut self,
        description: &Description,
        fabric: &mut AnyFabric,
        bell: &AnyBell,
        application: &mut A,
        until: Instant,
        cancel: &AtomicBool,
    ) -> Result<Entered, StartError> {
        let (mut progress, mut is_again) = (TransferProgress::default(), false);
        loop {
            let met = self.find_group(description, until, cancel)?;
            let reception = Reception::open(self, description, bell)?;
            let restoring = Restoring { application: &mut *application, data: &mut self.data };
            let (admission, sessions, let_in) = match met {
                Found::First(sessions) => {
                    restoring.data.begin_anew()?;
                    if is_again {
                        let reset = restoring.reset(&mut progress);
                        reset.map_err(|error| not_let_in(&self.identity, error))?;
                    }
                    (Admission::first(View::first(description)), sessions, None)
                }
                Found::Again(view, sessions) => {
                    let reset = restoring.reset(&mut progress);
                    reset.map_err(|error| not_let_in(&self.identity, error))?;
                    (Admission::first(view), sessions, None)
                }
                Found::Running => {
                    let logged = logged_subgroups(description);
                    let aside = logged.map(|of| restoring.data.set_other_aside(of));
                    let aside = aside.collect::<Result<(), _>>();
                    aside.map_err(|error| not_let_in(&self.identity, error.into()))?;
                    let (own, connector) = (self.own, &reception.connector);
                    match joining::join(
                        description,
                        own,
                        connector,
                        restoring,
                        &mut progress,
                        until,
                        cancel,
                    ) {
                        Ok(let_in) => (let_in.admission.clone(), Vec::new(), Some(let_in)),
                        Err(AttemptError::AllGone) => {
                            tracing::info!(
                                "all members have been lost; looking for the group again"
                            );
                            is_again = true;
                            continue;
                        }
                        Err(error) => return Err(not_let_in(&self.identity, error)),
                    }
                }
            };
            for (node, session) in sessions {
                fabric.connect(node, session);
            }
            return Ok(Entered { admission, reception, let_in });
        }
    }
}

fn not_let_in(own: &Identity, error: AttemptError) -> StartError {
    match error {
        AttemptError::Refused { node, why: OpenSessionError::OtherConfiguration { digest } } => {
            StartError::other_configuration(node, own.digest, digest)
        }
        AttemptError::OpenSession(OpenSessionError::Cancelled) => StartError::Cancelled,
        AttemptError::Refused { node, why } => StartError::Refused { node: node.get(), why },
        AttemptError::Log(error) => StartError::DiskFailed(error.to_string()),
        error => StartError::NotLetIn { node: own.node.get(), why: error.to_string() },
    }
}
