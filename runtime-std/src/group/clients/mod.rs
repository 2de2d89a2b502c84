//! External clients (EXT-1): programs that are not members. They publish and subscribe through the
//! control server of any member.
//!
//! A client's messages occupy slots of the member that it is connected to, so they are ordered
//! together with the member's own messages. In a subgroup that accepts clients, the last bytes of
//! every message name its origin. Duplicates are detected on delivery, with a table that is the
//! same at all members. A client whose member fails moves to another member and resends everything
//! that has not been acknowledged; each message is still delivered only once.
//!
//! The rest of a member refers to its clients as [`Clients`].
//!
//! | file or folder | subject |
//! |---|---|
//! | `origin` | the origin of a message, in its last bytes |
//! | `order` | the order of clients' messages at every member, and the part that is kept |
//! | `serve` | the thread that serves clients |

pub(crate) mod order;
pub(crate) mod origin;
pub(crate) mod serve;

use std::sync::mpsc::{Sender as Queue, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tramontane_control::Session;
use tramontane_control::client_messages::ClientRefusal;
use tramontane_core::ids::{NodeId, SubgroupId};

use crate::fabric::AnyBell;
use crate::group::clients::order::feed::Feed;
use crate::group::clients::order::record_places::FeedPlaces;
use crate::group::clients::order::served::{Orders, Served, subgroups_with_clients};
use crate::group::clients::serve::member::ServedMember;
use crate::group::clients::serve::outlet::Outlet;
use crate::group::clients::serve::service::Service;
use crate::group::control::clients::{Clients, NoClients, RecordPlaces, refuse};
use crate::group::delivery::application::Application;
use crate::group::description::terms::Description;
use crate::group::durable::comparison::SharedLogs;
use crate::group::engine::participant::Participant;
use crate::group::send::send_state::SendState;
use crate::group::send::sender::Sender;
use crate::group::status::group_status::SharedStatus;

/// The client state that exists before this process becomes a member: the order of clients'
/// messages, which may have to be restored from another member.
pub(crate) struct ClientOrders {
    feed: Option<Arc<Feed>>,
}

impl ClientOrders {
    /// Wraps an application so that it receives its group's messages in the clients' order, if the
    /// group accepts clients.
    pub(crate) fn before<A: Application>(
        description: &Description,
        own: NodeId,
        application: A,
    ) -> std::io::Result<(Self, Served<A>)> {
        let subgroups = subgroups_with_clients(description);
        if subgroups.is_empty() {
            return Ok((Self { feed: None }, Served::without(application)));
        }
        let feed = Feed::new(subgroups.iter().copied())?;
        let orders = Box::new(Orders::new(&subgroups, own, Arc::clone(&feed)));
        Ok((Self { feed: Some(feed) }, Served::new(application, Some(orders))))
    }

    /// Starts serving clients.
    pub(crate) fn serve(
        self,
        participant: &Arc<Participant>,
        send_states: &[Arc<SendState>],
        bell: &AnyBell,
        board: SharedStatus,
        logs: SharedLogs,
    ) -> std::io::Result<Arc<dyn Clients>> {
        let Some(feed) = self.feed else { return Ok(Arc::new(NoClients)) };
        feed.lock().logs = logs;
        let outlet = |state: &Arc<SendState>| {
            (state.subgroup(), Outlet::new(Sender::new(state, None), bell.clone()))
        };
        let outlets = send_states.iter().filter(|state| state.has_clients).map(outlet).collect();
        let member =
            ServedMember::new(Arc::clone(participant), Arc::clone(&feed), outlets, bell.clone());
        let (queue, arrivals) = channel();
        let service = Service::new(member, arrivals, board);
        let thread = std::thread::Builder::new()
            .name("tramontane-clients".into())
            .spawn(move || service.run())?;
        Ok(Arc::new(ClientServer { queue, feed, thread: Mutex::new(Some(thread)) }))
    }
}

/// The thread that serves a member's clients.
struct ClientServer {
    queue: Queue<Session>,
    feed: Arc<Feed>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Clients for ClientServer {
    fn receive(&self, session: Session) {
        match self.queue.send(session) {
            Ok(()) => self.feed.wake(),
            Err(unserved) => refuse(unserved.0, ClientRefusal::NotNow),
        }
    }

    fn record_places(&self, subgroup: SubgroupId) -> Option<Box<dyn RecordPlaces>> {
        let has_it = self.feed.lock().subgroups.contains_key(&subgroup);
        has_it.then(|| {
            Box::new(FeedPlaces::new(subgroup, Arc::clone(&self.feed))) as Box<dyn RecordPlaces>
        })
    }

    fn end(&self) {
        self.feed.wake();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of the thread has already been reported.
            let _ = thread.join();
        }
    }
}
