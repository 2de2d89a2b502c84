//! Shards over RDMA: replicas and clients are processes, and leaders are killed.

use crate::support::overlay::leaders_are_killed_and_come_back;

#[test]
fn leaders_are_killed_and_come_back_over_rdma() {
    leaders_are_killed_and_come_back("verbs");
}
