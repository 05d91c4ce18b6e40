//! The suite of the primitives.

mod alloc;
mod areas;
pub(crate) mod arrivals;
pub(crate) mod board;
mod capacities;
mod communication;
mod dropped;
mod endings;
mod errors;
mod machine;
mod random;
mod sections;
mod slots;
mod suspension;
mod texts;

/// Every case, for the macro.
#[doc(hidden)]
pub mod cases {
    pub use super::alloc::*;
    pub use super::areas::*;
    pub use super::arrivals::channels::*;
    pub use super::arrivals::collectives::*;
    pub use super::arrivals::credits::*;
    pub use super::arrivals::landings::*;
    pub use super::arrivals::mismatches::*;
    pub use super::arrivals::mixed::*;
    pub use super::arrivals::opening::*;
    pub use super::arrivals::parts::*;
    pub use super::arrivals::unread::*;
    pub use super::board::*;
    pub use super::capacities::*;
    pub use super::communication::*;
    pub use super::dropped::*;
    pub use super::endings::*;
    pub use super::errors::*;
    pub use super::machine::*;
    pub use super::random::*;
    pub use super::sections::*;
    pub use super::slots::*;
    pub use super::suspension::*;
    pub use super::texts::*;
}

/// One `#[test]` for each case of the primitives, run on a [`Harness`](crate::Harness).
#[macro_export]
macro_rules! primitives {
    ($harness:expr) => {
        $crate::cases! { $harness; [$crate::primitives::cases]
            capacities: [
                a_fresh_context_has_room_for_nothing,
                a_resize_takes_effect_at_the_next_sync_and_not_before,
                a_smaller_queue_holds_from_the_next_sync_on,
                the_minimum_over_the_processes_holds,
                a_request_counts_once_at_its_origin_and_a_message_to_oneself_twice,
                a_superstep_gives_the_whole_capacity_back,
                out_of_memory_leaves_no_trace_and_may_be_retried,
                a_process_that_was_refused_memory_keeps_the_old_capacity_for_all,
                an_absurd_area_or_inbox_is_refused_without_trace,
                a_reservation_of_a_library_is_added_to_the_users,
                requests_queued_before_a_resize_are_moved,
            ]
            slots: [
                a_local_slot_is_usable_at_once,
                a_global_slot_is_usable_after_the_next_sync,
                sizes_may_differ_and_be_zero_or_null,
                a_deregistered_slot_is_unknown_at_once,
                a_slot_with_pending_requests_is_not_deregistered,
                deregistering_gives_the_place_back,
                a_global_slot_names_the_same_call_everywhere,
                registrations_that_differ_are_fatal_at_the_next_sync,
                a_slot_that_only_one_process_registers_is_an_error_for_all,
                areas_of_different_length_are_fatal_at_the_next_sync,
                areas_in_another_order_are_fatal_and_checked_mode_names_them,
                areas_may_be_deregistered_and_made_anew,
                dropped_areas_are_given_back,
                areas_stay_until_all_processes_have_dropped_the_same,
                an_area_that_one_process_keeps_stays,
                requests_on_dropped_areas_are_carried_out,
                suspended_requests_keep_what_was_dropped,
                each_section_gives_back_its_own,
                dropped_areas_and_raw_slots_go_together,
                a_dropped_landing_stays_until_its_message_has_arrived,
                a_grown_table_keeps_its_slots,
            ]
            communication: [
                a_put_moves_at_the_sync_and_not_before,
                a_get_moves_at_the_sync_and_not_before,
                small_gets_arrive_whole_whatever_others_do,
                requests_to_oneself_obey_the_same_rules,
                an_empty_request_is_a_legal_no_op,
                every_length_and_alignment_arrives_exactly,
                every_process_sends_to_every_other,
                thousands_of_small_requests_arrive,
                a_large_message_arrives_whole,
                many_may_read_the_same_memory,
                conflicting_puts_leave_one_of_them_whole,
                of_large_conflicting_puts_one_is_whole_every_time,
                conflicting_gets_leave_one_of_them_whole,
                a_put_and_a_get_may_write_the_same_memory,
                a_staggered_row_of_writers_is_whole_in_every_overlap,
                the_no_conflict_attribute_changes_nothing,
                later_supersteps_overwrite_earlier_ones,
                an_idle_process_hinders_nobody,
                the_checked_mode_reports_reads_and_writes_of_the_same_bytes,
            ]
            errors: [
                a_local_range_outside_its_slot_is_misuse,
                a_remote_range_outside_its_slot_is_fatal_and_names_the_origin,
                a_get_outside_its_remote_slot_is_fatal_and_names_the_origin,
                a_process_that_does_not_exist_is_misuse,
                too_many_requests_at_a_target_are_fatal_and_name_both,
                checked_mode_names_the_place_of_too_many_requests,
                after_fatal_everything_is_fatal,
                misuse_has_no_effect_and_the_section_goes_on,
                the_next_exec_works_after_a_fatal_one,
                a_failed_section_is_not_mistaken_for_a_later_one,
                an_error_of_std_ends_its_section_with_its_text,
                a_superstep_over_its_time_limit_is_fatal,
                the_time_limit_names_the_process_that_waits_for_none,
            ]
            sections: [
                exec_hands_input_to_process_0_and_returns_its_output,
                exec_gives_at_most_what_is_available,
                hook_passes_each_process_its_own_arguments,
                rehook_returns_each_process_its_own_value,
                rehook_gives_a_pristine_context,
                requests_of_the_parent_stay_pending_across_rehook,
                rehooks_nest,
                functions_can_be_called_on_every_process,
                messages_not_sent_at_the_end_are_dropped,
                nested_execs_share_the_processors,
                an_exec_in_a_section_returns_its_output,
            ]
            machine: [
                parameters_are_bitwise_equal_on_every_process,
                parameters_are_positive_for_every_size,
                the_clock_goes_on,
                a_host_has_a_name,
            ]
            alloc: [
                areas_of_alloc_are_ready,
                alloc_leaves_pending_what_is_pending,
                room_of_alloc_is_used_again,
                alloc_of_refused_memory_leaves_no_trace,
                alloc_of_different_lengths_is_fatal,
            ]
            areas: [
                an_owner_may_write_until_its_sync,
                an_area_outlives_its_handle,
                an_area_is_freed_when_the_section_ends,
                an_area_outlives_a_process_that_fails,
                several_areas_are_accessed_at_once,
            ]
            board: [
                a_record_is_read_by_everybody_and_the_latest_counts,
                a_record_is_bounded,
                the_first_record_of_an_agreement_stands_for_all,
                a_helper_thread_uses_the_board_while_its_process_waits,
                the_board_of_a_failed_section_is_fatal,
            ]
            endings: [
                a_rehook_that_ends_badly_is_fatal_for_the_others,
                an_exec_that_ends_badly_is_fatal_and_the_next_one_works,
                a_nested_exec_that_ends_badly_leaves_its_parent_usable,
                the_failure_of_a_rehook_that_is_handed_on_names_where_it_began,
                a_hook_that_ends_badly_is_fatal_for_the_others,
            ]
            random: [
                random_programs_keep_the_contract,
                random_programs_keep_the_contract_in_checked_mode,
                random_exchanges_on_links_arrive_in_order,
            ]
            suspension: [
                what_is_suspended_waits_for_its_own_sync,
                a_library_leaves_no_trace_but_its_data,
                libraries_suspend_within_libraries,
                memory_of_suspended_requests_stays,
                errors_and_panics_of_a_library_restore,
                a_library_reserves_while_its_caller_is_suspended,
            ]
            texts: [
                misused_slots_and_requests_are_told_in_the_same_words,
                misused_links_are_told_in_the_same_words,
                failures_are_told_in_the_same_words,
                failures_on_links_are_told_in_the_same_words,
            ]
            arrivals: {
                channels: [
                    messages_arrive_in_order_and_are_counted,
                    the_first_of_two_senders_need_not_wait_for_the_second,
                    an_empty_message_fills_a_cell_and_counts,
                    a_message_stays_until_it_is_released,
                    polling_never_blocks,
                    leaving_and_full_syncs_flush,
                    a_flushed_source_may_be_rewritten,
                    a_flush_waits_for_a_message_without_credit,
                    a_source_may_go_when_its_puts_have_left,
                    what_is_misused_on_links_is_found_at_the_call,
                    what_is_misused_on_arrivals_is_found_at_the_call,
                    a_closed_link_gives_its_ring_back,
                    a_link_in_use_is_not_closed,
                ]
                credits: [
                    a_sender_gets_no_further_than_the_window_of_a_sleeping_receiver,
                    whole_windows_cross_again_and_again,
                    more_puts_than_the_window_in_a_superstep_are_misuse,
                    more_unreleased_messages_than_the_window_are_misuse,
                    a_put_without_credit_delays_no_other_target,
                    a_sender_that_never_flushes_is_stopped_by_misuse,
                    nobody_sleeps_on_releases_that_its_sender_needs,
                    an_idle_link_reports_its_releases_before_a_sleep,
                    nobody_meets_on_releases_that_its_sender_needs,
                    awaiting_more_before_the_first_came_releases_nothing,
                    the_credit_of_another_ring_is_none,
                ]
                collectives: [
                    a_chain_whose_last_process_sleeps_lets_the_others_go,
                    recursive_doubling_back_to_back_with_a_slow_member,
                    strict_mode_gives_the_same_bits,
                ]
                landings: [
                    a_landing_may_be_offered_early,
                    a_landing_may_be_offered_late,
                    landings_and_cells_keep_the_order_of_their_link,
                    offers_of_different_lengths_are_used_in_order,
                    landings_of_every_size_arrive_exactly,
                    what_is_misused_on_offers_is_found_at_the_call,
                    a_landing_longer_than_its_offer_is_fatal_and_names_both,
                    a_landing_never_offered_is_fatal_on_both_sides,
                ]
                mismatches: [
                    a_cycle_of_waits_is_fatal_for_all,
                    two_roots_for_one_call_are_fatal_on_both_sides,
                    a_wrong_size_is_fatal_on_both_sides,
                    a_skipped_call_is_fatal_on_both_sides,
                    a_process_that_left_is_fatal_for_who_waits,
                    a_slow_process_is_not_taken_for_a_missing_one,
                ]
                opening: [
                    a_put_waits_for_the_peer_to_open_its_end,
                    a_ring_goes_from_sender_to_sender_without_a_full_sync,
                    a_flush_of_some_links_does_not_wait_for_others,
                    a_link_that_the_peer_never_opens_is_fatal,
                    a_ring_that_is_never_given_up_is_fatal,
                    a_ring_whose_former_sender_waits_for_the_next_is_fatal,
                    a_ring_kept_by_who_waits_for_its_owner_is_fatal,
                    what_nobody_awaited_is_fatal_where_its_ring_goes_on,
                    a_link_is_not_closed_on_a_message_that_has_come,
                    a_link_that_the_peer_has_closed_again_is_fatal,
                ]
                parts: [
                    a_put_in_parts_comes_cell_by_cell,
                    parts_keep_their_place_among_other_messages,
                    long_parts_cross_each_other,
                ]
                unread: [
                    what_nobody_awaited_is_fatal_at_the_end,
                    what_comes_after_its_link_is_fatal_at_the_end,
                ]
                mixed: [
                    ordinary_requests_stay_pending_across_expected_supersteps,
                    registrations_and_resizes_wait_for_a_full_sync,
                    full_and_expected_supersteps_mix,
                    inboxes_live_side_by_side_and_across_a_rehook,
                ]
            }
        }
    };
}

#[cfg(test)]
mod tests {
    /// The list in the macro is kept by hand; this compares it with the cases there are.
    #[test]
    fn every_case_is_listed() {
        let list = include_str!("primitives.rs");
        let sources = [
            include_str!("primitives/alloc.rs"),
            include_str!("primitives/areas.rs"),
            include_str!("primitives/arrivals/channels.rs"),
            include_str!("primitives/arrivals/collectives.rs"),
            include_str!("primitives/arrivals/credits.rs"),
            include_str!("primitives/arrivals/landings.rs"),
            include_str!("primitives/arrivals/mismatches.rs"),
            include_str!("primitives/arrivals/mixed.rs"),
            include_str!("primitives/arrivals/opening.rs"),
            include_str!("primitives/arrivals/parts.rs"),
            include_str!("primitives/arrivals/unread.rs"),
            include_str!("primitives/board.rs"),
            include_str!("primitives/capacities.rs"),
            include_str!("primitives/communication.rs"),
            include_str!("primitives/dropped.rs"),
            include_str!("primitives/endings.rs"),
            include_str!("primitives/errors.rs"),
            include_str!("primitives/machine.rs"),
            include_str!("primitives/random.rs"),
            include_str!("primitives/sections.rs"),
            include_str!("primitives/slots.rs"),
            include_str!("primitives/suspension.rs"),
            include_str!("primitives/texts.rs"),
        ];
        let cases = crate::listing::listed(list, &sources);
        assert!(cases > 80, "only {cases} cases were found in the sources");
    }
}
