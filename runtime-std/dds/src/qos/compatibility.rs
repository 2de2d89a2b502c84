//! Comparison of a writer's offer with a reader's request.

use super::policies::{AccessScope, PolicyId};
use super::sets::{ReaderQos, WriterQos};

/// Returns the policies in which a writer offers less than a reader requests, in the order of
/// [`PolicyId`]; empty if they match.
#[must_use]
pub fn incompatible(offered: &WriterQos, requested: &ReaderQos) -> Vec<PolicyId> {
    let has_order = offered.presentation.access_scope >= requested.presentation.access_scope
        && (offered.presentation.ordered_access || !requested.presentation.ordered_access)
        && (offered.presentation.coherent_access || !requested.presentation.coherent_access);
    let is_noticed = offered.liveliness.kind >= requested.liveliness.kind
        && offered.liveliness.lease_duration <= requested.liveliness.lease_duration;
    let checks = [
        (PolicyId::Durability, offered.durability >= requested.durability),
        (PolicyId::Presentation, has_order),
        (PolicyId::Deadline, offered.deadline.period <= requested.deadline.period),
        (
            PolicyId::LatencyBudget,
            offered.latency_budget.duration <= requested.latency_budget.duration,
        ),
        (PolicyId::Ownership, offered.ownership == requested.ownership),
        (PolicyId::Liveliness, is_noticed),
        (PolicyId::Reliability, offered.reliability.kind >= requested.reliability.kind),
        (PolicyId::DestinationOrder, offered.destination_order >= requested.destination_order),
    ];
    checks.into_iter().filter(|(_, is_enough)| !is_enough).map(|(policy, _)| policy).collect()
}

/// Returns whether a reader receives samples in one order for all instances.
pub(crate) const fn is_ordered_across(requested: &ReaderQos) -> bool {
    requested.presentation.ordered_access
        && matches!(requested.presentation.access_scope, AccessScope::Topic)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::policies::{
        DestinationOrder, Durability, LivelinessKind, Presentation, ReliabilityKind,
    };
    use super::*;

    type Change<Q> = fn(&mut Q);

    /// For each policy, a change that makes an offer more than the minimum, and a change that makes
    /// a request exceed that offer.
    const CASES: [(PolicyId, Change<WriterQos>, Change<ReaderQos>); 8] = [
        (
            PolicyId::Durability,
            |offered| offered.durability = Durability::Transient,
            |wanted| wanted.durability = Durability::Transient,
        ),
        (
            PolicyId::Presentation,
            |offered| {
                offered.presentation = Presentation {
                    access_scope: AccessScope::Topic,
                    ordered_access: true,
                    coherent_access: false,
                };
            },
            |wanted| wanted.presentation.access_scope = AccessScope::Topic,
        ),
        (
            PolicyId::Presentation,
            |offered| offered.presentation.ordered_access = true,
            |wanted| wanted.presentation.ordered_access = true,
        ),
        (
            PolicyId::Deadline,
            |offered| offered.deadline.period = Duration::from_secs(1),
            |wanted| wanted.deadline.period = Duration::from_secs(1),
        ),
        (
            PolicyId::Liveliness,
            |offered| offered.liveliness.lease_duration = Duration::from_secs(1),
            |wanted| wanted.liveliness.lease_duration = Duration::from_secs(1),
        ),
        (
            PolicyId::Liveliness,
            |offered| offered.liveliness.kind = LivelinessKind::ManualByTopic,
            |wanted| wanted.liveliness.kind = LivelinessKind::ManualByParticipant,
        ),
        (
            PolicyId::Reliability,
            |offered| offered.reliability.kind = ReliabilityKind::Reliable,
            |wanted| wanted.reliability.kind = ReliabilityKind::Reliable,
        ),
        (
            PolicyId::DestinationOrder,
            |offered| offered.destination_order = DestinationOrder::BySourceTimestamp,
            |wanted| wanted.destination_order = DestinationOrder::BySourceTimestamp,
        ),
    ];

    fn least() -> (WriterQos, ReaderQos) {
        let (mut offered, mut wanted) = (WriterQos::default(), ReaderQos::default());
        offered.reliability.kind = ReliabilityKind::BestEffort;
        wanted.reliability.kind = ReliabilityKind::BestEffort;
        (offered, wanted)
    }

    #[test]
    fn request_matches_equal_or_stronger_offers() {
        for (policy, more, wants) in CASES {
            let (mut offered, mut wanted) = least();
            assert_eq!(incompatible(&offered, &wanted), []);
            wants(&mut wanted);
            assert_eq!(incompatible(&offered, &wanted), [policy]);
            more(&mut offered);
            assert_eq!(incompatible(&offered, &wanted), []);
            let (_, less) = least();
            assert_eq!(incompatible(&offered, &less), []);
        }
    }

    #[test]
    fn smaller_latency_budget_satisfies_larger_request() {
        let (mut offered, mut wanted) = least();
        offered.latency_budget.duration = Duration::from_millis(2);
        assert_eq!(incompatible(&offered, &wanted), [PolicyId::LatencyBudget]);
        wanted.latency_budget.duration = Duration::from_millis(2);
        assert_eq!(incompatible(&offered, &wanted), []);
    }
}
