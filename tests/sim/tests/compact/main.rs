//! The one-owner driver (`core::compact`) on links under virtual time: what it does when nodes,
//! tablets and statements come and go.

mod basics;
mod pools;
mod routing;
mod scene;
mod troubles;
