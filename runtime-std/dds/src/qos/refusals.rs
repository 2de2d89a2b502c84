//! Policies that are refused when a writer or a reader is created, each with its reason. No policy
//! is silently ignored.

use std::time::Duration;

use super::policies::{
    AccessScope, Deadline, Durability, History, Liveliness, LivelinessKind, Ownership, PolicyId,
    Presentation, ResourceLimits,
};
use super::sets::{ReaderQos, WriterQos};
use crate::domain::Level;
use crate::error::DdsError;
use crate::wire::USER_DATA_MAX;

/// The properties of the group and the topic that a check needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) level: Level,
    /// The time after which a silent member is removed; `None` if the loss of a member is noticed
    /// immediately.
    pub(crate) failure_timeout: Option<Duration>,
}

/// Checks whether a writer can have these policies.
pub(crate) fn check_writer(qos: &WriterQos, bounds: &Bounds) -> Result<(), DdsError> {
    let best = WriterQos::of(bounds.level);
    if qos.durability == Durability::TransientLocal {
        return unsupported(
            PolicyId::Durability,
            "a topic's members keep samples, not its writer; offer Transient on a topic of level volatile",
        );
    }
    if qos.durability > best.durability {
        return inconsistent(
            PolicyId::Durability,
            "the topic's level keeps less; raise the level of the topic",
        );
    }
    check_presentation(&qos.presentation)?;
    if qos.presentation.access_scope > best.presentation.access_scope
        || (qos.presentation.ordered_access && !best.presentation.ordered_access)
    {
        return inconsistent(
            PolicyId::Presentation,
            "the topic's level is unordered; raise the level of the topic",
        );
    }
    check_shared(qos.ownership, &qos.liveliness, qos.deadline, bounds)?;
    check_history(qos.history, &qos.resource_limits)?;
    let limits = &qos.resource_limits;
    if limits.max_samples.is_some() || limits.max_samples_per_instance.is_some() {
        return unsupported(
            PolicyId::ResourceLimits,
            "a writer's samples are bounded by the topic's window; set the window",
        );
    }
    if qos.lifespan.duration.is_zero() {
        return inconsistent(
            PolicyId::Lifespan,
            "every sample would expire at once; use a longer lifespan",
        );
    }
    if qos.transport_priority != 0 {
        return unsupported(PolicyId::TransportPriority, "no fabric has priorities; use 0");
    }
    check_user_data(&qos.user_data)
}

/// Checks whether a reader can have these policies.
pub(crate) fn check_reader(qos: &ReaderQos, bounds: &Bounds) -> Result<(), DdsError> {
    check_presentation(&qos.presentation)?;
    check_shared(qos.ownership, &qos.liveliness, qos.deadline, bounds)?;
    check_history(qos.history, &qos.resource_limits)?;
    if qos.deadline.period < qos.time_based_filter.minimum_separation {
        return inconsistent(
            PolicyId::Deadline,
            "the deadline is shorter than the minimum separation of samples; lower the separation",
        );
    }
    check_user_data(&qos.user_data)
}

fn check_presentation(presentation: &Presentation) -> Result<(), DdsError> {
    if presentation.access_scope == AccessScope::Group {
        return unsupported(
            PolicyId::Presentation,
            "each topic has a separate order; use the scope Topic",
        );
    }
    if presentation.coherent_access {
        return unsupported(
            PolicyId::Presentation,
            "coherent sets of changes are not supported; put related data into one sample",
        );
    }
    Ok(())
}

fn check_shared(
    ownership: Ownership,
    liveliness: &Liveliness,
    deadline: Deadline,
    bounds: &Bounds,
) -> Result<(), DdsError> {
    if ownership == Ownership::Exclusive {
        return unsupported(
            PolicyId::Ownership,
            "DDS's ownership profile is not supported; use shared ownership",
        );
    }
    if deadline.period.is_zero() {
        return inconsistent(
            PolicyId::Deadline,
            "no sample could ever be in time; use a longer period",
        );
    }
    if liveliness.lease_duration.is_zero() {
        return inconsistent(
            PolicyId::Liveliness,
            "no writer could ever be alive; use a longer lease",
        );
    }
    if liveliness.kind == LivelinessKind::Automatic
        && bounds.failure_timeout.is_some_and(|timeout| liveliness.lease_duration < timeout)
    {
        return inconsistent(
            PolicyId::Liveliness,
            "the lease is shorter than the group's failure timeout; raise the lease, or lower \
             failure_timeout_ms",
        );
    }
    Ok(())
}

/// Checks DDS's rules for histories: a depth within the limits, and consistent limits.
fn check_history(history: History, limits: &ResourceLimits) -> Result<(), DdsError> {
    let each = limits.max_samples_per_instance;
    if let History::KeepLast(depth) = history
        && (depth == 0 || each.is_some_and(|most| depth > most))
    {
        return inconsistent(
            PolicyId::History,
            "the depth is 0, or more than max_samples_per_instance; correct one of them",
        );
    }
    let is_zero = [limits.max_samples, limits.max_instances, each].contains(&Some(0));
    if is_zero || limits.max_samples.zip(each).is_some_and(|(all, each)| each > all) {
        return inconsistent(
            PolicyId::ResourceLimits,
            "a limit is 0, or max_samples_per_instance is more than max_samples; correct them",
        );
    }
    Ok(())
}

fn check_user_data(user_data: &[u8]) -> Result<(), DdsError> {
    if user_data.len() > USER_DATA_MAX {
        return inconsistent(PolicyId::UserData, "it is longer than 128 bytes; shorten it");
    }
    Ok(())
}

fn unsupported(policy: PolicyId, why: &'static str) -> Result<(), DdsError> {
    Err(DdsError::UnsupportedPolicy { policy, why })
}

fn inconsistent(policy: PolicyId, why: &'static str) -> Result<(), DdsError> {
    Err(DdsError::InconsistentPolicy { policy, why })
}

#[cfg(test)]
mod tests {
    use super::super::policies::{Lifespan, TimeBasedFilter};
    use super::*;

    const BOUNDS: Bounds =
        Bounds { level: Level::Atomic, failure_timeout: Some(Duration::from_secs(1)) };

    fn refused(outcome: Result<(), DdsError>) -> (PolicyId, bool) {
        match outcome.expect_err("refused") {
            DdsError::UnsupportedPolicy { policy, .. } => (policy, true),
            DdsError::InconsistentPolicy { policy, .. } => (policy, false),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn unsupported_policies_are_refused_at_both_ends() {
        type Both = (PolicyId, fn(&mut WriterQos), fn(&mut ReaderQos));
        let cases: [Both; 3] = [
            (
                PolicyId::Ownership,
                |qos| qos.ownership = Ownership::Exclusive,
                |qos| qos.ownership = Ownership::Exclusive,
            ),
            (
                PolicyId::Presentation,
                |qos| qos.presentation.access_scope = AccessScope::Group,
                |qos| qos.presentation.access_scope = AccessScope::Group,
            ),
            (
                PolicyId::Presentation,
                |qos| qos.presentation.coherent_access = true,
                |qos| qos.presentation.coherent_access = true,
            ),
        ];
        for (policy, of_writer, of_reader) in cases {
            let (mut writer, mut reader) = (WriterQos::default(), ReaderQos::default());
            of_writer(&mut writer);
            of_reader(&mut reader);
            assert_eq!(refused(check_writer(&writer, &BOUNDS)), (policy, true));
            assert_eq!(refused(check_reader(&reader, &BOUNDS)), (policy, true));
        }
        let prior = WriterQos { transport_priority: 1, ..WriterQos::default() };
        assert_eq!(refused(check_writer(&prior, &BOUNDS)), (PolicyId::TransportPriority, true));
        let local = WriterQos { durability: Durability::TransientLocal, ..WriterQos::default() };
        assert_eq!(refused(check_writer(&local, &BOUNDS)), (PolicyId::Durability, true));
        let limits = ResourceLimits { max_samples: Some(5), ..ResourceLimits::default() };
        let limited = WriterQos { resource_limits: limits, ..WriterQos::default() };
        assert_eq!(refused(check_writer(&limited, &BOUNDS)), (PolicyId::ResourceLimits, true));
    }

    #[test]
    fn writer_cannot_offer_more_than_topic_level() {
        let levels = [Level::Unordered, Level::Atomic, Level::Volatile, Level::Logged];
        for (own, at) in levels.iter().zip(0..) {
            for (wanted, above) in levels.iter().zip(0..) {
                let bounds = Bounds { level: *own, failure_timeout: None };
                let outcome = check_writer(&WriterQos::of(*wanted), &bounds);
                assert_eq!(outcome.is_ok(), above <= at, "{wanted:?} on {own:?}");
            }
        }
    }

    #[test]
    fn contradictory_policies_are_refused() {
        type Change = (PolicyId, fn(&mut ReaderQos));
        let wanted: [Change; 7] = [
            (PolicyId::Deadline, |qos| qos.deadline = Deadline { period: Duration::ZERO }),
            (PolicyId::History, |qos| qos.history = History::KeepLast(0)),
            (PolicyId::History, |qos| {
                qos.history = History::KeepLast(3);
                qos.resource_limits.max_samples_per_instance = Some(2);
            }),
            (PolicyId::ResourceLimits, |qos| qos.resource_limits.max_instances = Some(0)),
            (PolicyId::ResourceLimits, |qos| {
                qos.history = History::KeepAll;
                qos.resource_limits.max_samples = Some(2);
                qos.resource_limits.max_samples_per_instance = Some(3);
            }),
            (PolicyId::Deadline, |qos| {
                qos.deadline = Deadline { period: Duration::from_millis(1) };
                qos.time_based_filter =
                    TimeBasedFilter { minimum_separation: Duration::from_millis(2) };
            }),
            (PolicyId::Liveliness, |qos| {
                qos.liveliness.lease_duration = Duration::from_millis(999);
            }),
        ];
        for (policy, change) in wanted {
            let mut qos = ReaderQos::default();
            change(&mut qos);
            assert_eq!(refused(check_reader(&qos, &BOUNDS)), (policy, false));
        }
        let useless =
            WriterQos { lifespan: Lifespan { duration: Duration::ZERO }, ..WriterQos::default() };
        assert_eq!(refused(check_writer(&useless, &BOUNDS)), (PolicyId::Lifespan, false));
        let long = WriterQos { user_data: vec![0; USER_DATA_MAX + 1], ..WriterQos::default() };
        assert_eq!(refused(check_writer(&long, &BOUNDS)), (PolicyId::UserData, false));
    }
}
