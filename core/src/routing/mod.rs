//! Where a request should go: tokens, shards, tablets, the vnode ring and the planner.
