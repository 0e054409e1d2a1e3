//! Checks on the tree itself.
