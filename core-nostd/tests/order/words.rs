//! Texts and stable numbers of the errors and events of a fixed membership.

use std::fmt::Display;

use crate::common::words::tell_apart;
use tramontane_core::fabric::{ErrorKind, FabricError, LossCause};
use tramontane_core::health::{HealthError, HealthKind};
use tramontane_core::ids::Rank;
use tramontane_core::layout::{DigestMismatch, LayoutError};
use tramontane_core::multicast::Impossible;
use tramontane_core::node::{AloneError, OpenError, StepError};
use tramontane_core::smc::ReserveError;

/// FLT-1.1, HLT-1.1, LAY-1.1, LAY-3.1: the numbers are those in the documentation, starting at one.
#[test]
fn each_error_has_its_own_number_and_text() {
    use Impossible as I;
    let impossible = [
        I::Round,
        I::OlderMessage,
        I::Length,
        I::SlotChanged,
        I::Silence,
        I::Shrunk,
        I::Received,
        I::Delivered,
        I::Consumed,
        I::CellCheck,
        I::SlotCheck,
    ];
    tell_apart(&impossible);
    assert!(impossible.iter().map(|one| one.code()).eq(1..=11));
    use LayoutError as L;
    let layout = [
        L::NoMembers,
        L::TooManyMembers,
        L::DuplicateMember,
        L::NoSubgroups,
        L::TooManySubgroups,
        L::EmptySubgroup,
        L::BadSubgroupMember,
        L::SenderOutsideSubgroup,
        L::ZeroWindow,
        L::WindowTooLarge,
        L::MessageTooLarge,
        L::RowTooLarge,
        L::BadLargeSubgroup,
        L::TooManyChannels,
        L::BadLoggedSubgroup,
        L::BadRelayedSubgroup,
    ];
    tell_apart(&layout);
    assert!(layout.iter().map(|one| one.code()).eq(1..=16));
    use HealthKind as H;
    let health = [
        H::Started,
        H::Silent,
        H::Resumed,
        H::Restarted,
        H::StoppedBecauseOfThis,
        H::Unreadable,
        H::Misbehaved,
    ];
    tell_apart(&health);
    assert!(health.iter().map(|one| one.code()).eq(1..=7));
    use DigestMismatch as D;
    let digest = [D::Layout, D::ByteOrder, D::LineSize, D::ByteOrderAndLineSize];
    tell_apart(&digest);
    assert!(digest.iter().map(|one| one.code()).eq(1..=4));
}

#[test]
fn node_and_fabric_errors_name_their_cause() {
    use ErrorKind as E;
    let kinds = [E::QueueFull, E::PeerLost, E::Revoked, E::OutOfRange, E::Other, E::WrongMemory];
    tell_apart(&kinds);
    assert!(kinds.iter().all(|kind| kind.kind() == *kind));
    use LossCause as C;
    tell_apart(&[&C::Exited, &C::Left, &C::Unreachable, &C::Denied, &C::Misbehaved]);
    use OpenError as O;
    tell_apart(&[&O::NotAMember, &O::WrongRows, &O::WrongState, &O::NoGuard]);
    tell_apart(&[&O::FabricTooSmall, &O::NoRelays]);
    tell_apart(&[&AloneError::NotAPair, &AloneError::OutOfRow]);
    use HealthError as H;
    tell_apart(&[&H::NoHeader, &H::WrongState, &H::Incarnation]);
    let large = ReserveError::TooLarge { length: 41, limit: 40 };
    tell_apart(&[&ReserveError::Full, &ReserveError::Contended, &large]);
    assert!(large.to_string().contains("41") && large.to_string().contains("40"));
    tell_apart::<&dyn Display>(&[&StepError::OutOfRow, &Rank(7)]);
}
