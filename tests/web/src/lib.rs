//! Checks of the links on the web, called by `run.mjs` in a JavaScript host. Empty elsewhere.
#![forbid(unsafe_code)]
#![cfg(target_family = "wasm")]

use core::future::poll_fn;
use core::time::Duration;

use bytes::BytesMut;
use messina_core::config::Config;
use messina_core::drive::{Clock, Endpoint, Link, Target, Timer, Transport};
use messina_core::testing::link_contract;
use messina_core::time::Instant;
use messina_websocket::web::{Protocol, Relay, WebSocketLink, WebSocketTransport, connect};
use wasm_bindgen::prelude::{JsError, wasm_bindgen};

type Outcome = Result<String, JsError>;

fn told(error: impl core::fmt::Display) -> JsError {
    JsError::new(&error.to_string())
}

fn plain(url: &str) -> WebSocketTransport {
    WebSocketTransport::new(Relay::new(url).protocol(Protocol::Cql).token("a.b?"))
}

fn target() -> Target {
    let endpoint = Endpoint::Name {
        host: "node".into(),
        port: 9042,
    };
    Target::new(endpoint, Instant::FAR_FUTURE)
}

async fn read(link: &mut WebSocketLink) -> Result<usize, String> {
    let mut into = BytesMut::with_capacity(100);
    let read = poll_fn(|cx| link.poll_read(cx, &mut into)).await;
    read.map_err(|error| error.to_string())
}

/// The timer is never early, nor very late, and may be armed anew.
#[wasm_bindgen]
pub async fn timer(url: String) -> Outcome {
    let transport = plain(&url);
    let (mut timer, clock) = (transport.timer(), transport.clock());
    let start = clock.now();
    for millis in [300_000, 30, 5] {
        timer.arm(Some(start.saturating_add(Duration::from_millis(millis))));
        let mut is_first = true;
        let wait = poll_fn(|cx| {
            let fired = timer.poll_fired(cx);
            let is_over = millis > 1000 && !core::mem::take(&mut is_first);
            match fired.is_ready() || is_over || millis > 1000 {
                true => core::task::Poll::Ready(()),
                false => core::task::Poll::Pending,
            }
        });
        wait.await;
    }
    let passed = clock.now().saturating_since(start);
    if passed < Duration::from_millis(30) || passed > Duration::from_secs(5) {
        return Err(JsError::new(&format!("fired after {passed:?}")));
    }
    if clock
        .wall_clock()
        .is_none_or(|wall| wall.0 < 1_700_000_000_000_000)
    {
        return Err(JsError::new("no wall clock"));
    }
    Ok("never early".to_owned())
}

/// The contract of links, a WebSocket for the link.
#[wasm_bindgen]
pub async fn plain_contract(url: String) -> Outcome {
    let link = plain(&url).connect(target()).await.map_err(told)?;
    link_contract(link).await.map_err(told)?;
    Ok("kept".to_owned())
}

/// The contract of links, three channels of one WebSocket at once.
#[wasm_bindgen]
pub async fn mux_contract(url: String) -> Outcome {
    let (mux, pump) = WebSocketTransport::new(Relay::new(&url)).into_mux();
    wasm_bindgen_futures::spawn_local(pump);
    let links = [(); 3].map(|()| mux.connect(target()));
    let (left, done) = (
        std::rc::Rc::new(std::cell::Cell::new(3)),
        js_sys::Array::new(),
    );
    for link in links {
        let (left, done) = (std::rc::Rc::clone(&left), done.clone());
        wasm_bindgen_futures::spawn_local(async move {
            let outcome = match link.await {
                Ok(link) => link_contract(link).await,
                Err(error) => Err(error.to_string()),
            };
            done.push(&outcome.err().unwrap_or_default().into());
            left.set(left.get() - 1);
        });
    }
    let mut timer = mux.timer();
    while left.get() > 0 {
        let soon = mux.clock().now().saturating_add(Duration::from_millis(5));
        timer.arm(Some(soon));
        poll_fn(|cx| timer.poll_fired(cx)).await;
    }
    let problems = done.join("");
    match problems.length() {
        0 => Ok("kept by three".to_owned()),
        _ => Err(JsError::new(&String::from(problems))),
    }
}

/// Writes until the socket takes no more, while the far end does not read; then it must go on.
#[wasm_bindgen]
pub async fn slow_reader(url: String) -> Outcome {
    let transport = plain(&url);
    let mut link = transport.connect(target()).await.map_err(told)?;
    let (bytes, mut taken) = (vec![7; 100_000], 0_usize);
    let cx = &mut core::task::Context::from_waker(core::task::Waker::noop());
    while let core::task::Poll::Ready(written) = link.poll_write(cx, &bytes) {
        taken += written.map_err(told)?;
        if taken > 1 << 20 {
            return Err(JsError::new("more than a megabyte was taken"));
        }
    }
    for _ in 0..100 {
        poll_fn(|cx| link.poll_write(cx, &bytes))
            .await
            .map_err(told)?;
    }
    Ok(format!("{taken} bytes, then it waited"))
}

/// What a link tells when the far end sends text, closes with a reason, or is not there.
#[wasm_bindgen]
pub async fn failure(url: String) -> Outcome {
    let mut link = match plain(&url).connect(target()).await {
        Ok(link) => link,
        Err(error) => return Ok(error.to_string()),
    };
    loop {
        match read(&mut link).await {
            Ok(0) => return Ok("end".to_owned()),
            Ok(_) => {}
            Err(text) => return Ok(text),
        }
    }
}

/// A whole session: writes rows and reads them back.
#[wasm_bindgen]
pub async fn session(url: String, node: String, is_mux: bool, token: Option<String>) -> Outcome {
    let mut config = Config::server();
    config.add_contact_points(&node).map_err(told)?;
    let protocol = if is_mux { Protocol::Mux } else { Protocol::Cql };
    let mut relay = Relay::new(&url).protocol(protocol);
    if let Some(token) = token {
        relay = relay.token(token);
    }
    let session = connect(config, relay).await.map_err(told)?;
    let keyspace = "CREATE KEYSPACE IF NOT EXISTS web WITH replication = \
                    {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}";
    session.query(keyspace, ()).await.map_err(told)?;
    let table = "CREATE TABLE IF NOT EXISTS web.t (k int PRIMARY KEY, v blob)";
    session.query(table, ()).await.map_err(told)?;
    let insert = session.prepare("INSERT INTO web.t (k, v) VALUES (?, ?)");
    let insert = insert.await.map_err(told)?;
    let select = session.prepare("SELECT v FROM web.t WHERE k = ?");
    let select = select.await.map_err(told)?;
    let value = |key: i32| vec![key as u8; if key % 7 == 0 { 70 << 10 } else { 10 }];
    for key in 0..40 {
        let written = session.execute(&insert, (key, value(key)));
        written.await.map_err(told)?;
    }
    for key in 0..40 {
        let result = session.execute(&select, (key,)).await.map_err(told)?;
        let row = result.single_row::<(Vec<u8>,)>().map_err(told)?;
        if row.0 != value(key) {
            return Err(JsError::new("another row came"));
        }
    }
    session.close().await;
    Ok("40 rows".to_owned())
}
