//! One request, sans-IO: what follows when an attempt has failed, and where the next page begins.

pub mod paging;
pub mod retry;
