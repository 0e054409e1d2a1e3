//! The rules of ScyllaDB's documents on tablet awareness and on what its drivers do beyond Cassandra's.

use crate::rule::{Rule, both, driver, node};

#[rustfmt::skip]
pub(crate) const RULES: &[Rule] = &[
    // Learning tablets.
    driver("T1", "tablets are learned from the answers to prepared statements", &[
        "tests/sim/tests/driver/following.rs: a_cold_tablet_is_learned_by_the_second_request",
        "tests/sim/tests/driver/payloads.rs: an_answer_without_rows_teaches",
        "tests/sim/tests/driver/payloads.rs: a_later_page_teaches",
        "tests/scenario/tests/cases/tablets.rs: a_replica_on_an_unknown_host_is_used_when_the_host_is_known",
    ]),
    driver("T2", "a request without a token or without a known tablet goes to any live node nearby", &[
        "core/src/routing/planner/tests/distance.rs: unknown_tablets_and_tokens_go_to_live_local_nodes",
    ]),
    driver("T3", "one connection has one tablets extension, the second where it is offered", &[
        "tests/conformance/tests/rules/offers.rs: startup_names_what_was_offered_and_no_more",
    ]),
    driver("T4", "connections with either extension may stand side by side", &[
        "tests/conformance/tests/rules/offers.rs: each_connection_agrees_by_itself",
        "tests/sim/tests/driver/mixed.rs: every_node_is_spoken_to_as_it_agreed",
        "tests/conformance/tests/rules/tablets.rs: what_the_first_extension_tells_has_no_version_and_no_leader",
        "core/src/routing/tablet_cache.rs: the_last_word_counts",
    ]),
    node("T5", "a wrong place costs nothing while the version is right", &[
        "tests/sim/tests/scenarios/routing.rs: v2_compares_one_nibble_of_the_version_and_nothing_else",
    ]),
    driver("T6", "staleness is found though every request still reaches a replica", &[
        "tests/sim/tests/driver/following.rs: any_four_bits_are_found_within_sixteen_requests",
    ]),
    driver("T7", "tablets of a table that was made anew, or whose keyspace changed, are forgotten", &[
        "core/src/routing/view_writer.rs: a_table_made_anew_is_another_one",
        "core/src/routing/view_writer.rs: changes_of_a_keyspace_forget_what_they_make_wrong",
        "core/src/cluster/tests/refresh.rs: a_table_that_was_made_anew_is_another_table",
    ]),
    driver("T8", "a replica on a host not heard of yet is passed over", &[
        "tests/scenario/tests/cases/tablets.rs: a_replica_on_an_unknown_host_is_used_when_the_host_is_known",
        "core/src/routing/planner/tests/leaders.rs: an_unresolved_leader_is_none_and_the_next_replica_is_not_taken_for_it",
        "core/src/routing/tablet_cache.rs: many_replicas_known_or_not_survive_neighbours",
    ]),
    // The leader.
    both("T9", "a keyspace is strongly consistent by its consistency, global", &[
        "core/src/cluster/found.rs: a_capture_of_scylla_keyspaces_tells_tablets_and_consistency",
        "core/src/cluster/tests/first_contact.rs: one_contact_point_leads_to_all_nodes",
        "tests/sim/tests/driver/strong.rs: texts_for_strong_tables_come_prepared",
        "tests/sim/tests/scenarios/routing.rs: levels_of_strongly_consistent_tables",
    ]),
    driver("T10", "reads at ONE and LOCAL_ONE go to any replica, all else to the leader", &[
        "core/src/routing/planner/tests/leaders.rs: the_leader_is_first_for_what_only_it_can_serve",
        "tests/conformance/tests/rules/tablets.rs: the_first_replica_leads_only_where_it_was_told_so",
    ]),
    node("T11", "writes at other levels than QUORUM and LOCAL_QUORUM are refused", &[
        "tests/sim/tests/scenarios/routing.rs: levels_of_strongly_consistent_tables",
    ]),
    driver("T12", "eventually consistent tables keep their order, whatever their replicas are", &[
        "core/src/routing/planner/tests/leaders.rs: the_leader_is_first_for_what_only_it_can_serve",
        "core/src/routing/planner/tests/load.rs: equal_replicas_share_evenly_and_the_less_loaded_of_two_wins",
    ]),
    driver("T13", "the leader comes before nearer replicas, but never against the policy", &[
        "core/src/routing/planner/tests/leaders.rs: the_leader_never_overrides_the_policy",
    ]),
    driver("T14", "without failover no request leaves the preferred data centre, to no leader either", &[
        "core/src/routing/planner/tests/leaders.rs: the_leader_never_overrides_the_policy",
        "core/src/routing/planner/tests/distance.rs: replicas_come_by_distance_then_other_nodes",
    ]),
    driver("T15", "a leader that is down or excluded is passed over", &[
        "core/src/routing/planner/tests/leaders.rs: the_leader_never_overrides_the_policy",
    ]),
    driver("T16", "only the leader is put first: behind it the order is the ordinary one", &[
        "core/src/routing/planner/tests/leaders.rs: behind_the_leader_stands_the_base_plan",
    ]),
    driver("T17", "going to the leader can be switched off", &[
        "core/src/routing/planner/tests/leaders.rs: the_leader_is_first_for_what_only_it_can_serve",
    ]),
    driver("T18", "a batch goes to the leader of its first statement", &[
        "tests/sim/tests/driver/batches.rs: a_batch_of_a_strongly_consistent_table_goes_to_its_leader",
    ]),
    // What drivers do beyond.
    driver("T19", "shard awareness can be switched off, as a whole or the port alone", &[
        "core/src/cluster/tests/pools.rs: shard_awareness_can_be_switched_off",
        "core/src/cluster/tests/pools.rs: the_shard_aware_port_alone_can_be_switched_off",
    ]),
    driver("T20", "whether shards are known, and which have a connection, can be asked", &[
        "core/src/cluster/tests/first_contact.rs: one_contact_point_leads_to_all_nodes",
        "core/src/cluster/tests/pools.rs: a_node_with_impossible_sharding_is_used_without_shards",
        "tests/sim/tests/driver/pools.rs: rewritten_source_ports_cost_no_request",
        "tests/sim/tests/driver/pools.rs: without_shards_nothing_is_counted",
    ]),
    both("T21", "a page may hold fewer rows than were asked for", &[
        "tests/scenario/tests/cases/paging.rs: reading_goes_on_over_empty_pages",
        "tests/sim/tests/scenarios/select.rs: a_page_ends_at_a_mebibyte",
    ]),
    // Metadata of results.
    driver("T22", "metadata is left out only with an id, with columns, and where this connection agreed", &[
        "tests/conformance/tests/rules/statements.rs: metadata_is_left_out_only_where_a_change_is_told",
        "tests/scenario/tests/cases/prepared.rs: without_metadata_ids_nothing_is_skipped",
        "tests/scenario/tests/cases/prepared.rs: the_skip_flag_is_worked_out_afresh_after_preparing_again",
    ]),
    both("T23", "changed metadata decodes the answer that it came with, and is kept with its id", &[
        "tests/conformance/tests/rules/statements.rs: changed_metadata_is_kept_with_its_id",
        "tests/scenario/tests/cases/prepared.rs: changed_columns_come_although_they_were_to_be_left_out",
        "tests/sim/tests/scenarios/conformance.rs: an_altered_table_unprepares_and_changes_the_metadata_id",
    ]),
    driver("T24", "a statement prepared without an id asks with an empty one and gets its id", &[
        "tests/scenario/tests/cases/metadata.rs: a_node_without_ids_changes_nothing_for_those_that_have_them",
        "tests/conformance/tests/rules/statements.rs: changed_metadata_is_kept_with_its_id",
        "tests/sim/tests/scenarios/conformance.rs: execute_bodies_and_the_flags_of_rows",
    ]),
    driver("T25", "statements without rows never leave metadata out", &[
        "tests/conformance/tests/rules/statements.rs: metadata_is_left_out_only_where_a_change_is_told",
    ]),
];
