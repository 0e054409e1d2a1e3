//! One request, sans-IO: what it does, what to do after an attempt has failed, and where the next
//! page begins.

pub mod kind;
pub mod paging;
pub mod retry;
