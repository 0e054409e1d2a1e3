//! The rules of ScyllaDB's protocol extensions document.

use crate::rule::{Rule, both, driver, node};

#[rustfmt::skip]
pub(crate) const RULES: &[Rule] = &[
    // Negotiation.
    driver("P1", "extensions are asked for by OPTIONS and chosen from what SUPPORTED lists", &[
        "tests/conformance/tests/rules/handshake.rs: each_answer_is_followed_by_the_one_request_that_may_follow",
        "tests/conformance/tests/rules/offers.rs: startup_names_what_was_offered_and_no_more",
    ]),
    driver("P2", "a server that offers none of them is spoken to without them", &[
        "core/src/cluster/tests/first_contact.rs: a_cluster_without_the_tables_of_scylla_is_fine",
        "tests/conformance/tests/captured_responses.rs: cassandra_offers_versions_and_no_extension",
        "tests/sim/tests/driver/pools.rs: without_shards_nothing_is_counted",
    ]),
    node("P3", "a node takes from STARTUP only what it has offered", &[
        "tests/sim/tests/scenarios/faults.rs: node_modes_are_negotiated_per_connection",
    ]),
    // Client options.
    both("P4", "all that a client says in STARTUP is shown by the node", &[
        "tests/conformance/tests/rules/offers.rs: client_options_go_into_startup_as_they_are",
        "tests/sim/tests/scenarios/watching.rs: clients_are_shown_with_what_they_said_and_how_they_came",
    ]),
    driver("P5", "one session id stands on all connections of a session", &[
        "tests/sim/tests/driver/options.rs: all_connections_of_a_session_say_its_id",
    ]),
    driver("P6", "a client may tell its configuration, and must not if it is longer than 32 KiB", &[
        "tests/sim/tests/driver/options.rs: the_control_connection_tells_how_the_session_is_set",
        "tests/sim/tests/driver/options.rs: a_configuration_too_long_is_not_told",
        "core/src/drive/driver_config.rs: the_bound_is_in_bytes",
        "tests/conformance/tests/rules/offers.rs: the_configuration_goes_to_nodes_that_keep_it",
    ]),
    // The node itself.
    driver("P7", "the host id of a node comes with SUPPORTED", &[
        "tests/conformance/tests/rules/offers.rs: the_host_is_known_before_any_table_is_read",
        "core/src/cluster/tests/refresh.rs: nodes_that_swap_addresses_are_told_apart_by_host_id",
    ]),
    driver("P8", "what only servers say, such as the host id, does not go into STARTUP", &[
        "tests/conformance/tests/rules/offers.rs: startup_names_what_was_offered_and_no_more",
    ]),
    // Sharding.
    both("P9", "shards are counted from zero, and numbers are written in decimal", &[
        "tests/conformance/tests/rules/offers.rs: a_connection_is_on_the_shard_that_supported_names",
        "tests/scenario/tests/cases/handshake.rs: impossible_sharding_is_ignored_as_a_whole_and_the_node_is_still_scylla",
        "tests/sim/src/node/reply.rs: supported_is_that_of_a_real_node",
    ]),
    driver("P10", "sharding counts only with the one algorithm and the one partitioner that are defined", &[
        "tests/conformance/tests/rules/offers.rs: a_connection_is_on_the_shard_that_supported_names",
        "core/src/cluster/tests/pools.rs: a_node_with_impossible_sharding_is_used_without_shards",
    ]),
    both("P11", "a shard is the biased, shifted token times the shards, by 2^64", &[
        "tests/conformance/tests/rules/tokens.rs: shards_follow_both_published_formulas",
        "core/src/routing/shard.rs: tokens_have_the_published_shards",
        "tests/sim/src/node/token.rs: shards_of_tokens",
    ]),
    both("P12", "on the shard-aware port the source port modulo the shards chooses the shard", &[
        "core/src/routing/shard.rs: every_port_of_the_ephemeral_range_leads_to_its_shard",
        "core/src/cluster/tests/pools.rs: shards_are_reached_by_source_ports",
        "tests/sim/tests/tcp.rs: the_source_port_chooses_the_shard",
        "tests/sim/tests/scenarios/faults.rs: the_shard_follows_the_port_unless_it_is_rewritten",
    ]),
    both("P13", "encrypted connections have a shard-aware port of their own", &[
        "core/src/cluster/tests/pools.rs: tls_uses_the_tls_port_and_never_one_named_as_plain",
        "tests/sim/src/node/reply.rs: both_shard_aware_ports_are_named",
    ]),
    driver("P14", "connections are opened until each shard has one, and what is beyond is closed", &[
        "core/src/cluster/tests/pools.rs: without_a_shard_aware_port_the_normal_one_fills_the_pool",
        "core/src/cluster/tests/pools.rs: a_pool_that_cannot_be_filled_is_left_in_peace",
    ]),
    // LWT.
    driver("P15", "the mask of the LWT mark is an unsigned number of 32 bits", &[
        "tests/conformance/tests/rules/offers.rs: two_values_have_a_name_and_all_others_none",
        "tests/conformance/tests/rules/statements.rs: the_lwt_mark_is_the_bit_that_the_node_told",
    ]),
    driver("P16", "conditional statements meet at one replica: the first that is up, in a fixed order", &[
        "core/src/routing/planner/tests/conditional.rs: conditional_statements_keep_the_listed_order",
        "core/src/routing/planner/tests/conditional.rs: every_session_meets_at_the_same_replica_also_when_the_first_is_out",
        "core/src/routing/planner/tests/conditional.rs: conditional_statements_may_rotate_by_tablet",
    ]),
    // Rate limits.
    both("P17", "a rate limit tells the operation and who refused it", &[
        "tests/conformance/tests/responses.rs: errors_have_a_code_a_message_and_facts",
        "tests/sim/tests/scenarios/watching.rs: partitions_have_their_rates",
    ]),
    driver("P18", "a rate limit is given to the caller and never tried again", &[
        "tests/conformance/tests/rules/errors.rs: a_rate_limit_is_never_tried_again",
        "tests/scenario/tests/cases/rate_limits.rs: a_limited_request_is_sent_once",
    ]),
    driver("P19", "the code of rate limits is a signed number from SUPPORTED", &[
        "tests/conformance/tests/rules/offers.rs: two_values_have_a_name_and_all_others_none",
        "core/src/wire/response/error.rs: the_rate_limit_code_is_the_one_the_connection_agreed",
        "tests/scenario/tests/cases/rate_limits.rs: the_error_is_read_by_the_code_that_was_offered",
    ]),
    // Tablets, version 1.
    both("P20", "a payload of the first version is a range and a list of hosts and shards", &[
        "core/src/routing/tablet_payload.rs: published_payloads",
        "core/src/routing/tablet_payload.rs: every_prefix_is_refused",
        "core/src/routing/tablet_payload.rs: impossible_values_are_refused",
        "tests/sim/src/node/tablets.rs: encodings_are_those_of_the_documents",
    ]),
    driver("P21", "a tablet that was told replaces all known ones that it overlaps", &[
        "tests/conformance/tests/rules/tablets.rs: a_new_tablet_replaces_all_that_it_overlaps",
        "core/src/routing/tablet_cache.rs: agrees_with_a_plain_list",
    ]),
    node("P22", "tablets are told only to clients that know of them", &[
        "tests/sim/src/node/tablets.rs: who_gets_which_payload",
    ]),
    // Tablets, version 2.
    driver("P23", "a block is the place in the high half and the four bits in the low one", &[
        "core/src/routing/tablet.rs: blocks_match_the_worked_examples",
        "tests/conformance/tests/rules/tablets.rs: sixteen_requests_show_the_version_from_its_least_block_on",
    ]),
    driver("P24", "the place changes from request to request, so that the whole version is compared", &[
        "core/src/routing/tablet.rs: sixteen_probes_show_the_whole_version",
        "tests/sim/tests/driver/following.rs: any_four_bits_are_found_within_sixteen_requests",
    ]),
    driver("P25", "without a version a block is sent all the same, and a mismatch brings the tablet", &[
        "tests/conformance/tests/rules/tablets.rs: requests_without_a_version_show_blocks_that_differ",
        "core/src/routing/tablet.rs: without_version_two_requests_differ",
        "tests/sim/tests/driver/following.rs: a_cold_tablet_is_learned_by_the_second_request",
    ]),
    both("P26", "a payload of the second version is that of the first and the version", &[
        "core/src/routing/tablet_payload.rs: published_payloads",
        "core/src/routing/tablet_payload.rs: keys_name_the_kind",
        "tests/sim/src/node/tablets.rs: encodings_are_those_of_the_documents",
    ]),
    both("P27", "a change of replicas or leader changes the version, and is followed", &[
        "tests/sim/tests/driver/following.rs: one_forwarded_request_tells_of_a_change",
        "tests/sim/tests/scenarios/routing.rs: maps_change_and_versions_tell",
    ]),
    both("P28", "the list of a strongly consistent tablet begins with its leader", &[
        "tests/conformance/tests/rules/tablets.rs: the_first_replica_leads_only_where_it_was_told_so",
        "tests/sim/tests/scenarios/routing.rs: v2_compares_one_nibble_of_the_version_and_nothing_else",
    ]),
    // Metadata ids.
    both("P29", "metadata ids work on version 4 as they do on version 5", &[
        "tests/conformance/tests/requests.rs: execute_as_the_connection_agreed",
        "tests/conformance/tests/captured_requests.rs: extensions",
        "tests/sim/tests/scenarios/conformance.rs: execute_bodies_and_the_flags_of_rows",
    ]),
    // Client routes.
    both("P30", "CLIENT_ROUTES_CHANGE has a change, connection ids and host ids", &[
        "tests/conformance/tests/responses.rs: events_say_what_changed",
        "tests/sim/src/node/client_routes.rs: the_event_is_that_of_the_documents",
        "tests/sim/tests/scenarios/watching.rs: routes_of_clients_are_set_announced_and_read",
    ]),
    driver("P31", "connections are made by the addresses and ports of the client routes, and follow their changes", &[
        "core/src/cluster/client_routes.rs: a_capture_is_read",
        "core/src/cluster/tests/routes.rs: a_new_route_replaces_the_old_one_and_is_tried_at_once",
        "core/src/cluster/tests/routes.rs: nodes_that_do_not_know_the_event_are_read_now_and_then",
        "tests/sim/tests/driver/routes.rs: routes_that_change_under_load_are_followed",
    ]),
];
