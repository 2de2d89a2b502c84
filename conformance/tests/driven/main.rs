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
        the_reference_keeps_every_promise_and_reaches_every_scenario
        the_reference_without_views_keeps_every_promise_of_shards
    };
    let starved = tests! { starved:
        what_a_starved_run_lacks_is_never_taken_for_broken
        even_a_loss_cannot_be_told_from_a_delay_on_a_starved_machine
    };
    let driver = tests! { driver:
        the_same_seed_gives_the_same_commands
        each_node_has_a_command_and_an_address_of_its_own
        request_to_stop_is_recorded_before_the_end
        helpers_end_with_their_case
        failed_case_tells_the_command_that_repeats_it
        an_output_that_ends_too_early_is_told
        broken_promises_are_for_the_checker_to_name
        what_is_odd_but_harmless_is_noted
        what_was_judged_before_an_interrupt_is_reported
        the_script_without_a_fault_passes
        what_is_no_line_of_the_protocol_is_shown_with_its_number
        one_that_says_nothing_is_not_waited_for_longer_than_the_deadline
        too_much_is_not_taken
        an_endless_log_is_cut_and_does_no_harm
        a_log_is_whole_when_its_member_is_gone
        what_is_missing_is_unsupported_whichever_way_it_is_said
        a_run_in_which_all_is_broken_says_so
        a_claim_without_evidence_does_not_pass
        what_is_missing_is_named_in_a_note
        however_the_driver_ends_no_member_is_left
        a_folder_of_somebody_else_is_neither_used_nor_changed
    };
    let example = tests! { example_adapter:
        the_example_passes_what_it_claims_and_the_rest_is_unsupported
        the_example_has_less_than_a_hundred_lines
    };
    let losses = tests! { losses:
        what_trusts_datagrams_is_wrong_only_where_some_are_lost
    };
    let replicated_log = tests! { replicated_log:
        a_start_that_is_killed_while_it_replays_does_not_put_the_place_back
    };
    let mutants = tests! { mutants:
        each_check_has_a_mutant
        a_cycle_of_groups_that_overlap_is_found_where_order_across_groups_is_claimed
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
