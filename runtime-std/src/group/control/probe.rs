//! Asks the other nodes' control servers whether a member is already running.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tramontane_control::{
    Address, Identity, OpenSessionError, Purpose, Refusal, SharedKey, open_session,
};
use tramontane_core::ids::NodeId;

use crate::group::enter::forming::Waiting;
use crate::group::status::operator;
use crate::group::status::operator::{OperatorReply, OperatorRequest};
use crate::session_messages::ask_each;

/// The usual time limit for the answer of one control server.
pub(crate) const LOOK: Duration = Duration::from_millis(500);

/// The result of a probe.
#[derive(Default)]
pub(crate) struct Probed {
    /// Whether a node is a member of a view that excludes this node.
    pub(crate) is_running: bool,
    /// Whether a node is a member of any view.
    pub(crate) has_members: bool,
    /// A process with a different configuration, and the digest of that configuration.
    pub(crate) other_configuration: Option<(NodeId, u64)>,
    /// A process with a different key or program. It may be any process.
    pub(crate) refused: Option<(NodeId, OpenSessionError)>,
    /// Whether another process with this key and description is running.
    pub(crate) has_company: bool,
    /// The nodes that are waiting to form the group.
    pub(crate) forming: Vec<u32>,
    /// A node that is waiting to continue from the group's logs.
    pub(crate) restarting: Option<u32>,
}

impl Probed {
    /// Returns the reason to wait, if an unauthenticated process answered. Such a process may be a
    /// running member, so no other advice is safe.
    pub(crate) fn stranger(&self) -> Option<Waiting> {
        let (node, why) = self.refused.as_ref()?;
        Some(Waiting::Stranger {
            node: node.get(),
            answer: format!("its address cannot be used: {why}"),
        })
    }

    /// Returns the reason why a node without a log waits while another node restarts.
    pub(crate) fn others(&self) -> Option<Waiting> {
        self.restarting.map(|node| Waiting::Others { node })
    }
}

/// Asks the control servers of all other nodes at once, each within this time limit.
pub(crate) fn probe(
    identity: &Identity,
    addresses: &BTreeMap<NodeId, Address>,
    key: Option<&SharedKey>,
    limit: Duration,
) -> Probed {
    let others = addresses.iter().filter(|(node, _)| **node != identity.node);
    let look = |(_, address): (&NodeId, &Address)| ask(identity, address, key, limit);
    let mut probed = Probed::default();
    for ((node, _), answer) in ask_each(others, look, || Err(OpenSessionError::NotThere)) {
        let node = *node;
        probed.has_company |= answer.is_ok();
        match answer {
            Ok(Some(OperatorReply::Status(status))) => {
                probed.is_running |= !status.members.contains(&identity.node.get());
                probed.has_members |= !status.is_over();
            }
            Ok(Some(OperatorReply::Forming { .. })) => probed.forming.push(node.get()),
            Ok(Some(OperatorReply::Restarting(_))) => probed.restarting = Some(node.get()),
            Err(OpenSessionError::OtherConfiguration { digest }) => {
                probed.other_configuration = Some((node, digest));
            }
            Err(why) if is_stranger(&why) => probed.refused = Some((node, why)),
            Ok(_) | Err(_) => {}
        }
    }
    probed
}

/// Returns the status of the process at an address, if it answers.
fn ask(
    identity: &Identity,
    address: &Address,
    key: Option<&SharedKey>,
    limit: Duration,
) -> Result<Option<OperatorReply>, OpenSessionError> {
    let never = AtomicBool::new(false);
    let mut session = open_session(address, identity, key, Purpose::Ask, limit, &never)?.session;
    Ok(operator::ask(&mut session, OperatorRequest::Status).ok())
}

/// Returns whether retrying is pointless because a process of the group has a different
/// description.
pub(crate) const fn is_for_good(why: &OpenSessionError) -> bool {
    matches!(why, OpenSessionError::OtherConfiguration { .. })
}

/// Returns whether a process answered without proving that it has the key. It may be any process,
/// and may disappear again.
pub(crate) const fn is_stranger(why: &OpenSessionError) -> bool {
    use Refusal as R;
    matches!(
        why,
        OpenSessionError::WrongKey | OpenSessionError::Refused(R::Version | R::KeyMode | R::Key)
    )
}
