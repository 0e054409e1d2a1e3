//! messina on tokio.
