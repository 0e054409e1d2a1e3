//! Failures seen in the field as protocol traces.
//!
//! A [`Scene`] holds one session of the shipped driver over in-memory links, under virtual time.
//! The far end of each link is a [`Peer`]: a script that takes and sends raw bytes, answers the
//! control plane's questions on the way, stays silent, blocks, resets or closes. Nothing here
//! uses an encoder or decoder of the driver.
//!
//! Nearly all scenes are played twice ([`play_everywhere`]): over links of their own, and through a
//! `messina-websocket` tunnel, with a relay in memory between driver and nodes. All of F1, F4 and F6
//! are; only what the driver's own socket does at a reset and at its close is not.
//!
//! Which test shows which failure; cases that need no driver around them are shown where their
//! code is. A test checks that all of these exist.
//!
//! | case | what | file | test |
//! |---|---|---|---|
//! | F1 | late answers | `tests/scenario/tests/cases/streams.rs` | `a_late_answer_never_reaches_another_request` |
//! | F1 | one usable stream | `tests/scenario/tests/cases/streams.rs` | `the_stream_of_a_request_given_up_stays_reserved_until_its_answer` |
//! | F1 | until the connection closes | `tests/scenario/tests/cases/streams.rs` | `a_new_connection_has_no_orphans` |
//! | F3 | all stream ids | `tests/scenario/tests/cases/streams.rs` | `every_stream_id_is_an_answer_a_stray_or_a_broken_protocol` |
//! | F3 | unknown streams | `tests/scenario/tests/cases/streams.rs` | `answers_for_nobody_are_dropped_up_to_a_bound` |
//! | F3 | strange frames | `tests/scenario/tests/cases/streams.rs` | `a_strange_frame_fails_its_connection_at_most` |
//! | F4 | prefixes of bodies | `tests/scenario/tests/cases/frames.rs` | `prefixes_are_read_in_order_and_shown_to_the_caller` |
//! | F4 | all combinations | `core/src/wire/response/extras.rs` | `each_combination_of_flags_in_the_order_of_the_specification` |
//! | F6 | absurd lengths | `tests/scenario/tests/cases/frames.rs` | `an_absurd_length_fails_its_request_at_once_and_the_pool_reconnects` |
//! | F6 | memory | `tests/scenario/tests/memory/main.rs` | `a_declared_length_allocates_nothing` |
//! | F6 | 64 KiB of memory | `tests/xtask/src/embedded/liar.rs` | `only_an_answer_to_execute_is_a_lie_and_only_when_wanted` |
//! | F6 | a lower limit | `tests/scenario/tests/cases/frames.rs` | `the_limit_of_frames_can_be_set_lower` |
//! | F6 | long requests | `tests/scenario/tests/cases/frames.rs` | `a_request_too_long_is_refused_before_its_first_byte` |
//! | F6 | long requests, memory | `tests/scenario/tests/memory/main.rs` | `a_request_too_long_is_not_copied` |
//! | F6 | values of 2^31, ids of 65,536 | `core/src/wire/writer.rs` | `lengths_that_do_not_fit_their_field_are_refused` |
//! | P1 | id and columns as one | `tests/scenario/tests/cases/metadata.rs` | `a_changed_id_and_its_columns_are_kept_as_one` |
//! | P1 | requests under way | `tests/scenario/tests/cases/metadata.rs` | `answers_out_of_order_are_read_by_what_they_were_asked_by` |
//! | P1 | row type that fits no more | `tests/scenario/tests/cases/metadata.rs` | `a_row_type_that_fits_no_more_is_told` |
//! | P1 | nodes without the extension | `tests/scenario/tests/cases/metadata.rs` | `a_node_without_ids_changes_nothing_for_those_that_have_them` |
//! | P3 | no result metadata | `tests/scenario/tests/cases/prepared.rs` | `rows_of_a_statement_prepared_without_metadata_are_read` |
//! | P3 | skip flag afresh | `tests/scenario/tests/cases/prepared.rs` | `the_skip_flag_is_worked_out_afresh_after_preparing_again` |
//! | P5 | one statement lost | `tests/scenario/tests/cases/batches.rs` | `a_batch_whose_statement_was_lost_is_sent_again_as_it_was` |
//! | P5 | two lost in turn | `tests/scenario/tests/cases/batches.rs` | `lost_statements_are_given_back_one_after_the_other` |
//! | P5 | bounded | `tests/scenario/tests/cases/batches.rs` | `a_node_that_forgets_for_ever_is_asked_once_for_each_statement` |
//! | P7 | key order | `tests/scenario/tests/cases/prepared.rs` | `the_key_is_built_in_key_order_and_values_travel_in_bind_order` |
//! | P7 | one component | `tests/scenario/tests/cases/prepared.rs` | `a_single_component_stands_by_itself` |
//! | P7 | no key, NULL, UNSET | `tests/scenario/tests/cases/prepared.rs` | `without_a_whole_key_requests_are_not_routed` |
//! | P7 | 65,536 bytes | `tests/scenario/tests/cases/prepared.rs` | `a_key_component_too_long_is_refused_before_sending` |
//! | P7 | bytes of the key | `core/src/routing/token.rs` | `composite_keys_have_lengths_and_zeros` |
//! | G1 | row stream | `tests/scenario/tests/cases/paging.rs` | `reading_goes_on_over_empty_pages` |
//! | G1 | single page | `tests/scenario/tests/cases/paging.rs` | `a_single_empty_page_is_not_the_end` |
//! | G1 | cancellation | `tests/scenario/tests/cases/paging.rs` | `reading_can_be_given_up_and_taken_up_between_pages` |
//! | G1 | ten thousand pages | `tests/scenario/tests/memory/main.rs` | `ten_thousand_empty_pages_need_no_growing_memory` |
//! | G3 | other columns | `tests/scenario/tests/cases/paging.rs` | `a_page_with_other_columns_is_read_by_them_or_refused` |
//! | G3 | with ids of columns | `tests/scenario/tests/cases/metadata.rs` | `the_page_after_alter_has_the_new_columns` |
//! | T1 | borders, overlaps | `core/src/routing/tablet_cache.rs` | `borders_overlaps_and_replicas_that_come_and_go` |
//! | T3 | a view, through the driver | `tests/sim/tests/driver/views.rs` | `tablets_of_views_outlive_a_refresh_and_not_their_view` |
//! | T3 | CDC log tables, ids | `core/src/routing/view_writer.rs` | `tables_and_views_keep_their_tablets_over_refreshes` |
//! | T3 | made anew | `core/src/routing/view_writer.rs` | `a_table_made_anew_is_another_one` |
//! | T5 | unknown hosts, through the driver | `tests/scenario/tests/cases/tablets.rs` | `a_replica_on_an_unknown_host_is_used_when_the_host_is_known` |
//! | T5 | removed, replaced, through the driver | `tests/scenario/tests/cases/tablets.rs` | `tablets_of_removed_and_replaced_hosts_concern_no_other_host` |
//! | T5 | hosts that come and go | `core/src/routing/tablet_cache.rs` | `borders_overlaps_and_replicas_that_come_and_go` |
//! | S1 | tokens | `core/src/routing/murmur3.rs` | `hashes_published_keys_in_any_split` |
//! | S1 | shards | `core/src/routing/shard.rs` | `tokens_have_the_published_shards` |
//! | S3 | source ports | `core/src/routing/shard.rs` | `narrow_ranges_have_the_ports_they_have` |
//! | S3 | each port once | `core/src/routing/shard.rs` | `each_fitting_port_comes_once` |
//! | S3 | busy ports | `core/src/cluster/tests/pools.rs` | `a_taken_port_is_followed_by_the_next` |
//! | S3 | busy ports | `core/src/cluster/tests/pools.rs` | `narrow_port_ranges_leave_shards_to_the_normal_port` |
//! | S5 | ten minutes of requests | `tests/sim/tests/driver/pools.rs` | `rewritten_source_ports_cost_no_request` |
//! | S5 | first node | `core/src/cluster/tests/pools.rs` | `rewritten_source_ports_are_noticed` |
//! | S5 | second node | `core/src/cluster/tests/pools.rs` | `a_pool_that_cannot_be_filled_is_left_in_peace` |
//! | S5 | steering again | `core/src/cluster/tests/pools.rs` | `steering_comes_back_after_its_rest` |
//! | S7 | SUPPORTED | `tests/scenario/tests/cases/handshake.rs` | `impossible_sharding_is_ignored_as_a_whole_and_the_node_is_still_scylla` |
//! | S7 | SUPPORTED | `tests/scenario/tests/cases/handshake.rs` | `possible_sharding_is_used_and_scylla_is_known_without_it` |
//! | S7 | the warning | `core/src/cluster/tests/pools.rs` | `a_node_with_impossible_sharding_is_used_without_shards` |
//! | S7 | shards asked for | `core/src/routing/planner/tests/distance.rs` | `shards_a_node_does_not_have_are_none` |
//! | N1 | falling order, kept | `tests/scenario/tests/cases/versions.rs` | `each_version_is_asked_in_once_in_falling_order` |
//! | N1 | none in common | `tests/scenario/tests/cases/versions.rs` | `a_node_that_refuses_all_versions_is_told_with_those_tried` |
//! | N1 | without a word | `tests/scenario/tests/cases/versions.rs` | `a_node_that_says_nothing_is_no_reason_to_step_down` |
//! | N3 | bodies that are wrong | `tests/scenario/tests/cases/compression.rs` | `a_body_that_does_not_inflate_fails_its_request_only` |
//! | N3 | bodies that are sent | `tests/scenario/tests/cases/compression.rs` | `requests_are_compressed_if_that_makes_them_shorter` |
//! | N3 | memory | `core/src/wire/compress.rs` | `lengths_are_checked_before_anything_is_allocated` |
//! | N5 | whole sessions | `tests/scenario/tests/cases/segments.rs` | `answers_come_in_segments_of_both_kinds` |
//! | N5 | the handshake | `tests/scenario/tests/cases/segments.rs` | `all_behind_the_answer_to_startup_is_in_segments` |
//! | N5 | bytes | `core/src/wire/segment/tests.rs` | `payloads_come_as_they_are_or_compressed` |
//! | N7 | tokens | `tests/scenario/tests/cases/handshake.rs` | `the_plain_token_has_the_form_both_databases_read` |
//! | N7 | READY | `tests/scenario/tests/cases/handshake.rs` | `ready_without_being_asked_is_connected` |
//! | N7 | the warning | `core/src/cluster/tests/first_contact.rs` | `credentials_that_nobody_asks_for_are_said_once` |
//! | N7 | challenges, refusal | `tests/scenario/tests/cases/handshake.rs` | `unexpected_challenges_and_bad_credentials_are_typed_errors` |
//! | N7 | challenges, refusal | `tests/scenario/tests/cases/handshake.rs` | `challenges_go_to_the_authenticator` |
//! | N7 | no credentials | `tests/scenario/tests/cases/handshake.rs` | `missing_credentials_name_the_authenticator` |
//! | N7 | one attempt | `core/src/cluster/tests/first_contact.rs` | `wrong_credentials_end_it_after_one_attempt` |
//! | O1 | rows of system.peers | `core/src/cluster/tests/first_contact.rs` | `rows_of_peers_may_be_incomplete` |
//! | O3 | events, no events, late DOWN | `core/src/cluster/tests/refresh.rs` | `a_node_with_a_new_address_keeps_its_place` |
//! | O3 | swap | `core/src/cluster/tests/refresh.rs` | `nodes_that_swap_addresses_are_told_apart_by_host_id` |
//! | O5 | a flood of events | `core/src/cluster/tests/refresh.rs` | `a_flood_of_events_causes_a_handful_of_readings` |
//! | O7 | a new route | `core/src/cluster/tests/routes.rs` | `a_new_route_replaces_the_old_one_and_is_tried_at_once` |
//! | O7 | a deleted route | `core/src/cluster/tests/routes.rs` | `a_deleted_route_costs_no_connection_and_allows_none` |
//! | O7 | no port | `core/src/cluster/tests/routes.rs` | `a_route_without_a_port_for_the_way_in_use_concerns_its_node` |
//! | O7 | one name | `core/src/cluster/tests/routes.rs` | `nodes_behind_one_name_are_told_apart` |
//! | W1 | as bytes, every cut | `tests/contract/tests/websocket.rs` | `frames_come_in_order_however_messages_cut_them` |
//! | W1 | (a), (b), (c), (e), the whole driver | `tests/contract/tests/websocket.rs` | `answers_reach_their_requests_however_messages_cut_them` |
//! | W1 | (d), close code | `tests/contract/tests/websocket.rs` | `a_text_message_is_a_protocol_error_and_closes` |
//! | W1 | (d), the whole driver | `tests/contract/tests/websocket.rs` | `a_text_message_between_answers_fails_its_connection_only` |
//! | W1 | back-pressure | `tests/contract/tests/websocket.rs` | `a_far_end_that_does_not_read_bounds_what_is_taken` |
//! | W1 | through a tunnel, cuts | `transports/websocket/src/tunnel/tests.rs` | `the_stream_may_be_cut_anywhere` |
//! | W1 | through a tunnel, back-pressure | `transports/websocket/src/tunnel/tests.rs` | `a_slow_reader_bounds_its_writer` |
//! | W4 | short writes | `tests/scenario/tests/cases/sockets.rs` | `short_writes_lose_and_repeat_nothing` |
//! | W4 | reset | `tests/scenario/tests/cases/sockets.rs` | `a_reset_within_a_frame_fails_its_request_at_once` |
//! | W4 | blocked | `tests/scenario/tests/cases/sockets.rs` | `a_frame_begun_is_finished_before_any_other` |
//! | W4 | blocked | `tests/scenario/tests/cases/sockets.rs` | `a_node_that_takes_nothing_ever_again_is_left` |
//! | W4 | end of stream | `tests/scenario/tests/cases/sockets.rs` | `the_end_of_the_stream_fails_what_is_pending_wherever_it_comes` |
//! | W4 | close | `tests/scenario/tests/cases/sockets.rs` | `closing_does_not_wait_for_ever` |
//! | W4 | embassy-net: short writes | `tests/contract/tests/embassy/partial.rs` | `a_request_taken_in_parts_arrives_whole` |
//! | W4 | embassy-net: sockets used again | `tests/contract/tests/embassy/partial.rs` | `after_any_end_the_socket_and_its_buffers_serve_the_next_connection` |
//! | W4 | the driver for small images | `tests/trace/tests/digests.rs` | `the_logs_are_those_that_were_stored` |
//! | L1 | refusing | `tests/scenario/tests/cases/retries.rs` | `a_node_that_refuses_for_long_is_tried_at_bounded_pauses` |
//! | L1 | dying at once | `tests/scenario/tests/cases/retries.rs` | `a_connection_that_dies_at_once_backs_off_too` |
//! | L1 | delays and spread | `core/src/cluster/reconnect.rs` | `delays_rise_to_the_cap_and_stay_for_ten_thousand_failures` |
//! | L1 | delays and spread | `core/src/cluster/reconnect.rs` | `pools_that_failed_together_spread` |
//! | L4 | one node | `tests/scenario/tests/cases/retries.rs` | `the_only_node_is_not_hammered` |
//! | L4 | three nodes | `tests/scenario/tests/cases/retries.rs` | `each_overloaded_node_is_asked_once_at_most` |
//! | E1 | the error as told | `tests/scenario/tests/cases/rate_limits.rs` | `the_error_is_read_by_the_code_that_was_offered` |
//! | E1 | codes of two nodes | `tests/scenario/tests/cases/rate_limits.rs` | `each_connection_has_a_code_of_its_own` |
//! | E1 | one request | `tests/scenario/tests/cases/rate_limits.rs` | `a_limited_request_is_sent_once` |
//! | E1 | offered only | `tests/scenario/tests/cases/rate_limits.rs` | `the_extension_is_asked_for_where_it_is_offered` |
//! | E3 | the mark | `tests/conformance/tests/rules/statements.rs` | `the_lwt_mark_is_the_bit_that_the_node_told` |
//! | E3 | ring and tablet order | `core/src/routing/planner/tests/conditional.rs` | `every_session_meets_at_the_same_replica_also_when_the_first_is_out` |
//! | E3 | ring and tablet order | `core/src/routing/planner/tests/conditional.rs` | `conditional_statements_keep_the_listed_order` |
//! | E3 | others are shuffled | `core/src/routing/planner/tests/load.rs` | `equal_replicas_share_evenly_and_the_less_loaded_of_two_wins` |
//! | E3 | shares of the nodes | `tests/sim/tests/driver/conditional.rs` | `shares_of_the_nodes_in_both_orders` |
//! | E5 | not repeated | `tests/scenario/tests/cases/retries.rs` | `a_write_that_may_have_happened_is_not_repeated` |
//! | E5 | repeated once | `tests/scenario/tests/cases/retries.rs` | `what_was_not_applied_or_may_be_applied_twice_is_repeated_once` |
//! | E5 | rules | `core/src/exec/retry.rs` | `server_errors` |
//! | E5 | rules | `core/src/exec/retry.rs` | `lost_connections_and_timeouts` |
//! | E7 | rules | `core/src/exec/retry.rs` | `server_errors` |
//! | E9 | as far as it is written | `tests/scenario/tests/cases/traces.rs` | `a_trace_is_complete_once_it_has_a_duration` |
//! | V1 | short, long, cut, nested | `core/src/types/dynamic.rs` | `user_types_may_have_grown_or_shrunk` |
//! | V2 | dynamic | `core/src/types/dynamic.rs` | `tuples_may_be_shorter_than_their_type` |
//! | V2 | typed | `core/src/types/decode.rs` | `typed_tuples_follow_the_rules_of_dynamic_ones` |
//! | V4 | counts and lengths | `core/src/types/dynamic.rs` | `collections_that_lie_are_errors` |
//! | V6 | lengths | `core/src/types/dynamic.rs` | `vectors_have_their_dimension_or_are_errors` |
//! | V6 | elements both ways | `core/src/types/dynamic.rs` | `values_of_every_type_both_ways` |
//! | V6 | dimensions | `core/src/types/class.rs` | `impossible_vectors_and_deep_nesting_are_errors` |
//! | V8 | both ways | `core/src/types/dynamic.rs` | `values_of_every_type_both_ways` |
//! | V8 | wrong ones | `core/src/types/dynamic.rs` | `durations_that_do_not_fit_are_errors` |
//! | V10 | both ways | `core/src/types/number.rs` | `exact_both_ways_in_the_shortest_form` |
//! | V10 | long forms, narrow types | `core/src/types/decode.rs` | `a_varint_fits_or_is_an_error` |
//! | V12 | bytes of a request | `core/src/types/row.rs` | `tuples_and_dynamic_rows_bind_the_same_bytes` |

#![forbid(unsafe_code)]

pub mod frame;
mod link;
mod node;
mod relay;
mod scene;
mod segment;
mod system;

pub use frame::{Execute, Frame, Value, hex};
pub use link::{ScriptLink, ScriptTransport};
pub use node::{Peer, address, any_request, on_stream, serving};
pub use scene::{Asked, Call, Scene, play, play_everywhere, play_once};
pub use segment::Segmented;
