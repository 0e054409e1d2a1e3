//! The web server: the page's files, the package's files, the nodes' state and the page's commands.
//!
//! It is there for one browser on this machine. Names are checked, so that a foreign page whose host name was pointed
//! here reads nothing; and commands come as JSON from the page's own origin only, so that no foreign page sends any.

use core::net::SocketAddr;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path as Named, Query, Request, State};
use axum::http::header::InvalidHeaderValue;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use messina_sim::tcp::{SimHandle, SimServer};
use serde_json::{Value, json};

use crate::relay::Signer;
use crate::{control, package, tables};

/// What the handlers share.
#[derive(Debug)]
pub(crate) struct Pages {
    cluster: SimHandle,
    /// Names by which a browser may call this server.
    hosts: [String; 2],
    settings: Value,
    signer: Signer,
    policy: HeaderValue,
}

impl Pages {
    pub(crate) fn new(
        address: SocketAddr,
        server: &SimServer,
        relay: SocketAddr,
        signer: Signer,
    ) -> Result<Self, InvalidHeaderValue> {
        let (cluster, contacts) = (server.handle(), server.contacts());
        let port = address.port();
        let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        let nodes: Vec<_> = cluster.with(|cluster| {
            let options = cluster.options();
            let nodes = options.nodes.iter().zip(contacts).enumerate();
            nodes
                .map(|(at, (node, contact))| {
                    let id = cluster.host_id(at).map(uuid::Uuid::from_bytes);
                    json!({
                        "contact": contact.to_string(),
                        "host_id": id.map(|id| id.to_string()),
                        "datacenter": node.datacenter,
                        "rack": node.rack,
                        "shards": node.shards,
                    })
                })
                .collect()
        });
        let policy = format!(
            "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self' ws://{relay}; \
             frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
        );
        Ok(Self {
            cluster,
            hosts,
            settings: json!({
                "nodes": nodes,
                "relay": format!("ws://{relay}/cql"),
                "keys": tables::KEYS,
            }),
            signer,
            policy: HeaderValue::try_from(policy)?,
        })
    }
}

pub(crate) fn router(pages: Arc<Pages>) -> Router {
    Router::new()
        .route("/", get(|| file(folder(), "index.html".to_owned())))
        .route(
            "/{name}",
            get(|Named(name): Named<String>| file(folder(), name)),
        )
        .route(
            "/messina/{name}",
            get(|Named(name): Named<String>| file(package::dist(), name)),
        )
        .route(
            "/messina/browser/{name}",
            get(|Named(name): Named<String>| file(package::dist().join("browser"), name)),
        )
        .route("/settings", get(settings))
        .route("/token", get(token))
        .route("/state", get(state))
        .route("/control", post(command))
        .layer(from_fn_with_state(Arc::clone(&pages), guard))
        .with_state(pages)
}

/// Turns away who calls this server by a foreign name, and says what the page may load.
async fn guard(State(pages): State<Arc<Pages>>, request: Request, next: Next) -> Response {
    let host = request
        .headers()
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    if !host.is_some_and(|host| pages.hosts.iter().any(|known| known == host)) {
        return (
            StatusCode::FORBIDDEN,
            "this server is for 127.0.0.1 alone\n",
        )
            .into_response();
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, pages.policy.clone());
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn settings(State(pages): State<Arc<Pages>>) -> Json<Value> {
    Json(pages.settings.clone())
}

/// For one WebSocket; a page asks anew for each. Pages of others cannot read the answer.
async fn token(State(pages): State<Arc<Pages>>) -> String {
    pages.signer.token()
}

async fn state(
    State(pages): State<Arc<Pages>>,
    Query(query): Query<HashMap<String, String>>,
) -> Json<Value> {
    let part = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
    Json(control::state(
        &pages.cluster,
        part("keyspace"),
        part("table"),
    ))
}

async fn command(State(pages): State<Arc<Pages>>, headers: HeaderMap, body: Bytes) -> Response {
    let origin = headers
        .get(header::ORIGIN)
        .and_then(|origin| origin.to_str().ok());
    let is_own = origin
        .and_then(|origin| origin.strip_prefix("http://"))
        .is_some_and(|origin| pages.hosts.iter().any(|known| known == origin));
    if !is_own {
        return (StatusCode::FORBIDDEN, "commands come from the page alone\n").into_response();
    }
    match serde_json::from_slice(&body) {
        Ok(command) => Json(control::carry_out(&pages.cluster, &command)).into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, format!("not JSON: {error}\n")).into_response(),
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("page")
}

/// A file right in `folder`.
async fn file(folder: PathBuf, name: String) -> Response {
    let kind = name.rsplit_once('.').and_then(|(_, end)| match end {
        "html" => Some("text/html; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "js" => Some("text/javascript; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        "wasm" => Some("application/wasm"),
        _ => None,
    });
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if let Some(kind) = kind.filter(|_| name.chars().all(is_plain))
        && let Ok(content) = tokio::fs::read(folder.join(name)).await
    {
        return ([(header::CONTENT_TYPE, kind)], content).into_response();
    }
    (StatusCode::NOT_FOUND, "no such file\n").into_response()
}
