//! Tests joining nodes with suppliers that follow a script.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use tramontane_control::{Address, ControlServer, Identity, Listener, Purpose};
use tramontane_core::fabric::HostFabric as _;

use super::*;
use crate::fabric::AnyFabric;
use crate::group::control::peer_connector::Calls;
use crate::group::delivery::messages::Messages;
use crate::group::description::view::{FIRST_VIEW, WireView};
use crate::group::durable::data::DataFolder;
use crate::group::engine::request::Requests;
use crate::group::join::admission::{SentCount, SubgroupEnd};
use crate::group::join::join_messages::tests::message;
use crate::tcp::{Settings, Tcp};

const LONG: Duration = Duration::from_secs(60);
const JOINER: NodeId = NodeId(2);

/// Members that each follow a script.
#[derive(Default)]
struct ScriptedMembers {
    endpoints: Vec<ControlServer>,
    addresses: BTreeMap<NodeId, Address>,
}

fn identity(node: NodeId) -> Identity {
    Identity { node, incarnation: 1, digest: 7 }
}

impl ScriptedMembers {
    fn add(&mut self, node: u32, script: impl Fn(&mut Session) + Send + Sync + 'static) {
        let listener =
            Listener::bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port");
        let server = ControlServer::open(
            listener,
            identity(NodeId(node)),
            [JOINER],
            None,
            move |mut client| {
                // Connections for other purposes only check whether the member answers.
                if client.purpose == Purpose::Join {
                    script(&mut client.session);
                }
            },
        );
        let server = server.expect("a thread");
        self.addresses.insert(NodeId(node), server.address().clone());
        self.endpoints.push(server);
    }

    /// Returns the connector with which another process can call the members.
    fn connector(&self) -> PeerConnector {
        let tcp = Tcp::new(JOINER, Settings::default()).expect("descriptors");
        let (requests, _) = Requests::new(AnyFabric::Tcp(tcp).local_bell());
        let (identity, addresses) = (identity(JOINER), self.addresses.clone());
        PeerConnector { identity, addresses, key: None, requests, calls: Calls::default() }
    }
}

/// Describes a group with two subgroups: one of member 0 and the joining node, and one of member 1
/// and the joining node.
fn description() -> Description {
    let mut description = Description::local("taking", 3, 8, 16);
    let mut other = description.subgroups[0].clone();
    description.subgroups[0].members = Some(vec![0, 2]);
    (other.name, other.members) = ("other".to_owned(), Some(vec![1, 2]));
    description.subgroups.push(other);
    description
}

fn admission() -> Admission {
    let members = vec![NodeId(0), NodeId(1), JOINER];
    let view = View::with_all_senders(FIRST_VIEW.next(), members, Vec::new());
    let ends = [0, 1].map(|subgroup| SubgroupEnd { subgroup, trim: Some(1) }).to_vec();
    Admission { view, ends }
}

fn member(subgroup: u16, messages: u64) -> JoinReply {
    let Admission { view, ends } = admission();
    let sent = vec![SentCount { subgroup, messages, view: FIRST_VIEW.0, place: 1 }];
    JoinReply::Member { view: WireView::from(&view), ends, sent }
}

fn state(session: &mut Session, subgroup: u16) {
    send_message(session, &JoinReply::State { subgroup, view: 1, records: 0 }, LONG)
        .expect("it hears");
    session.send_stream(&mut std::io::empty(), LONG).expect("it hears");
}

fn hear_words(session: &mut Session, view: &View) -> JoinRequest {
    let welcome: JoinRequest = receive_message(session, AROUND, LONG).expect("it comes");
    assert_eq!(welcome, JoinRequest::Welcome);
    send_message(session, &JoinReply::View(view.into()), LONG).expect("it hears");
    receive_message(session, AROUND, LONG).expect("it asks")
}

/// Joins with member 0 as the lead, and returns the delivered messages.
fn join(members: &ScriptedMembers, view: &View) -> Result<Vec<Vec<u8>>, AttemptError> {
    let (description, connector, stop) = (description(), members.connector(), Arc::default());
    let mut delivered = Vec::new();
    let mut application = |messages: &mut Messages<'_, '_>| {
        messages.for_each(|message| delivered.push(message.payload.to_vec()));
    };
    let (mut data, mut progress) = (DataFolder::default(), TransferProgress::default());
    let restoring = Restoring { application: &mut application, data: &mut data };
    let (own, stop) = (JOINER, &stop);
    let mut transfer = StateTransfer {
        description: &description,
        own,
        connector: &connector,
        stop,
        restoring,
        progress: &mut progress,
    };
    let (_, session) = welcome(NodeId(0), &connector, stop)?;
    let mut lead = Supplier::new(NodeId(0), session, Vec::new());
    let admitted = transfer.be_let_in(&mut lead, view)?;
    assert_eq!(admitted, admission());
    transfer.complete(&admitted)?;
    Ok(delivered)
}

fn before() -> View {
    View::with_all_senders(FIRST_VIEW, vec![NodeId(0), NodeId(1)], Vec::new())
}

/// A member may report that an earlier request has led to the node's admission after another member
/// has reported that it has caught up.
#[test]
fn admitted_joiner_receives_late_deliveries_of_suppliers() {
    let mut members = ScriptedMembers::default();
    members.add(0, |session| {
        let asked = hear_words(session, &before());
        assert_eq!(
            asked,
            JoinRequest::Supply { subgroups: vec![0], leads: true, records: Vec::new() }
        );
        state(session, 0);
        send_message(session, &JoinReply::CaughtUp, LONG).expect("it hears");
        let ready: JoinRequest =
            receive_message(session, AROUND, LONG).expect("it is asked to go on");
        assert_eq!(ready, JoinRequest::Ready { sources: vec![(0, 0), (1, 1)] });
        let late = JoinReply::Messages(vec![message(b"delivered late")]);
        send_message(session, &late, LONG).expect("it hears");
        send_message(session, &member(0, 1), LONG).expect("it hears");
    });
    members.add(1, |session| {
        hear_words(session, &before());
        state(session, 1);
        send_message(session, &member(1, 0), LONG).expect("it hears");
    });
    assert_eq!(join(&members, &before()).expect("it is let in"), [b"delivered late"]);
}

/// The second subgroup has no member in the first view. The lead finds out that the subgroup has
/// one when the joining node is ready.
#[test]
fn newly_populated_subgroup_is_restored_before_admission() {
    let alone = View { members: vec![NodeId(0)], ..before() };
    let mut members = ScriptedMembers::default();
    let first = alone.clone();
    members.add(0, move |session| {
        hear_words(session, &first);
        state(session, 0);
        send_message(session, &JoinReply::CaughtUp, LONG).expect("it hears");
        let mut ready =
            || receive_message::<JoinRequest>(session, AROUND, LONG).expect("it is asked to go on");
        assert_eq!(ready(), JoinRequest::Ready { sources: vec![(0, 0)] });
        send_message(session, &JoinReply::Choose(WireView::from(&before())), LONG)
            .expect("it hears");
        let mut ready =
            || receive_message::<JoinRequest>(session, AROUND, LONG).expect("it is asked to go on");
        assert_eq!(ready(), JoinRequest::Ready { sources: vec![(0, 0), (1, 1)] });
        send_message(session, &member(0, 0), LONG).expect("it hears");
    });
    members.add(1, |session| {
        hear_words(session, &before());
        state(session, 1);
        send_message(session, &JoinReply::CaughtUp, LONG).expect("it hears");
        send_message(session, &member(1, 0), LONG).expect("it hears");
    });
    join(&members, &alone).expect("it is let in");
}

/// No member ever supplies the second subgroup, although the view says that it continues.
#[test]
fn joiner_restores_missing_subgroup_from_view_member() {
    let alone = View { members: vec![NodeId(0)], ..before() };
    let mut members = ScriptedMembers::default();
    let first = alone.clone();
    members.add(0, move |session| {
        hear_words(session, &first);
        state(session, 0);
        send_message(session, &member(0, 0), LONG).expect("it hears");
    });
    let refused = AtomicBool::new(false);
    members.add(1, move |session| {
        let asked = hear_words(session, &admission().view);
        assert_eq!(
            asked,
            JoinRequest::Supply { subgroups: vec![1], leads: false, records: Vec::new() }
        );
        if !refused.swap(true, Ordering::Relaxed) {
            return send_message(session, &JoinReply::NotNow("busy".to_owned()), LONG)
                .expect("it hears");
        }
        state(session, 1);
        let Admission { view, ends } = admission();
        let sent = vec![SentCount { subgroup: 1, messages: 0, view: view.id.0, place: 0 }];
        let word = JoinReply::Member { view: WireView::from(&view), ends, sent };
        send_message(session, &word, LONG).expect("it hears");
    });
    join(&members, &alone).expect("it has all of it in the end");
}

#[test]
fn joiner_restarts_if_view_ends_before_restore() {
    let alone = View { members: vec![NodeId(0)], ..before() };
    let mut members = ScriptedMembers::default();
    let first = alone.clone();
    members.add(0, move |session| {
        hear_words(session, &first);
        state(session, 0);
        send_message(session, &member(0, 0), LONG).expect("it hears");
    });
    members.add(1, |session| {
        let _: JoinRequest = receive_message(session, AROUND, LONG).expect("it comes");
        let view = View { id: admission().view.id.next(), ..before() };
        // The joining node has left by then.
        let _ = send_message(session, &JoinReply::View(WireView::from(&view)), LONG);
    });
    let error = join(&members, &alone).expect_err("something is missing");
    assert!(matches!(error, AttemptError::ViewOver), "{error}");
}

/// Member 1 was admitted while the joiner took over the state, and has ended since then.
#[test]
fn joiner_reports_newer_members_it_cannot_reach() {
    let alone = View { members: vec![NodeId(0)], ..before() };
    let mut members = ScriptedMembers::default();
    let (first, (said, heard)) = (alone.clone(), std::sync::mpsc::channel());
    members.add(0, move |session| {
        hear_words(session, &first);
        state(session, 0);
        send_message(session, &JoinReply::CaughtUp, LONG).expect("it hears");
        let _: JoinRequest = receive_message(session, AROUND, LONG).expect("it is ready");
        send_message(session, &JoinReply::Choose(WireView::from(&before())), LONG)
            .expect("it hears");
        said.send(receive_message(session, AROUND, LONG).expect("it answers")).expect("the test");
    });
    members.add(1, |_| {});
    drop(members.endpoints.pop());
    let error = join(&members, &alone).expect_err("node 1 does not answer");
    assert!(matches!(&error, AttemptError::Unreached(of) if *of == [NodeId(1)]), "{error}");
    assert_eq!(heard.recv_timeout(LONG), Ok(JoinRequest::Unreached { members: vec![1] }));
}
