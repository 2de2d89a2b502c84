//! Texts of the errors of block groups.

use std::fmt::Display;

use crate::common::words::tell_apart;
use tramontane_core::fabric::{LossCause, TooManyRegions};
use tramontane_core::ids::Rank;
use tramontane_core::memory::OutOfBlock;
use tramontane_core::rdmc::transfer::{Cause, CloseError, Failure, OpenError, SendError};

#[test]
fn block_group_errors_name_the_cause() {
    use OpenError as O;
    let open = [
        O::Members,
        O::NotMember,
        O::Schedule,
        O::BlockBytes,
        O::Window,
        O::Cells,
        O::NoWords,
        O::Unordered,
        O::Channel,
    ];
    tell_apart(&open);
    let large = SendError::TooLarge { blocks: 41, blocks_max: 40 };
    tell_apart(&[&SendError::NotRoot, &SendError::Busy, &SendError::Ended, &large]);
    assert!(large.to_string().contains("41") && large.to_string().contains("40"));
    tell_apart::<&dyn Display>(&[
        &CloseError::NotRoot,
        &CloseError::Ended,
        &OutOfBlock,
        &TooManyRegions,
    ]);
    let member = Rank(6);
    let failures = [Cause::Lost(LossCause::Left), Cause::NoMemory, Cause::Fabric]
        .map(|cause| Failure { member, cause });
    tell_apart(&failures);
    assert!(failures.iter().all(|one| one.to_string().contains('6')), "whose failure it is");
}
