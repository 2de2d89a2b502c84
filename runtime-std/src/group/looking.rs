//! A look at the others' doors: does somebody run already?

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tramontane_control::{Address, Identity, Purpose, Refusal, SharedKey, VisitError, visit};
use tramontane_core::ids::NodeId;

use super::operator::{self, OperatorAsks, OperatorHears};
use super::status::GroupStatus;

/// How long a look at one door may take.
const LOOK: Duration = Duration::from_millis(500);

/// What a look found.
#[derive(Default)]
pub(super) struct Looked {
    /// Somebody is a member of a view without this node.
    pub(super) is_running: bool,
    /// Somebody is there, and goes by this digest, another one.
    pub(super) other_configuration: Option<(NodeId, u64)>,
    /// Somebody is there, and has another key or program. It may be anybody.
    pub(super) sent_away: Option<(NodeId, VisitError)>,
}

/// Looks at all other nodes' doors at once.
pub(super) fn look(
    identity: &Identity,
    addresses: &BTreeMap<NodeId, Address>,
    key: Option<&SharedKey>,
) -> Looked {
    let others = addresses.iter().filter(|(node, _)| **node != identity.node);
    std::thread::scope(|scope| {
        let looks: Vec<_> = others
            .map(|(node, address)| (*node, scope.spawn(|| ask(identity, address, key))))
            .collect();
        let mut looked = Looked::default();
        for (node, look) in looks {
            match look.join() {
                Ok(Ok(Some(status))) => {
                    looked.is_running |= !status.members.contains(&identity.node.get())
                }
                Ok(Err(VisitError::OtherConfiguration { digest })) => {
                    looked.other_configuration = Some((node, digest));
                }
                Ok(Err(why)) if is_stranger(&why) => looked.sent_away = Some((node, why)),
                _ => {}
            }
        }
        looked
    })
}

/// How the process at an address is, if it is a member.
fn ask(
    identity: &Identity,
    address: &Address,
    key: Option<&SharedKey>,
) -> Result<Option<GroupStatus>, VisitError> {
    let never = AtomicBool::new(false);
    let mut talk = visit(address, identity, key, Purpose::Ask, LOOK, &never)?.talk;
    match operator::ask(&mut talk, OperatorAsks::Status) {
        Ok(OperatorHears::Status(status)) => Ok(Some(*status)),
        Ok(_) | Err(_) => Ok(None),
    }
}

/// Whether coming again cannot help: a process of the group has another description.
pub(super) const fn is_for_good(why: &VisitError) -> bool {
    matches!(why, VisitError::OtherConfiguration { .. })
}

/// Whether somebody is there who did not show that it has the key: it may be anybody, and may go
/// again.
pub(super) const fn is_stranger(why: &VisitError) -> bool {
    use Refusal as R;
    matches!(why, VisitError::WrongKey | VisitError::Refused(R::Version | R::KeyMode | R::Key))
}
