//! One request, sans-IO: what to do after an attempt has failed, and where the next page begins.

pub mod paging;
pub mod retry;
