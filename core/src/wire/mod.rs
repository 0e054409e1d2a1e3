//! Bytes to structures and back; no state, no allocation when borrowing.
