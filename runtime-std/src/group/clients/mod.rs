//! Clients from outside (EXT-1): programs that are no members, and publish and subscribe at any
//! member, through the control server of its process.
//!
//! What a client publishes goes in the slots of its member, in one order with what members send.
//! Every message of a subgroup that takes clients says in its last bytes whose it is. Whether a
//! client's message is a duplicate is decided when it is delivered, by a table that all members
//! have alike: a client whose member dies goes to another one, sends again what was not
//! acknowledged, and everything is delivered once.
//!
//! The rest of a member knows its clients as [`Clients`].
//!
//! | file or folder | subject |
//! |---|---|
//! | `origin` | whose a message is: its last bytes |
//! | `order` | the order of clients' messages, at every member, and what is kept of it |
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
use crate::group::delivery::replica::Replica;
use crate::group::description::terms::Description;
use crate::group::durable::comparison::SharedLogs;
use crate::group::engine::participant::Participant;
use crate::group::send::send_state::SendState;
use crate::group::send::sender::Sender;
use crate::group::status::group_status::SharedStatus;

/// What there is of clients before this process is a member: their order, which it may have to take
/// over from another member.
pub(crate) struct ClientOrders {
    feed: Option<Arc<Feed>>,
}

impl ClientOrders {
    /// Puts an application behind the order of its group's clients, if the group takes any.
    pub(crate) fn before<R: Replica>(
        description: &Description,
        own: NodeId,
        application: R,
    ) -> std::io::Result<(Self, Served<R>)> {
        let subgroups = subgroups_with_clients(description);
        if subgroups.is_empty() {
            return Ok((Self { feed: None }, Served::without(application)));
        }
        let feed = Feed::new(subgroups.iter().copied())?;
        let orders = Box::new(Orders::new(&subgroups, own, Arc::clone(&feed)));
        Ok((Self { feed: Some(feed) }, Served::new(application, Some(orders))))
    }

    /// Serves clients, from now on.
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

/// The server of a member's clients.
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
            // A panic of it has been reported by itself.
            let _ = thread.join();
        }
    }
}
