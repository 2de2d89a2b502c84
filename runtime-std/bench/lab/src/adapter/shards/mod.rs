//! A node of shards: a replica of the group that has it as a member, or a client if it is in no
//! group.
//!
//! | file | contents |
//! |---|---|
//! | `meeting` | the role of the node, and the overlay shared by all nodes of a run |
//! | `replica`, `state` | a replica; its application, whose state is the list of deliveries |
//! | `client`, `order` | a client; which of its messages may be sent while others are in flight |
//!
//! # The sender of a message
//! The suite's node names are not those of the overlay, which identifies a client by its number and
//! incarnation. So the first message of a client tells all groups its node name. The client waits
//! for the answers before it accepts requests to send, and this message is not reported to the
//! driver.

mod client;
mod meeting;
mod order;
mod replica;
mod state;

use super::node::NodeUnderTest;
use super::protocol::Init;
use super::refusal::StartRefusal;
use client::ClientUnderTest;
pub(super) use meeting::Setting;
use meeting::{NodePart, ShardsRun};
use replica::ReplicaUnderTest;
use tramontane_local::interrupt::Interrupts;
use tramontane_runtime::carrier::Carrier;

/// The features claimed for every fabric.
const FEATURES: [&str; 8] = [
    "order-across-groups",
    "outside-senders",
    "crash",
    "leaders",
    "rejoin",
    "suspension",
    "empty-messages",
    "large-messages",
];

/// Joins as `init` specifies.
pub(super) fn join(
    init: &Init,
    setting: Setting,
    interrupts: &Interrupts,
) -> Result<Box<dyn NodeUnderTest>, StartRefusal> {
    let mut features = FEATURES.to_vec();
    if setting.fabric == Carrier::Tcp {
        features.push("network");
    }
    if setting.durable {
        features.extend(["power-loss", "restart"]);
    }
    let run = ShardsRun::of(init, setting)?;
    Ok(match run.part {
        NodePart::Replica(replica) => {
            Box::new(ReplicaUnderTest::start(&run, replica, features, interrupts)?)
        }
        NodePart::Client => Box::new(ClientUnderTest::connect(&run, init, features, interrupts)?),
    })
}
