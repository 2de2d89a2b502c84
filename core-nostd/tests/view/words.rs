//! Texts of the refusals and halts of the view protocol.

use crate::common::words::tell_apart;
use tramontane_core::ids::Rank;
use tramontane_core::node::{OpenError, ViewError};
use tramontane_core::view::{Halt, RequestError};

#[test]
fn view_errors_and_halts_name_the_cause() {
    let node = ViewError::Node(OpenError::NoGuard);
    tell_apart(&[
        &ViewError::WrongState,
        &ViewError::NoWriteOrder,
        &ViewError::FabricTooSmall,
        &node,
    ]);
    assert_eq!(node.to_string(), OpenError::NoGuard.to_string(), "a node's error says its own");
    tell_apart(&[&RequestError::IsMember, &RequestError::TooMany, &RequestError::NoJoinRequest]);
    let halts = [Halt::SuspectedBy(Rank(6)), Halt::NoMajority, Halt::ChangedBy(Rank(6))];
    tell_apart(&halts);
    for halt in [&halts[0], &halts[2]] {
        assert!(halt.to_string().contains('6'), "who it was: {halt}");
    }
}
