//! CQL types and values.
