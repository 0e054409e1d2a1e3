//! A simulated ScyllaDB cluster.
