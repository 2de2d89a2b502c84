//! Clients from outside (EXT-1): programs that are no members, and publish and subscribe at any
//! member, through the control server of its process.
//!
//! What a client publishes goes in the slots of its member, in one order with what members send.
//! Every message of a subgroup that takes clients says in its last bytes whose it is. Whether a
//! client's message is a duplicate is decided when it is delivered, by a table that all members
//! have alike: a client whose member dies goes to another one, sends again what was not
//! acknowledged, and everything is delivered once.
//!
//! | file | subject |
//! |---|---|
//! | `origin` | whose a message is: its last bytes |
//! | `table` | what the group remembers of clients; duplicates |
//! | `order`, `served` | the order of a subgroup, and its state; the application behind it |
//! | `words`, `record_places` | which records of a log are no messages |
//! | `retained`, `feed` | the last messages; what the driving thread tells the serving one |
//! | `history` | which order the member has, for clients that resume |
//! | `service`, `connection` | the thread that serves all clients; one client's connection |
//! | `publisher`, `subscriber`, `follower` | what a client is here for |
//! | `notices` | views and ends of clients, as followers are told of them |
//! | `member`, `outlet` | the member as clients see it; the way into a subgroup |
//! | `leases` | when a client is forgotten |

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
use crate::group::clients::order::record_places::RecordPlaces;
use crate::group::clients::order::served::{Orders, Served, subgroups_with_clients};
use crate::group::clients::serve::member::Member;
use crate::group::clients::serve::outlet::Outlet;
use crate::group::clients::serve::service::{Service, refuse};
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
    ) -> std::io::Result<ClientServer> {
        let Some(feed) = self.feed else { return Ok(ClientServer::default()) };
        feed.lock().logs = logs;
        let outlet = |state: &Arc<SendState>| {
            (state.subgroup(), Outlet::new(Sender::new(state, None), bell.clone()))
        };
        let outlets = send_states.iter().filter(|state| state.has_clients).map(outlet).collect();
        let member = Member::new(Arc::clone(participant), Arc::clone(&feed), outlets, bell.clone());
        let (queue, arrivals) = channel();
        let service = Service::new(member, arrivals, board);
        let thread = std::thread::Builder::new()
            .name("tramontane-clients".into())
            .spawn(move || service.run())?;
        Ok(ClientServer {
            arrivals: Some(Arrivals { queue, feed }),
            thread: Arc::new(Mutex::new(Some(thread))),
        })
    }
}

/// Where sessions of clients go in.
#[derive(Clone)]
struct Arrivals {
    queue: Queue<Session>,
    feed: Arc<Feed>,
}

/// The server of a member's clients. It ends with the member.
#[derive(Clone, Default)]
pub(crate) struct ClientServer {
    arrivals: Option<Arrivals>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl ClientServer {
    /// Serves a client, until its session ends.
    pub(crate) fn receive(&self, session: Session) {
        let Some(Arrivals { queue, feed }) = &self.arrivals else {
            return refuse(session, ClientRefusal::NotAllowed);
        };
        match queue.send(session) {
            Ok(()) => feed.wake(),
            Err(unserved) => refuse(unserved.0, ClientRefusal::NotNow),
        }
    }

    /// Which record of a log which message is, in a subgroup that takes clients.
    pub(crate) fn record_places(&self, subgroup: SubgroupId) -> Option<RecordPlaces> {
        let Arrivals { feed, .. } = self.arrivals.as_ref()?;
        let has_it = feed.lock().subgroups.contains_key(&subgroup);
        has_it.then(|| RecordPlaces::new(subgroup, Arc::clone(feed)))
    }

    /// Refuses a client of a process that is no member yet.
    pub(crate) fn refuse_before(session: Session) {
        refuse(session, ClientRefusal::NotNow);
    }

    /// Waits until the thread has ended. The member has.
    pub(crate) fn end(&self) {
        if let Some(Arrivals { feed, .. }) = &self.arrivals {
            feed.wake();
        }
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of it has been reported by itself.
            let _ = thread.join();
        }
    }
}
