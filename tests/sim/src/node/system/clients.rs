//! Rows about clients: `system.clients` of live connections, `system.client_routes` of routes.

use core::net::SocketAddr;

use super::super::cluster::Cluster;
use super::super::connection::{ClientTls, Connection, Stage};
use super::super::schema::Table;
use super::super::value::{boolean, inet, int, text, text_map};
use super::{Fill, Row, uuid};

/// A connection as `system.clients` shows it.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    node: usize,
    shard: u32,
    peer: SocketAddr,
    stage: Stage,
    version: u8,
    username: Option<String>,
    options: Vec<(String, String)>,
    tls: Option<ClientTls>,
}

impl Client {
    pub(crate) fn of(connection: &Connection) -> Self {
        Self {
            node: connection.node,
            shard: connection.shard,
            peer: connection.peer,
            stage: connection.stage,
            version: connection.version_or_newest(),
            username: connection.username.clone(),
            options: connection.client_options.clone(),
            tls: connection.tls.clone(),
        }
    }
}

/// The connections of a node, that which asks among them.
pub(super) fn clients(cluster: &Cluster, node: usize, table: &Table) -> Vec<Row> {
    let others = cluster.connections.values().map(Client::of);
    let mut clients: Vec<Client> = others
        .chain(cluster.serving.clone())
        .filter(|client| client.node == node)
        .collect();
    clients.sort_unstable_by_key(|client| client.peer);
    clients
        .iter()
        .map(|client| client_row(client, table))
        .collect()
}

fn client_row(client: &Client, table: &Table) -> Row {
    let option = |key: &str| {
        let found = client.options.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| text(value))
    };
    let stage = match client.stage {
        Stage::Initial => "ESTABLISHED",
        Stage::Authenticating => "AUTHENTICATING",
        Stage::Ready => "READY",
    };
    let mut options = client.options.clone();
    options.sort_unstable();
    let options = options
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    let tls = client.tls.as_ref();
    Fill::new(table)
        .set("address", inet(client.peer.ip()))
        .set("port", int(i32::from(client.peer.port())))
        .set("client_type", text("cql"))
        .set("connection_stage", text(stage))
        .set("driver_name", option("DRIVER_NAME"))
        .set("driver_version", option("DRIVER_VERSION"))
        .set("hostname", text(&client.peer.ip().to_string()))
        .set("protocol_version", int(i32::from(client.version)))
        .set("scheduling_group", text("sl:default"))
        .set("shard_id", int(i32::try_from(client.shard).unwrap_or(0)))
        .set("ssl_cipher_suite", tls.map(|tls| text(&tls.cipher_suite)))
        .set("ssl_enabled", boolean(tls.is_some()))
        .set("ssl_protocol", tls.map(|tls| text(&tls.protocol)))
        .set(
            "username",
            text(client.username.as_deref().unwrap_or("anonymous")),
        )
        .set("client_options", text_map(options))
        .done()
}

/// All routes; every node knows them.
pub(super) fn routes(cluster: &Cluster, table: &Table) -> Vec<Row> {
    let port = |port: Option<u16>| port.map(|port| int(i32::from(port)));
    let routes = cluster.client_routes.iter();
    routes
        .map(|((connection_id, host_id), route)| {
            Fill::new(table)
                .set("connection_id", text(connection_id))
                .set("host_id", uuid(host_id))
                .set("address", text(&route.address))
                .set("port", port(route.port))
                .set("tls_port", port(route.tls_port))
                .done()
        })
        .collect()
}
