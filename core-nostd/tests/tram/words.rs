//! Texts of the errors, halts and names of the overlay.

use crate::words_apart::tell_apart;
use tramontane_core::ids::{GroupId, Rank};
use tramontane_core::tram::{Halt, OpenError, OverlayError, ReplicaId, SendError, Timestamp};

#[test]
fn overlay_errors_and_halts_name_the_cause() {
    use OverlayError as O;
    let group = GroupId(6);
    let of_groups = [
        O::Replicas(group),
        O::UnknownParent(group),
        O::Cycle(group),
        O::SecondRoot(group),
        O::TooManyChildren(group),
    ];
    tell_apart(&of_groups);
    assert!(of_groups.iter().all(|one| one.to_string().contains('6')), "which group it is");
    tell_apart(&[&O::NoGroups, &O::TooManyGroups, &O::Limits]);
    use OpenError as P;
    tell_apart(&[&P::NoSuchReplica, &P::StateTooSmall, &P::FabricPromises, &P::FabricTooSmall]);
    tell_apart(&[&Halt::OutOfRow, &Halt::NotContinued, &Halt::NoEntry]);
    use SendError as S;
    tell_apart(&[&S::Full, &S::TooLong, &S::NoDestination, &S::UnknownDestination, &S::Closed]);
}

/// TRM-4.1: the reader of a log can tell two leaders apart.
#[test]
fn timestamp_text_shows_round_and_owner() {
    let stamp = Timestamp::new(12, 3, Rank(4));
    assert_eq!(stamp.to_string(), "12.4");
    assert_eq!(Timestamp::from_cell(0).to_string(), "none");
    tell_apart(&[&stamp, &Timestamp::new(13, 3, Rank(4)), &Timestamp::new(12, 3, Rank(5))]);
}

#[test]
fn replica_name_shows_group_and_rank() {
    let replica = ReplicaId { group: GroupId(6), rank: Rank(2) };
    assert_eq!(replica.to_string(), "g6.2");
}
