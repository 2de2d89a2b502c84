//! Adapters under the driver: correct ones, wrong ones, and one on an overloaded machine.
//!
//! Most of these tests wait for a deadline or for processes, so more of them run concurrently than
//! there are processors. For this, they have their own test program, which lists them itself.

mod driver;
mod example_adapter;
mod losses;
mod mutants;
mod replicated_log;
mod runs;
mod starved;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// Number of concurrent tests, unless `--test-threads` is given.
const AT_ONCE: usize = 12;

/// Lists the tests of a module: functions that panic if they fail. The slowest tests come first.
macro_rules! tests {
    ($module:ident: $($name:ident)*) => {
        [$((concat!(stringify!($module), "::", stringify!($name)), $module::$name as fn())),*]
    };
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(Some(AT_ONCE));
    let long = tests! { mutants:
        reference_adapter_passes_every_scenario
        reference_adapter_without_views_passes_shard_scenarios
    };
    let starved = tests! { starved:
        correct_adapter_never_fails_on_overloaded_machine
        message_loss_on_overloaded_machine_is_inconclusive
    };
    let driver = tests! { driver:
        seed_determines_the_driver_commands
        each_node_gets_its_own_command_and_address
        request_to_stop_is_recorded_before_the_end
        helper_processes_end_with_their_case
        failed_case_prints_the_command_that_repeats_it
        prematurely_ended_adapter_output_is_reported
        system_violations_are_reported_by_the_checker
        harmless_adapter_oddities_are_only_noted
        interrupted_run_reports_scenarios_judged_so_far
        correct_script_adapter_passes
        invalid_protocol_line_is_quoted_with_its_number
        silent_adapter_is_awaited_only_until_deadline
        run_ends_when_all_members_have_ended
        excessive_adapter_output_ends_the_case
        endless_adapter_log_is_truncated_without_failing_case
        log_of_exited_member_is_complete
        scenario_with_missing_feature_is_unsupported
        run_exits_with_3_if_adapter_is_broken
        claimed_feature_without_evidence_marks_adapter_broken
        members_of_different_systems_are_broken
        first_broken_adapter_ends_a_run_until_failure
        each_member_must_report_claimed_durability
        claimed_feature_reported_as_unsupported_is_broken
        note_names_the_unanswered_multicast
        driver_leaves_no_member_process_when_it_ends
        driver_refuses_and_preserves_a_foreign_folder
    };
    let example = tests! { example_adapter:
        example_adapter_passes_every_claimed_scenario
        example_adapter_has_under_a_hundred_lines
    };
    let losses = tests! { losses:
        datagram_adapter_fails_only_if_packets_are_lost
    };
    let replicated_log = tests! { replicated_log:
        kill_during_replay_does_not_lower_the_position
    };
    let mutants = tests! { mutants:
        every_check_is_broken_by_a_mutant
        cyclic_order_across_overlapping_groups_is_detected
    };
    let named = long
        .into_iter()
        .chain(starved)
        .chain(driver)
        .chain(example)
        .chain(losses)
        .chain(replicated_log)
        .chain(mutants);
    let named = named.map(|(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, named.chain(mutants::each()).collect()).exit_code()
}
