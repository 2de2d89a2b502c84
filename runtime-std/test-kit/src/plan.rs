//! The simulated group of a seed: one subgroup that contains all nodes, logged or not.

use tramontane_fixtures::world::{Load, Plan};

/// Number of proposals of a member for which the seed draws none.
const PROPOSALS: u64 = 8;

/// The smallest payload that identifies a message, in bytes.
const PAYLOAD_MIN: usize = 12;

/// Returns the plan of a seed. All members propose, and joining members take over a state. If the
/// group `is_logged`, all members are killed at some time, and it restarts from its logs.
pub(crate) fn plan(seed: u64, is_logged: bool) -> Plan {
    let plan = Plan::random(seed).without_large();
    let mut plan = if is_logged { plan.with_logs() } else { plan.without_logs() };
    plan.subgroups.truncate(1);
    plan.loads.retain(|load| load.subgroup == 0);
    plan.transfers = true;
    for subgroup in &mut plan.subgroups {
        subgroup.senders.clone_from(&subgroup.members);
        for node in &subgroup.members {
            if plan.loads.iter().all(|load| load.node != *node) {
                plan.loads.push(Load::continuous(*node, 0, PROPOSALS, PAYLOAD_MIN));
            }
        }
    }
    plan
}
