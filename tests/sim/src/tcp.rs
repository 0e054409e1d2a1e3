//! The cluster on real sockets: node i on the i-th loopback address, two ports each, for any CQL
//! driver; and the control port.
//!
//! One lock holds the cluster; a task per connection moves bytes and never awaits under the lock.
//! A killed node's listeners are closed, so that connecting to it is refused.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::control;
use crate::node::{Cluster, ConnectionId, Listener, Options, Stats};

/// Connections that one listener serves at a time.
const CONNECTIONS_MAX: usize = 4096;

/// Bytes read at once.
const READ_LEN: usize = 64 << 10;

/// Longest line of the control port.
const CONTROL_LINE_MAX: u64 = 64 << 10;

/// How often a set of free ports is looked for.
const PORT_TRIES: usize = 64;

/// A running simulated cluster. Dropping it stops it at once.
#[derive(Debug)]
pub struct SimServer {
    handle: SimHandle,
    contacts: Vec<SocketAddr>,
    control: SocketAddr,
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
}

impl SimServer {
    /// Binds all ports and serves. A port of 0 in the options is replaced by one that is free on
    /// all addresses. Must be called in a tokio runtime with IO and time enabled.
    pub async fn start(mut options: Options) -> io::Result<Self> {
        let addresses: Vec<_> = (0..options.nodes.len())
            .map(|at| options.address(at))
            .collect();
        let mut bound = Vec::new();
        let (port, listeners) = bind_all(&addresses, options.port).await?;
        options.port = port;
        bound.extend(
            listeners
                .into_iter()
                .map(|listener| (Listener::Regular, listener)),
        );
        if let Some(wanted) = options.shard_aware_port {
            let (port, listeners) = bind_all(&addresses, wanted).await?;
            options.shard_aware_port = Some(port);
            bound.extend(
                listeners
                    .into_iter()
                    .map(|listener| (Listener::ShardAware, listener)),
            );
        }
        let control_listener = TcpListener::bind((options.base_address, 0)).await?;
        let control = control_listener.local_addr()?;
        let contacts = addresses
            .iter()
            .map(|address| SocketAddr::new(*address, port))
            .collect();
        let (stop, stopped) = watch::channel(false);
        let handle = SimHandle {
            shared: Arc::new(Shared::new(Cluster::new(options))),
        };
        let mut tasks = JoinSet::new();
        let count = addresses.len();
        for (at, (kind, listener)) in bound.into_iter().enumerate() {
            tasks.spawn(listen(
                handle.clone(),
                at % count,
                kind,
                listener,
                stopped.clone(),
            ));
        }
        tasks.spawn(listen_control(handle.clone(), control_listener, stopped));
        Ok(Self {
            handle,
            contacts,
            control,
            tasks,
            stop,
        })
    }

    /// Where drivers connect: the regular port of every node.
    pub fn contacts(&self) -> &[SocketAddr] {
        &self.contacts
    }

    /// The address of the control port.
    pub fn control(&self) -> SocketAddr {
        self.control
    }

    /// A handle to look into the cluster and to change it.
    pub fn handle(&self) -> SimHandle {
        self.handle.clone()
    }

    /// The nodes' counters.
    pub fn stats(&self) -> Stats {
        self.handle.stats()
    }

    /// Stops: listeners close, connections are told to end, what does not is aborted.
    pub async fn stop(mut self) {
        // Nobody listening any more is fine too.
        let _ = self.stop.send(true);
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(Duration::from_secs(2), all)
            .await
            .is_err()
        {
            self.tasks.shutdown().await;
        }
    }
}

/// Access to a running cluster; cheap to clone.
#[derive(Clone, Debug)]
pub struct SimHandle {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    cluster: Mutex<Cluster>,
    wakers: Mutex<HashMap<ConnectionId, Arc<Notify>>>,
    /// Bumped after every change from outside, so that listeners look whether their node lives.
    changes: watch::Sender<u64>,
    started: Instant,
    epoch_micros: i64,
}

impl Shared {
    fn new(cluster: Cluster) -> Self {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            cluster: Mutex::new(cluster),
            wakers: Mutex::default(),
            changes: watch::Sender::new(0),
            started: Instant::now(),
            epoch_micros: i64::try_from(since.as_micros()).unwrap_or(0),
        }
    }

    fn now(&self) -> i64 {
        let passed = i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX);
        self.epoch_micros.saturating_add(passed)
    }

    /// Runs `change` under the lock, then wakes whoever it gave output.
    fn with<R>(&self, change: impl FnOnce(&mut Cluster, i64) -> R) -> R {
        let (result, touched) = {
            let mut cluster = self.cluster.lock().unwrap_or_else(PoisonError::into_inner);
            let result = change(&mut cluster, self.now());
            (result, cluster.take_touched())
        };
        if !touched.is_empty() {
            let wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
            for id in touched {
                if let Some(waker) = wakers.get(&id) {
                    waker.notify_one();
                }
            }
        }
        result
    }
}

impl SimHandle {
    /// Looks into the cluster or changes it. `change` must not block.
    pub fn with<R>(&self, change: impl FnOnce(&mut Cluster) -> R) -> R {
        let result = self.shared.with(|cluster, _| change(cluster));
        self.shared
            .changes
            .send_modify(|count| *count = count.wrapping_add(1));
        result
    }

    /// The nodes' counters.
    pub fn stats(&self) -> Stats {
        self.shared.with(|cluster, _| cluster.stats())
    }

    /// Sets the nodes' counters to zero.
    pub fn reset_stats(&self) {
        self.shared.with(|cluster, _| cluster.reset_stats());
    }

    /// One line of the control protocol.
    pub fn control(&self, line: &str) -> String {
        self.with(|cluster| control::handle(cluster, line))
    }
}

/// Waits until the server is told to stop, or is gone.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error says that the server was dropped, which is the end as well.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Listeners on the same port of every address; 0 looks for such a port.
async fn bind_all(
    addresses: &[core::net::IpAddr],
    port: u16,
) -> io::Result<(u16, Vec<TcpListener>)> {
    let tries = if port == 0 { PORT_TRIES } else { 1 };
    let mut last = io::Error::new(io::ErrorKind::InvalidInput, "a cluster needs a node");
    for _ in 0..tries {
        match bind_once(addresses, port).await {
            Ok(found) => return Ok(found),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn bind_once(
    addresses: &[core::net::IpAddr],
    mut port: u16,
) -> io::Result<(u16, Vec<TcpListener>)> {
    let mut listeners = Vec::new();
    for address in addresses {
        let listener = TcpListener::bind((*address, port)).await?;
        port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    if listeners.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a cluster needs a node",
        ));
    }
    Ok((port, listeners))
}

/// Accepts for one node while it lives; closes the port while it does not.
async fn listen(
    handle: SimHandle,
    node: usize,
    kind: Listener,
    listener: TcpListener,
    mut stop: watch::Receiver<bool>,
) {
    let Ok(address) = listener.local_addr() else {
        return;
    };
    let mut changes = handle.shared.changes.subscribe();
    let theirs = stop.clone();
    let mut listener = Some(listener);
    let mut connections = JoinSet::new();
    loop {
        let alive = handle.shared.with(|cluster, _| cluster.is_alive(node));
        if !alive {
            listener = None;
        } else if listener.is_none() {
            listener = TcpListener::bind(address).await.ok();
            if listener.is_none() {
                // Somebody sits on the port; look again soon.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        let accepted = async {
            match &listener {
                Some(listener) => listener.accept().await,
                None => core::future::pending().await,
            }
        };
        tokio::select! {
            result = accepted => match result {
                Ok((stream, peer)) if connections.len() < CONNECTIONS_MAX => {
                    let id = handle.shared.with(|cluster, now| {
                        cluster.accept(node, kind, peer, now)
                    });
                    if let Some(id) = id {
                        connections.spawn(serve(handle.clone(), id, stream, theirs.clone()));
                    }
                }
                Ok(_) => {}
                // Out of file descriptors or the like: do not spin.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            },
            _ = changes.changed() => {}
            Some(_) = connections.join_next() => {}
            () = stopped(&mut stop) => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Forgets a connection however its task ends.
struct Registration {
    shared: Arc<Shared>,
    id: ConnectionId,
    waker: Arc<Notify>,
}

impl Registration {
    fn new(shared: Arc<Shared>, id: ConnectionId) -> Self {
        let waker = Arc::new(Notify::new());
        let mut wakers = shared.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        wakers.insert(id, Arc::clone(&waker));
        drop(wakers);
        Self { shared, id, waker }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut wakers = self
            .shared
            .wakers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        wakers.remove(&self.id);
        drop(wakers);
        self.shared.with(|cluster, _| cluster.disconnect(self.id));
    }
}

async fn serve(
    handle: SimHandle,
    id: ConnectionId,
    mut stream: TcpStream,
    mut stop: watch::Receiver<bool>,
) {
    let shared = Arc::clone(&handle.shared);
    let registration = Registration::new(Arc::clone(&shared), id);
    // Best effort: it only changes latency.
    let _ = stream.set_nodelay(true);
    let mut input = vec![0; READ_LEN];
    loop {
        let (output, due, closed, now) = shared.with(|cluster, now| {
            let output = cluster.take_output(id, now);
            (
                output,
                cluster.next_output_at(id),
                cluster.is_closed(id),
                now,
            )
        });
        if !output.is_empty() {
            let written = tokio::select! {
                written = stream.write_all(&output) => written,
                () = stopped(&mut stop) => break,
            };
            if written.is_err() {
                break;
            }
        }
        if closed && due.is_none() {
            break;
        }
        let wait = due.map(|due| u64::try_from(due.saturating_sub(now)).unwrap_or(0));
        let timer = tokio::time::sleep(Duration::from_micros(wait.unwrap_or(0)));
        tokio::select! {
            read = stream.read(&mut input), if !closed => match read {
                Ok(len) if len > 0 => {
                    shared.with(|cluster, now| cluster.feed(id, &input[..len], now));
                }
                _ => break,
            },
            () = registration.waker.notified() => {}
            () = timer, if wait.is_some() => {}
            () = stopped(&mut stop) => break,
        }
    }
    // The peer may be gone already.
    let _ = stream.shutdown().await;
}

async fn listen_control(handle: SimHandle, listener: TcpListener, mut stop: watch::Receiver<bool>) {
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            result = listener.accept() => match result {
                Ok((stream, _)) if clients.len() < CONNECTIONS_MAX => {
                    clients.spawn(serve_control(handle.clone(), stream));
                }
                Ok(_) => {}
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            },
            Some(_) = clients.join_next() => {}
            () = stopped(&mut stop) => break,
        }
    }
}

async fn serve_control(handle: SimHandle, mut stream: TcpStream) {
    let (reader, mut writer) = stream.split();
    let mut reader = BufReader::new(reader);
    let mut line = String::new();
    loop {
        line.clear();
        let mut limited = (&mut reader).take(CONTROL_LINE_MAX);
        match limited.read_line(&mut line).await {
            Ok(len) if len > 0 && line.ends_with('\n') => {}
            _ => return,
        }
        let mut answer = handle.control(&line);
        answer.push('\n');
        if writer.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}
