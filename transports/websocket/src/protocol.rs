//! What a session speaks through WebSockets, whatever makes them.

/// What is spoken through the WebSocket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// All connections through one WebSocket: [`CQL_MUX`](crate::CQL_MUX).
    #[default]
    Mux,
    /// A WebSocket for each connection: [`CQL`](crate::CQL). Endpoints other than messina's relay
    /// speak this; which node they lead to is then their own affair.
    Cql,
}
