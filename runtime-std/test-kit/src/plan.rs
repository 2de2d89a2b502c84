//! The simulated group of a seed: one subgroup that contains all nodes.

use tramontane_fixtures::world::{Load, Plan};

/// Number of proposals of a member for which the seed draws none.
const PROPOSALS: u64 = 8;

/// The smallest payload that identifies a message, in bytes.
const PAYLOAD_MIN: usize = 12;

/// Returns the plan of a seed. All members propose, and joining members take over a state.
pub(crate) fn plan(seed: u64) -> Plan {
    let mut plan = Plan::random(seed).without_large();
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
