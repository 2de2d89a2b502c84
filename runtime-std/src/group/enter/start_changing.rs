//! Makes a process a member of a group whose membership can change.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tramontane_core::fabric::{HostBlocks as _, HostFabric as _};

use super::entering::{Entered, Reception};
use super::place::StartingMember;
use super::senders::Senders;
use super::start_options::StartError;
use crate::fabric::AnyFabric;
use crate::group::clients::ClientOrders;
use crate::group::control::control_service::MemberAccess;
use crate::group::delivery::application::Application;
use crate::group::description::terms::Description;
use crate::group::durable::Logs;
use crate::group::durable::data::DataFolder;
use crate::group::engine::changing::{ChangingParts, Engine};
use crate::group::engine::participant::Participant;
use crate::group::engine::parts::Parts;
use crate::group::join::joining::LetIn;
use crate::group::large::Large;
use crate::group::running::{Handle, Running, Stepped};
use crate::group::state::membership_record::MembershipRecord;
use crate::group::state::noting::NotedFolder;
use crate::group::status::statistics::Statistics;
use crate::member::Settings;
use crate::poll::guarded;

impl StartingMember {
    pub(crate) fn become_member<A: Application>(
        mut self,
        description: Description,
        mut fabric: AnyFabric,
        application: A,
        settings: Settings,
        until: Instant,
        cancel: &AtomicBool,
    ) -> Result<Stepped<A>, StartError> {
        let bell = fabric.local_bell();
        let (client_orders, mut application) =
            ClientOrders::before(&description, self.own, application)?;
        // The application receives its state and the messages of a log before the member runs.
        let entered = guarded(|| {
            Ok(self.enter(&description, &mut fabric, &bell, &mut application, until, cancel))
        })??;
        let Entered { admission, reception, let_in } = entered;
        let Reception { service, server, requests, receiver, connector } = reception;
        let has_logs = !self.data.logs.is_empty();
        let folder = self.state.map(|folder| NotedFolder::new(folder, has_logs)).transpose()?;
        let record = MembershipRecord {
            folder,
            group: description.name.clone(),
            digest: self.identity.digest,
            node: self.own,
            incarnation: self.identity.incarnation,
        };
        let ending = Arc::default();
        let store = fabric.block_store();
        let Senders { send_states, sending, large_queues } =
            Senders::new(&description, self.own, &store, &ending, &bell);
        let DataFolder { logs, notices: log_notices, keep_bytes, .. } = self.data;
        let logs = Logs::start(logs, &description, &bell, keep_bytes)?;
        let large = Large::new(&description, store, large_queues.into_iter());
        let participant =
            Arc::new(Participant { description, own: self.own, options: settings.options, ending });
        let unsent = Arc::new(Mutex::new(Vec::new()));
        let parts = Parts {
            participant: Arc::clone(&participant),
            fabric,
            sending,
            requests: receiver,
            application,
            logs,
            statistics: Statistics::new(service.board.clone()),
            unsent: Arc::clone(&unsent),
            idle_time: settings.idle_time,
            overdue: None,
        };
        let changing = ChangingParts { large, connector: Arc::clone(&connector), record };
        let shared_logs = parts.logs.shared_logs();
        let engine = Engine::open(admission, parts, changing)?;
        let clients = client_orders.serve(
            &participant,
            &send_states,
            &bell,
            service.board.clone(),
            shared_logs.clone(),
        )?;
        // From here on, clients and operators are served.
        let _ = service.inside.set(MemberAccess {
            requests: requests.clone(),
            connector: Some(connector),
            logs: shared_logs.clone(),
            clients: clients.clone(),
        });
        let_in.into_iter().for_each(LetIn::tell_up);
        let handle = Handle {
            participant,
            send_states,
            requests,
            board: service.board,
            unsent,
            log_notices,
            clients,
            logs: shared_logs,
            _server: server,
        };
        Ok(Running::changing(handle, engine))
    }
}
