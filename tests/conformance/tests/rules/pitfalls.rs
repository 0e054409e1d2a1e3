//! Points of the protocol, as ScyllaDB's nodes speak it, that are easy to get wrong.

use crate::rule::{Rule, both, driver, node};

#[rustfmt::skip]
pub(crate) const RULES: &[Rule] = &[
    both("E1", "a refused version is told on stream 0 in the server's version, then the stream ends", &[
        "tests/conformance/tests/rules/handshake.rs: a_version_is_refused_on_stream_zero",
        "tests/sim/tests/scenarios/conformance.rs: versions_other_than_three_and_four_are_refused_on_stream_zero",
        "tests/sim/src/node/connection.rs: unsupported_versions_are_refused_on_stream_zero",
    ]),
    both("E2", "a key of SUPPORTED without parameter has one empty string, and readers cope with none", &[
        "tests/conformance/tests/rules/offers.rs: keys_without_values_count_by_their_presence",
        "core/src/wire/primitives.rs: keys_without_values_do_not_end_the_map",
        "tests/sim/src/node/reply.rs: supported_is_that_of_a_real_node",
    ]),
    both("E3", "only the LWT mask and the rate limit's code are written NAME=NUMBER", &[
        "tests/conformance/tests/rules/offers.rs: two_values_have_a_name_and_all_others_none",
        "tests/sim/src/node/reply.rs: supported_is_that_of_a_real_node",
    ]),
    both("E4", "the key of the second tablets extension ends in _EXPERIMENTAL", &[
        "tests/conformance/tests/rules/offers.rs: the_second_tablets_extension_has_its_experimental_name",
        "tests/sim/tests/scenarios/faults.rs: node_modes_are_negotiated_per_connection",
    ]),
    driver("E5", "not every extension's key begins with SCYLLA", &[
        "tests/conformance/tests/rules/offers.rs: extensions_are_found_by_name_and_not_by_prefix",
    ]),
    both("E6", "an extension is switched on by its key in STARTUP, whatever the value", &[
        "tests/conformance/tests/rules/offers.rs: startup_names_what_was_offered_and_no_more",
        "tests/sim/tests/scenarios/pitfalls.rs: extensions_are_switched_on_by_any_value",
    ]),
    both("E7", "the answer to STARTUP is compressed already, an empty body included", &[
        "core/src/conn/negotiate/tests/compressed.rs: answers_may_be_compressed_once_it_was_asked_for",
        "tests/sim/tests/scenarios/conformance.rs: the_reply_to_startup_is_compressed_already",
        "tests/sim/src/node/codec/compress.rs: empty_bodies_have_their_known_form",
    ]),
    both("E8", "each frame's own flag tells whether it is compressed: events never are", &[
        "core/src/conn/negotiate/tests/compressed.rs: answers_may_be_compressed_once_it_was_asked_for",
        "core/src/drive/connection_task/tests.rs: frames_without_the_flag_are_taken_as_they_are",
        "tests/sim/src/node/connection.rs: event_frames_are_those_of_the_documents",
        "tests/sim/tests/scenarios/conformance.rs: requests_may_be_compressed_frame_by_frame",
    ]),
    both("E9", "an lz4 body is a big-endian length and a bare block", &[
        "core/src/wire/compress.rs: bodies_of_the_formats_are_inflated",
        "tests/sim/src/node/codec/compress.rs: empty_bodies_have_their_known_form",
    ]),
    both("E10", "AUTH_SUCCESS carries an empty token, not null", &[
        "tests/conformance/tests/rules/handshake.rs: a_success_without_a_token_may_be_empty_or_null",
        "tests/conformance/tests/responses.rs: tokens_are_null_empty_or_bytes",
        "tests/sim/tests/scenarios/conformance.rs: authentication_frame_by_frame",
    ]),
    both("E11", "a wrong password leaves the connection open", &[
        "tests/conformance/tests/rules/handshake.rs: a_wrong_password_is_not_tried_again",
        "core/src/cluster/tests/first_contact.rs: wrong_credentials_end_it_after_one_attempt",
        "tests/sim/tests/scenarios/conformance.rs: authentication_frame_by_frame",
    ]),
    both("E12", "OPTIONS is refused while a node waits for credentials", &[
        "tests/conformance/tests/rules/handshake.rs: each_answer_is_followed_by_the_one_request_that_may_follow",
        "tests/sim/tests/scenarios/conformance.rs: authentication_frame_by_frame",
    ]),
    both("E13", "before the message stand trace id, warnings and payload, in this order", &[
        "core/src/wire/response/extras.rs: each_combination_of_flags_in_the_order_of_the_specification",
        "tests/conformance/tests/responses.rs: prefixes_stand_before_the_message",
        "tests/sim/src/node/reply.rs: extras_stand_in_their_order",
    ]),
    both("E14", "a prepared id depends on the connection's keyspace, also for full names", &[
        "core/src/cluster/tests/first_contact.rs: every_connection_is_put_into_the_keyspace_before_it_serves",
        "tests/sim/src/node/serve.rs: prepared_ids_are_those_of_a_real_node",
        "tests/sim/tests/scenarios/conformance.rs: results_without_rows_and_batches",
    ]),
    both("E15", "key indexes follow the key, may repeat, and vanish with one literal", &[
        "tests/conformance/tests/rules/statements.rs: key_markers_are_kept_in_the_order_of_the_key",
        "core/src/wire/response/prepared.rs: key_indexes_stay_in_key_order_and_below_the_marker_count",
        "tests/scenario/tests/cases/prepared.rs: the_key_is_built_in_key_order_and_values_travel_in_bind_order",
        "tests/scenario/tests/cases/prepared.rs: without_a_whole_key_requests_are_not_routed",
        "tests/sim/tests/scenarios/conformance.rs: key_markers_follow_the_key_and_vanish_with_a_literal",
    ]),
    both("E16", "PREPARED without markers names no table, and version 3 counts no key columns", &[
        "tests/conformance/tests/responses.rs: prepared_statements_have_markers_and_columns",
        "core/src/wire/response/prepared.rs: version_3_has_no_key_indexes",
        "tests/sim/tests/scenarios/conformance.rs: prepared_bodies",
        "tests/sim/tests/scenarios/conformance.rs: version_three_has_no_key_markers",
    ]),
    both("E17", "the LWT mark is the sign of the flags, and there only if it was agreed", &[
        "tests/conformance/tests/rules/statements.rs: the_lwt_mark_is_the_bit_that_the_node_told",
        "tests/sim/tests/scenarios/conformance.rs: prepared_bodies",
    ]),
    both("E18", "the metadata id has its own place in PREPARED, in EXECUTE and in ROWS", &[
        "tests/conformance/tests/responses.rs: prepared_statements_have_markers_and_columns",
        "tests/conformance/tests/requests.rs: execute_as_the_connection_agreed",
        "tests/conformance/tests/responses.rs: changed_metadata_comes_with_its_id",
        "tests/sim/tests/scenarios/conformance.rs: execute_bodies_and_the_flags_of_rows",
    ]),
    both("E19", "where metadata ids were agreed every EXECUTE has one, also without rows or with an empty id", &[
        "tests/conformance/tests/requests.rs: execute_as_the_connection_agreed",
        "tests/scenario/tests/cases/prepared.rs: rows_of_a_statement_prepared_without_metadata_are_read",
        "tests/scenario/tests/cases/metadata.rs: a_node_without_ids_changes_nothing_for_those_that_have_them",
        "tests/sim/tests/driver/mixed.rs: every_node_is_spoken_to_as_it_agreed",
        "tests/sim/src/node/plan/mod.rs: metadata_ids_are_those_of_a_real_node",
        "tests/sim/tests/scenarios/conformance.rs: prepared_bodies",
    ]),
    both("E20", "changed metadata comes although it was to be left out", &[
        "tests/conformance/tests/responses.rs: changed_metadata_comes_with_its_id",
        "tests/conformance/tests/rules/statements.rs: changed_metadata_is_kept_with_its_id",
        "tests/scenario/tests/cases/prepared.rs: changed_columns_come_although_they_were_to_be_left_out",
        "tests/scenario/tests/cases/metadata.rs: a_changed_id_and_its_columns_are_kept_as_one",
        "tests/scenario/tests/cases/metadata.rs: answers_out_of_order_are_read_by_what_they_were_asked_by",
        "tests/scenario/tests/cases/metadata.rs: a_change_without_columns_is_no_answer",
        "tests/sim/tests/driver/altered.rs: rows_are_read_by_their_own_columns_while_these_come_and_go",
        "tests/sim/tests/scenarios/conformance.rs: an_altered_table_unprepares_and_changes_the_metadata_id",
    ]),
    both("E21", "rows without metadata keep the bit of one table, whose names do not follow", &[
        "core/src/wire/response/rows.rs: without_metadata_the_global_bit_brings_no_names",
        "tests/conformance/tests/responses.rs: rows_without_metadata_have_no_names",
        "tests/sim/tests/scenarios/conformance.rs: execute_bodies_and_the_flags_of_rows",
    ]),
    both("E22", "BATCH has neither metadata id nor block, and its answer no payload", &[
        "tests/conformance/tests/requests.rs: batches",
        "tests/scenario/tests/cases/batches.rs: a_batch_is_laid_out_as_the_protocol_says",
        "tests/sim/tests/scenarios/batch.rs: a_batch_has_no_version_byte_and_no_payload",
    ]),
    both("E23", "the block is the last byte of EXECUTE; one too few is an error, one too many is not", &[
        "tests/conformance/tests/requests.rs: execute_as_the_connection_agreed",
        "tests/sim/tests/scenarios/conformance.rs: execute_bodies_and_the_flags_of_rows",
    ]),
    both("E24", "every EXECUTE has a block where the second extension was agreed, also without tablets", &[
        "tests/conformance/tests/rules/tablets.rs: requests_without_a_version_show_blocks_that_differ",
        "core/src/routing/view_writer.rs: probes_follow_the_tablet_or_chance",
        "tests/sim/tests/driver/mixed.rs: every_node_is_spoken_to_as_it_agreed",
        "tests/sim/tests/driver/altered.rs: rows_are_read_by_their_own_columns_while_these_come_and_go",
        "tests/sim/tests/scenarios/routing.rs: v2_compares_one_nibble_of_the_version_and_nothing_else",
    ]),
    both("E25", "an unknown id is told before the rest of EXECUTE is looked at", &[
        "tests/conformance/tests/captured_responses.rs: a_forgotten_statement_is_named_and_comes_back_under_its_id",
        "tests/sim/tests/scenarios/conformance.rs: unprepared_wins_over_everything_behind_it",
    ]),
    both("E26", "block 0 is the least significant", &[
        "tests/conformance/tests/rules/tablets.rs: sixteen_requests_show_the_version_from_its_least_block_on",
        "core/src/routing/tablet.rs: blocks_match_the_worked_examples",
        "tests/sim/src/node/tablets.rs: all_blocks_of_a_version",
    ]),
    driver("E27", "a version comes as a signed number, and its blocks are those of the bits", &[
        "tests/conformance/tests/rules/tablets.rs: sixteen_requests_show_the_version_from_its_least_block_on",
        "core/src/routing/tablet_payload.rs: published_payloads",
    ]),
    node("E28", "the second extension speaks when a block differs, the first when a request went astray", &[
        "tests/sim/tests/scenarios/routing.rs: v1_speaks_on_every_misrouted_request_and_only_then",
        "tests/sim/tests/scenarios/routing.rs: v2_compares_one_nibble_of_the_version_and_nothing_else",
    ]),
    both("E29", "the order of replicas differs by extension and keyspace, and only one of them tells a leader", &[
        "tests/conformance/tests/rules/tablets.rs: the_first_replica_leads_only_where_it_was_told_so",
        "tests/sim/src/node/tablets.rs: encodings_are_those_of_the_documents",
        "tests/sim/tests/scenarios/routing.rs: v2_compares_one_nibble_of_the_version_and_nothing_else",
    ]),
    both("E30", "a leader that sorts first gives the version of a list without leader", &[
        "tests/conformance/tests/rules/tablets.rs: the_first_replica_leads_only_where_it_was_told_so",
        "tests/sim/src/node/tablets.rs: encodings_are_those_of_the_documents",
    ]),
    node("E31", "conditional writes bring a payload of the first extension or none", &[
        "tests/sim/tests/scenarios/routing.rs: conditional_writes_have_their_own_rule",
        "tests/sim/src/node/tablets.rs: who_gets_which_payload",
    ]),
    both("E32", "QUERY for a strongly consistent table fails after the write, where a block is demanded", &[
        "tests/sim/tests/driver/strong.rs: texts_for_strong_tables_come_prepared",
        "tests/sim/tests/driver/strong.rs: keyspaces_of_other_sessions_and_short_names_count_too",
        "tests/sim/tests/scenarios/routing.rs: query_on_a_v2_connection_fails_where_a_block_is_demanded",
    ]),
    both("E33", "a tablet begins behind its first token and ends with its last", &[
        "tests/conformance/tests/rules/tablets.rs: a_tablet_begins_behind_its_first_token",
        "core/src/routing/tablet_cache.rs: borders_overlaps_and_replicas_that_come_and_go",
        "tests/sim/src/node/tablets.rs: one_tablet_covers_everything",
        "tests/sim/src/node/tablets.rs: ranges_of_equal_tablets",
    ]),
    both("E34", "no key has the least token: its hash becomes the greatest", &[
        "tests/conformance/tests/rules/tablets.rs: a_tablet_begins_behind_its_first_token",
        "core/src/routing/token.rs: least_hash_becomes_greatest_token",
        "tests/sim/src/node/token.rs: tokens_of_real_keys",
    ]),
    both("E35", "the last bytes of a key are hashed as signed ones", &[
        "core/src/routing/murmur3.rs: hashes_published_keys_in_any_split",
        "tests/sim/src/node/token.rs: tokens_of_real_keys",
    ]),
    both("E36", "the columns of a composite key are framed, a single one is not", &[
        "core/src/routing/token.rs: composite_keys_have_lengths_and_zeros",
        "tests/scenario/tests/cases/prepared.rs: a_single_component_stands_by_itself",
        "tests/sim/src/node/token.rs: composite_keys_frame_every_component",
    ]),
    driver("E37", "the formula gives shards on the ring only, and each node has its own number of them", &[
        "tests/conformance/tests/rules/tablets.rs: the_shard_of_a_tablet_is_the_one_that_was_told",
        "core/src/routing/planner/tests/distance.rs: vnode_tables_use_the_ring_and_each_nodes_own_shards",
        "core/src/routing/planner/tests/distance.rs: shards_a_node_does_not_have_are_none",
    ]),
    both("E38", "a connection is on the shard that SUPPORTED names, and is kept whichever it is", &[
        "tests/conformance/tests/rules/offers.rs: a_connection_is_on_the_shard_that_supported_names",
        "core/src/cluster/tests/pools.rs: rewritten_source_ports_are_noticed",
        "tests/sim/tests/scenarios/faults.rs: the_shard_follows_the_port_unless_it_is_rewritten",
    ]),
    both("E39", "a shard-aware port may be unnamed, and the one named as plain may want TLS", &[
        "tests/conformance/tests/rules/offers.rs: shard_aware_ports_may_be_there_or_not",
        "core/src/cluster/tests/pools.rs: without_a_shard_aware_port_the_normal_one_fills_the_pool",
        "core/src/cluster/tests/pools.rs: tls_uses_the_tls_port_and_never_one_named_as_plain",
        "tests/sim/src/node/reply.rs: both_shard_aware_ports_are_named",
    ]),
    both("E40", "extensions are agreed by each connection, never for a cluster", &[
        "tests/conformance/tests/rules/offers.rs: each_connection_agrees_by_itself",
        "tests/sim/tests/driver/mixed.rs: every_node_is_spoken_to_as_it_agreed",
        "tests/sim/tests/scenarios/faults.rs: node_modes_are_negotiated_per_connection",
    ]),
    both("E41", "the code of rate limits is the one that was told; unagreed it is a fault of configuration", &[
        "core/src/wire/response/error.rs: the_rate_limit_code_is_the_one_the_connection_agreed",
        "tests/scenario/tests/cases/rate_limits.rs: the_error_is_read_by_the_code_that_was_offered",
        "tests/scenario/tests/cases/rate_limits.rs: each_connection_has_a_code_of_its_own",
        "tests/scenario/tests/cases/rate_limits.rs: a_limited_request_is_sent_once",
        "tests/conformance/tests/responses.rs: errors_have_a_code_a_message_and_facts",
        "tests/sim/tests/scenarios/watching.rs: partitions_have_their_rates",
    ]),
    both("E42", "failures are counted, not listed, and turn into timeouts on version 3", &[
        "core/src/wire/response/error.rs: failures_are_a_number_or_from_version_5_a_map_of_reasons",
        "tests/sim/src/node/error.rs: failures_turn_into_timeouts_on_version_three",
    ]),
    both("E43", "a timeout of a conditional write does not count contentions", &[
        "core/src/wire/response/error.rs: contentions_exist_only_for_conditional_writes_of_version_5",
        "tests/conformance/tests/rules/errors.rs: write_types_are_those_of_the_databases_or_kept",
        "tests/sim/src/node/error.rs: bodies_are_those_of_a_real_node",
    ]),
    driver("E44", "VIEW is a write type", &[
        "tests/conformance/tests/rules/errors.rs: write_types_are_those_of_the_databases_or_kept",
    ]),
    both("E45", "a timeout of a strongly consistent table names ONE and a plain write", &[
        "tests/conformance/tests/rules/errors.rs: a_timeout_of_a_strong_table_names_another_level",
        "tests/sim/tests/scenarios/faults.rs: a_group_without_leader_times_out_without_payload",
    ]),
    both("E46", "events name a node by its broadcast address and the subscriber's port", &[
        "core/src/cluster/found.rs: addresses_for_any_interface_stand_for_the_broadcast_address",
        "core/src/cluster/tests/pools.rs: events_name_nodes_by_their_broadcast_address",
        "core/src/cluster/tests/pools.rs: down_events_do_not_touch_live_connections_and_up_events_hurry",
        "tests/sim/tests/scenarios/faults.rs: a_killed_node_closes_refuses_and_is_announced",
    ]),
    both("E47", "views are announced as tables, moves of tablets not at all", &[
        "core/src/cluster/tests/refresh.rs: everything_is_read_again_now_and_then",
        "tests/sim/tests/driver/following.rs: one_forwarded_request_tells_of_a_change",
        "tests/sim/tests/scenarios/schema.rs: schema_changes_are_told_with_their_targets",
        "tests/sim/tests/scenarios/pitfalls.rs: tablets_move_in_silence",
    ]),
    driver("E48", "changes of client routes are pairs by place, and any of them means to read the table again", &[
        "tests/conformance/tests/responses.rs: events_say_what_changed",
        "core/src/cluster/tests/routes.rs: only_events_about_own_ids_cause_a_reading_and_those_without_pairs_do",
        "core/src/cluster/tests/routes.rs: a_deleted_route_costs_no_connection_and_allows_none",
    ]),
    both("E49", "rows of peers may be incomplete, and nodes may have no tokens", &[
        "core/src/cluster/tests/first_contact.rs: rows_of_peers_may_be_incomplete",
        "core/src/cluster/found.rs: a_capture_of_peers_is_read_by_column_names",
        "tests/sim/tests/scenarios/faults.rs: odd_nodes_show_in_peers_and_own_nothing",
    ]),
    both("E50", "the release version that a node names is not its own", &[
        "tests/conformance/tests/rules/offers.rs: extensions_are_found_by_name_and_not_by_prefix",
        "tests/sim/tests/scenarios/pitfalls.rs: nodes_name_the_release_that_they_are_compatible_with",
    ]),
    both("E51", "an unknown system table is INVALID, and only then may it be missing", &[
        "core/src/cluster/discovery.rs: only_optional_tables_may_be_missing_and_only_by_invalid",
        "tests/sim/tests/scenarios/data.rs: refusals_have_their_codes",
    ]),
    both("E52", "a page may be empty and not the last", &[
        "core/src/exec/paging.rs: only_the_state_decides",
        "tests/scenario/tests/cases/paging.rs: reading_goes_on_over_empty_pages",
        "tests/sim/tests/scenarios/select.rs: a_filter_may_leave_a_page_empty",
        "tests/sim/tests/scenarios/select.rs: aggregates_and_single_rows_come_in_one_reply",
    ]),
    both("E53", "conditional statements show the row before also when they were applied", &[
        "tests/scenario/tests/cases/batches.rs: a_conditional_batch_tells_whether_it_was_applied_and_what_it_found",
        "tests/conformance/tests/captured_responses.rs: conditional_writes_have_columns_by_their_outcome",
        "tests/sim/tests/scenarios/lwt.rs: the_answer_has_the_columns_of_the_condition_and_the_row_before",
    ]),
    node("E54", "creating what exists already is answered as a change", &[
        "tests/sim/tests/scenarios/conformance.rs: results_without_rows_and_batches",
        "tests/sim/tests/scenarios/schema.rs: schema_changes_are_told_with_their_targets",
    ]),
    both("E55", "a request may get no answer at all", &[
        "core/src/conn/streams.rs: deadlines_expire_in_any_order_and_leave_orphans",
        "tests/scenario/tests/cases/streams.rs: a_late_answer_never_reaches_another_request",
        "tests/sim/tests/scenarios/faults.rs: injected_faults_spare_system_tables",
    ]),
    both("E56", "nobody but the client keeps stream ids apart", &[
        "core/src/conn/streams.rs: ids_are_reused_last_in_first_out_and_never_beyond_the_maximum",
        "tests/scenario/tests/cases/streams.rs: the_stream_of_a_request_given_up_stays_reserved_until_its_answer",
        "tests/sim/tests/scenarios/pitfalls.rs: one_stream_id_twice_gets_two_answers",
    ]),
    node("E57", "a batch of strongly and eventually consistent tables is refused as a whole", &[
        "tests/sim/tests/scenarios/routing.rs: levels_of_strongly_consistent_tables",
    ]),
];
