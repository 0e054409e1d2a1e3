//! The system tables as CQL text, with the columns of a ScyllaDB node.

pub(super) const TABLES: &[&str] = &[
    "CREATE TABLE system.local (key text PRIMARY KEY, bootstrapped text, broadcast_address inet, \
     cluster_name text, cql_version text, data_center text, gossip_generation int, host_id uuid, \
     listen_address inet, native_protocol_version text, partitioner text, rack text, \
     release_version text, rpc_address inet, schema_version uuid, supported_features text, \
     tokens set<text>, truncated_at map<uuid, blob>)",
    "CREATE TABLE system.peers (peer inet PRIMARY KEY, data_center text, host_id uuid, \
     preferred_ip inet, rack text, release_version text, rpc_address inet, schema_version uuid, \
     supported_features text, tokens set<text>)",
    "CREATE TABLE system.versions (key text PRIMARY KEY, version text, build_mode text, \
     build_id text)",
    "CREATE TABLE system.clients (address inet, port int, client_type text, \
     connection_stage text, driver_name text, driver_version text, hostname text, \
     protocol_version int, scheduling_group text, shard_id int, ssl_cipher_suite text, \
     ssl_enabled boolean, ssl_protocol text, username text, \
     client_options frozen<map<text, text>>, PRIMARY KEY (address, port, client_type))",
    "CREATE TABLE system.cluster_status (peer inet PRIMARY KEY, dc text, host_id uuid, load text, \
     owns float, status text, tokens int, up boolean, draining boolean, excluded boolean, \
     rack text)",
    "CREATE TABLE system.client_routes (connection_id text, host_id uuid, address text, port int, \
     tls_port int, alternator_port int, alternator_https_port int, \
     PRIMARY KEY (connection_id, host_id))",
    "CREATE TABLE system_schema.keyspaces (keyspace_name text PRIMARY KEY, \
     durable_writes boolean, replication frozen<map<text, text>>, \
     replication_v2 frozen<map<text, text>>, next_replication frozen<map<text, text>>)",
    "CREATE TABLE system_schema.scylla_keyspaces (keyspace_name text PRIMARY KEY, \
     storage_type text, storage_options frozen<map<text, text>>, initial_tablets int, \
     consistency text)",
    "CREATE TABLE system_schema.tables (keyspace_name text, table_name text, \
     bloom_filter_fp_chance double, caching frozen<map<text, text>>, comment text, \
     compaction frozen<map<text, text>>, compression frozen<map<text, text>>, \
     crc_check_chance double, dclocal_read_repair_chance double, default_time_to_live int, \
     extensions frozen<map<text, blob>>, flags frozen<set<text>>, gc_grace_seconds int, id uuid, \
     max_index_interval int, memtable_flush_period_in_ms int, min_index_interval int, \
     read_repair_chance double, speculative_retry text, PRIMARY KEY (keyspace_name, table_name))",
    "CREATE TABLE system_schema.scylla_tables (keyspace_name text, table_name text, version uuid, \
     cdc frozen<map<text, text>>, partitioner text, in_memory boolean, \
     committed_by_group0 boolean, tablets frozen<map<text, text>>, storage_engine text, \
     large_data_guardrails_enabled boolean, PRIMARY KEY (keyspace_name, table_name))",
    "CREATE TABLE system_schema.columns (keyspace_name text, table_name text, column_name text, \
     clustering_order text, column_name_bytes blob, kind text, position int, type text, \
     PRIMARY KEY (keyspace_name, table_name, column_name))",
    "CREATE TABLE system_schema.views (keyspace_name text, view_name text, base_table_id uuid, \
     base_table_name text, bloom_filter_fp_chance double, caching frozen<map<text, text>>, \
     comment text, compaction frozen<map<text, text>>, compression frozen<map<text, text>>, \
     crc_check_chance double, dclocal_read_repair_chance double, default_time_to_live int, \
     extensions frozen<map<text, blob>>, gc_grace_seconds int, id uuid, \
     include_all_columns boolean, max_index_interval int, memtable_flush_period_in_ms int, \
     min_index_interval int, read_repair_chance double, speculative_retry text, \
     where_clause text, PRIMARY KEY (keyspace_name, view_name))",
    "CREATE TABLE system_schema.indexes (keyspace_name text, table_name text, index_name text, \
     kind text, options frozen<map<text, text>>, \
     PRIMARY KEY (keyspace_name, table_name, index_name))",
    "CREATE TABLE system_schema.types (keyspace_name text, type_name text, \
     field_names frozen<list<text>>, field_types frozen<list<text>>, \
     PRIMARY KEY (keyspace_name, type_name))",
    "CREATE TABLE system_schema.functions (keyspace_name text, function_name text, \
     argument_types frozen<list<text>>, argument_names frozen<list<text>>, body text, \
     called_on_null_input boolean, language text, return_type text, \
     PRIMARY KEY (keyspace_name, function_name))",
    "CREATE TABLE system_schema.aggregates (keyspace_name text, aggregate_name text, \
     argument_types frozen<list<text>>, final_func text, initcond text, return_type text, \
     state_func text, state_type text, PRIMARY KEY (keyspace_name, aggregate_name))",
    "CREATE TABLE system_schema.scylla_aggregates (keyspace_name text, aggregate_name text, \
     argument_types frozen<list<text>>, reduce_func text, state_type text, \
     PRIMARY KEY (keyspace_name, aggregate_name))",
    "CREATE TABLE system_schema.triggers (keyspace_name text, table_name text, \
     trigger_name text, options frozen<map<text, text>>, \
     PRIMARY KEY (keyspace_name, table_name, trigger_name))",
    "CREATE TABLE system_schema.dropped_columns (keyspace_name text, table_name text, \
     column_name text, dropped_time timestamp, type text, \
     PRIMARY KEY (keyspace_name, table_name, column_name))",
    "CREATE TABLE system_schema.computed_columns (keyspace_name text, table_name text, \
     column_name text, computation blob, PRIMARY KEY (keyspace_name, table_name, column_name))",
    "CREATE TABLE system_schema.view_virtual_columns (keyspace_name text, view_name text, \
     column_name text, clustering_order text, column_name_bytes blob, kind text, position int, \
     type text, PRIMARY KEY (keyspace_name, view_name, column_name))",
    "CREATE TABLE system_traces.sessions (session_id uuid PRIMARY KEY, client inet, command text, \
     coordinator inet, duration int, parameters map<text, text>, request text, \
     request_size int, response_size int, started_at timestamp, username text)",
    "CREATE TABLE system_traces.events (session_id uuid, event_id timeuuid, activity text, \
     scylla_parent_id bigint, scylla_span_id bigint, source inet, source_elapsed int, \
     thread text, PRIMARY KEY (session_id, event_id))",
];
