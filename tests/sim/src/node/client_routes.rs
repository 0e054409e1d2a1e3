//! Routes of clients: other addresses by which a node is reached through some connection, such as
//! a private link. An operator sets them; clients read `system.client_routes` and hear of changes.

use std::collections::BTreeMap;

use super::cluster::{Cluster, ControlError};
use super::codec::Writer;
use super::connection::EventKind;

/// Routes that a cluster keeps.
const KEPT_MAX: usize = 10_000;

/// Which route: the connection's id and the node's host id.
pub(crate) type RouteKey = (String, [u8; 16]);

/// All routes, in the order in which events name them.
pub(crate) type ClientRoutes = BTreeMap<RouteKey, ClientRoute>;

/// Where a node is reached by way of one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientRoute {
    /// A name or an address.
    pub address: String,
    /// The port of plain CQL.
    pub port: Option<u16>,
    /// The port of CQL under TLS.
    pub tls_port: Option<u16>,
}

impl ClientRoute {
    /// A route to this address, without ports.
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            ..Self::default()
        }
    }
}

/// A change of one route: by connection id and node, a new form or none.
pub type ClientRouteChange = (String, usize, Option<ClientRoute>);

impl Cluster {
    /// Sets and removes routes of clients; all who registered hear of it, deletions alike. Refuses
    /// all changes if one cannot be.
    pub fn change_client_routes(
        &mut self,
        changes: Vec<ClientRouteChange>,
    ) -> Result<(), ControlError> {
        let refuse = |text: String| Err(ControlError(text));
        let mut accepted = BTreeMap::new();
        for (connection_id, node, route) in changes {
            let Some(host_id) = self.host_id(node) else {
                return refuse(format!("no node {node}"));
            };
            if connection_id.is_empty() {
                return refuse("a connection id must not be empty".to_owned());
            }
            if let Some(route) = &route {
                let ports = [route.port, route.tls_port];
                if ports.iter().flatten().any(|port| *port == 0) || ports == [None, None] {
                    return refuse("a route needs a port from 1 to 65535".to_owned());
                }
            }
            accepted.insert((connection_id, host_id), route);
        }
        if self.client_routes.len().saturating_add(accepted.len()) > KEPT_MAX {
            return refuse("too many routes".to_owned());
        }
        let keys: Vec<RouteKey> = accepted.keys().cloned().collect();
        for (key, route) in accepted {
            match route {
                Some(route) => self.client_routes.insert(key, route),
                None => self.client_routes.remove(&key),
            };
        }
        self.announce_client_routes(&keys);
        Ok(())
    }

    fn announce_client_routes(&mut self, keys: &[RouteKey]) {
        if keys.is_empty() {
            return;
        }
        let body = event(keys);
        for connection in self.connections.values_mut() {
            if connection.is_registered(EventKind::ClientRoutes) {
                connection.push_event(&body);
                self.touched.push(connection.id);
            }
        }
    }
}

/// The body of CLIENT_ROUTES_CHANGE: two lists that belong together index by index.
fn event(keys: &[RouteKey]) -> Writer {
    let hosts: Vec<String> = keys
        .iter()
        .map(|(_, host)| super::reply::dashed(host))
        .collect();
    let mut body = Writer::default();
    body.string("CLIENT_ROUTES_CHANGE");
    body.string("UPDATE_NODES");
    body.string_list(keys.iter().map(|(connection, _)| connection.as_str()));
    body.string_list(hosts.iter().map(String::as_str));
    body
}

#[cfg(test)]
mod tests {
    use super::super::value::{hex, unhex};
    use super::*;

    #[test]
    fn the_event_is_that_of_the_documents() {
        let host = |text: &str| unhex(text).try_into().unwrap();
        let body = event(&[
            (
                "conn-a".to_owned(),
                host("0102030405060708090a0b0c0d0e0f10"),
            ),
            (
                "conn-b".to_owned(),
                host("a1b2c3d4e5f647898abcdef012345678"),
            ),
        ]);
        let expected = unhex(
            "0014 434c49454e545f524f555445535f4348414e4745 000c 5550444154455f4e4f444553
             0002 0006 636f6e6e2d61 0006 636f6e6e2d62
             0002 0024 30313032303330342d303530362d303730382d303930612d306230633064306530663130
                  0024 61316232633364342d653566362d343738392d386162632d646566303132333435363738",
        );
        assert_eq!(body.as_slice().len(), 132);
        assert_eq!(hex(body.as_slice()), hex(&expected));
    }
}
