//! The options of the adapter.

use clap::Args;
use tramontane_local::shard_trees::Tree;
use tramontane_runtime::carrier::Carrier;

/// Run one member of a group under the conformance suite
#[derive(Args, Debug)]
pub(crate) struct AdapterOptions {
    /// The fabric of the group
    #[arg(long, value_parser = tramontane_local::options::carrier(),
          default_value_t = Carrier::SharedMemory)]
    pub(super) fabric: Carrier,
    /// Run a replica of a group of shards, or a client, instead of a member of groups with views.
    /// The groups form the upper part of this tree
    #[arg(long, value_name = "TREE", num_args = 0..=1, default_missing_value = "base")]
    pub(super) shards: Option<Tree>,
    /// With --shards: refer to messages of this size in bytes or more, like references_from in an
    /// overlay file [default: none, leaders copy all]
    #[arg(long, value_name = "BYTES", requires = "shards")]
    pub(super) references_from: Option<u32>,
    /// Log deliveries in the node's storage folder, so that they survive restarts
    #[arg(long, conflicts_with = "references_from")]
    pub(super) logged: bool,
    #[command(flatten)]
    pub(super) device: tramontane_local::options::DeviceArguments,
}
