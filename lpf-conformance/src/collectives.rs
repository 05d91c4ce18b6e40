//! The suite of the collectives.
//!
//! A call is plain data, and what it has to give comes from a sequential program (`calls`). So the same
//! lines check every collective in every algorithm, and random sequences of them on random groups.

mod calls;
mod elements;
mod reductions;
mod vectors;

mod by_arrival;
mod extremes;
mod faults;
mod groups;
mod long;
mod mismatches;
mod misuse;
mod monitors;
mod order;
mod pending;
mod random;
mod raw;
mod slices;
mod trees;
mod values;

use lpf_collectives::{Collectives, Settings};
use lpf_core::{Context, Lpf, Pid, Result};

/// Every case, for the macro.
#[doc(hidden)]
pub mod cases {
    pub use super::by_arrival::*;
    pub use super::extremes::*;
    pub use super::faults::*;
    pub use super::groups::*;
    pub use super::long::*;
    pub use super::mismatches::*;
    pub use super::misuse::*;
    pub use super::monitors::*;
    pub use super::order::*;
    pub use super::pending::*;
    pub use super::random::*;
    pub use super::raw::*;
    pub use super::slices::*;
    pub use super::trees::*;
    pub use super::values::*;
}

/// Cells, a window and scratch so small that hardly a vector fits: everything goes in pieces.
fn tight(nprocs: Pid) -> Settings {
    Settings { cell_bytes: 128, window: 2, scratch_bytes: 1024, ..Settings::new(nprocs) }
}

/// The whole context's collectives, and room for `slots` slots and `requests` requests.
fn world<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    slots: usize,
    requests: usize,
) -> Result<Collectives<'s>> {
    ctx.resize(slots, requests)?;
    Collectives::new(ctx)
}

/// One `#[test]` for each case of the collectives, run on a [`Harness`](crate::Harness).
#[macro_export]
macro_rules! collectives {
    ($harness:expr) => {
        $crate::cases! { $harness; [$crate::collectives::cases]
            values: [
                every_algorithm_of_every_collective_gives_what_a_sequential_program_gives,
                vectors_longer_than_cells_and_scratch_go_in_pieces,
                elements_of_every_size_arrive_whole,
                a_mebibyte_arrives_whole,
                what_has_not_left_is_not_overwritten,
                handles_and_ranges_name_the_same_elements,
                settings_of_every_size_do,
            ]
            raw: [
                raw_calls_give_what_typed_ones_give,
            ]
            slices: [
                slices_give_what_a_sequential_program_gives,
                slices_leave_requests_and_slots_alone,
                slices_of_many_calls_take_the_memory_of_one,
                misuse_of_slices_is_found_at_the_call_and_has_no_effect,
            ]
            order: [
                operands_keep_the_order_of_their_members,
                sums_are_the_same_bits_on_every_call_and_at_every_member,
                of_equal_values_the_lowest_position_is_named,
                operators_do_what_they_say,
                arrays_and_pairs_are_combined_element_by_element,
            ]
            extremes: [
                nan_and_signed_zeros_have_one_rule_in_every_algorithm,
                positions_of_short_values_are_exact,
            ]
            long: [
                long_sums_have_the_same_bits_in_both_modes,
                sums_of_a_mebibyte_and_more_have_the_same_bits_in_both_modes,
                equal_columns_have_equal_bits,
            ]
            by_arrival: [
                sums_by_arrival_have_the_bits_of_their_schedule,
                segments_of_any_number_do,
                trees_that_are_known_have_the_same_bits_in_strict_mode,
                who_is_early_has_left_before_the_last_one_comes,
                a_member_that_sleeps_in_spite_of_its_estimate_is_waited_for,
                estimates_of_others_are_misuse,
                other_estimates_are_fatal_and_both_are_named,
            ]
            monitors: [
                late_members_are_predicted,
                members_are_told_the_same_whatever_they_do,
                who_has_said_nothing_is_waited_for_by_nobody,
                words_that_come_again_say_nothing_new,
                a_monitor_that_is_dropped_in_a_phase_leaves_ordinary_calls,
                monitors_of_two_calls_are_told_apart,
                a_member_that_ends_badly_in_a_phase_is_fatal_for_the_others,
            ]
            trees: [
                trees_that_grow_give_what_a_sequential_program_gives,
                a_tree_is_repeated_to_the_bit,
                a_tree_waits_for_who_sleeps,
                hundreds_of_trees_back_to_back,
                members_that_are_in_no_tree_are_fatal_and_named,
                what_differs_in_a_tree_is_said,
                the_time_limit_names_the_member_that_does_not_come_to_a_tree,
                the_error_or_panic_that_drops_an_arbiter_is_what_others_learn,
                a_member_that_calls_twice_or_something_else_is_fatal_and_named,
                misuse_of_trees_is_found_at_the_call,
            ]
            groups: [
                groups_have_the_members_that_named_their_colour,
                groups_of_groups_work,
                a_sleeping_member_delays_its_own_group_alone,
                groups_made_and_dropped_again_and_again_leave_their_room,
                collectives_made_and_dropped_again_and_again_leave_their_memory,
                a_group_too_many_is_misuse_at_every_member,
                groups_take_turns_in_any_order,
                objects_of_one_context_are_told_apart,
            ]
            pending: [
                requests_stay_pending_across_collectives,
                requests_stay_pending_when_a_library_calls_collectives,
                registrations_and_resizes_stay_pending_across_collectives,
                collectives_live_in_sections_of_their_own,
                thousands_back_to_back_with_a_slow_member,
                memory_does_not_grow,
            ]
            misuse: [
                misuse_is_found_at_the_call_and_has_no_effect,
                misuse_is_told_in_the_same_words,
                misuse_at_one_member_alone_can_be_made_good,
                settings_that_cannot_be_are_refused,
            ]
            mismatches: [
                two_roots_are_fatal_and_both_are_named,
                two_lengths_are_fatal_and_both_are_named,
                the_value_that_differs_is_named_at_both,
                slices_of_other_lengths_are_named_at_both,
                calls_on_long_slices_that_differ_are_named,
                two_collectives_are_fatal_and_both_are_named,
                two_operators_are_fatal_and_both_are_named,
                two_algorithms_are_fatal_and_both_are_named,
                a_skipped_collective_is_fatal_and_both_are_named,
                counts_that_differ_are_fatal_and_both_are_named,
                long_counts_that_differ_name_the_call,
                what_differs_last_is_fatal_and_both_are_named,
                memory_is_still_when_a_call_has_failed,
            ]
            faults: [
                a_panic_in_an_operator_is_fatal_for_all,
                a_member_that_sleeps_in_the_midst_of_a_reduction_is_waited_for,
                a_member_that_ends_badly_is_fatal_for_the_others,
            ]
            random: [
                random_sequences_of_collectives_on_random_groups,
                random_sequences_of_collectives_in_checked_mode,
            ]
        }
    };
}

#[cfg(test)]
mod tests {
    /// The list in the macro is kept by hand; this compares it with the cases there are.
    #[test]
    fn every_case_is_listed() {
        let sources = [
            include_str!("collectives/by_arrival.rs"),
            include_str!("collectives/extremes.rs"),
            include_str!("collectives/faults.rs"),
            include_str!("collectives/groups.rs"),
            include_str!("collectives/long.rs"),
            include_str!("collectives/mismatches.rs"),
            include_str!("collectives/misuse.rs"),
            include_str!("collectives/monitors.rs"),
            include_str!("collectives/order.rs"),
            include_str!("collectives/pending.rs"),
            include_str!("collectives/random.rs"),
            include_str!("collectives/raw.rs"),
            include_str!("collectives/slices.rs"),
            include_str!("collectives/trees.rs"),
            include_str!("collectives/values.rs"),
        ];
        let cases = crate::listing::listed(include_str!("collectives.rs"), &sources);
        assert!(cases > 30, "only {cases} cases were found in the sources");
    }
}
