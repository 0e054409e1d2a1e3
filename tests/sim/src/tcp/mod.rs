//! The cluster on real sockets: node i on the i-th loopback address, two ports each, for any CQL
//! driver; and the control port. With feature `tls` ports can speak TLS, see [`TlsOptions`].
//!
//! One lock holds the cluster; a task per connection moves bytes and never awaits under the lock.
//! A killed node's listeners are closed, so that connecting to it is refused.

mod bind;
mod connection;
mod control_port;
mod listen;
#[cfg(feature = "tls")]
mod tls;

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::control;
use crate::node::{Cluster, ConnectionId, Listener, Options, Stats};

use bind::bind_all;
use control_port::listen_control;
use listen::{Port, listen};
#[cfg(feature = "tls")]
pub use tls::{TlsOptions, TlsPorts};

/// Connections that one listener serves at a time.
const CONNECTIONS_MAX: usize = 4096;

/// A running simulated cluster. Dropping it stops it at once.
#[derive(Debug)]
pub struct SimServer {
    handle: SimHandle,
    contacts: Vec<SocketAddr>,
    control: SocketAddr,
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
    #[cfg(feature = "tls")]
    certificates: Option<Box<tls::Certificates>>,
}

impl SimServer {
    /// Binds all ports and serves. A port of 0 in the options is replaced by one that is free on
    /// all addresses. Must be called in a tokio runtime with IO and time enabled.
    pub async fn start(options: Options) -> io::Result<Self> {
        let mut starting = Starting::new(options);
        starting.bind_plain().await?;
        starting.serve().await
    }

    /// The same with TLS on the ports that `tls` says.
    #[cfg(feature = "tls")]
    pub async fn start_tls(options: Options, tls: TlsOptions) -> io::Result<Self> {
        let mut starting = Starting::new(options);
        let certificates = tls::Certificates::new(&tls, &starting.addresses)?;
        let acceptor = certificates.acceptor()?;
        starting.bind_plain().await?;
        match tls.ports {
            TlsPorts::Instead => starting.turn_to_tls(&acceptor),
            TlsPorts::Beside {
                port,
                shard_aware_port,
            } => {
                starting.bind_tls(&acceptor, port, shard_aware_port).await?;
            }
        }
        let mut server = starting.serve().await?;
        server.certificates = Some(Box::new(certificates));
        Ok(server)
    }

    /// Where drivers connect: the regular port of every node.
    pub fn contacts(&self) -> &[SocketAddr] {
        &self.contacts
    }

    /// Where drivers connect by TLS: the TLS port of every node; empty if there is none.
    pub fn tls_contacts(&self) -> Vec<SocketAddr> {
        let port = self.handle.with(|cluster| cluster.options().tls_port);
        let contacts = self.contacts.iter().zip(port.into_iter().cycle());
        contacts
            .map(|(contact, port)| SocketAddr::new(contact.ip(), port))
            .collect()
    }

    /// The certificate authority that was made for the nodes, as PEM text.
    #[cfg(feature = "tls")]
    pub fn ca_pem(&self) -> Option<&str> {
        self.certificates.as_ref()?.ca_pem()
    }

    /// A certificate for a client and its key, signed by the same authority, as PEM texts.
    #[cfg(feature = "tls")]
    pub fn client_pem(&self) -> Option<(String, String)> {
        self.certificates.as_ref()?.client_pem()
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

/// A server whose ports are being bound.
struct Starting {
    options: Options,
    addresses: Vec<IpAddr>,
    bound: Vec<(Port, TcpListener)>,
}

impl Starting {
    fn new(options: Options) -> Self {
        let addresses = (0..options.nodes.len()).map(|at| options.address(at));
        Self {
            addresses: addresses.collect(),
            options,
            bound: Vec::new(),
        }
    }

    /// Binds one port on every node's address.
    async fn bind(&mut self, kind: Listener, wanted: u16) -> io::Result<u16> {
        let (port, listeners) = bind_all(&self.addresses, wanted).await?;
        for (node, listener) in listeners.into_iter().enumerate() {
            let place = Port {
                node,
                kind,
                #[cfg(feature = "tls")]
                acceptor: None,
            };
            self.bound.push((place, listener));
        }
        Ok(port)
    }

    async fn bind_plain(&mut self) -> io::Result<()> {
        self.options.port = self.bind(Listener::Regular, self.options.port).await?;
        if let Some(wanted) = self.options.shard_aware_port {
            self.options.shard_aware_port = Some(self.bind(Listener::ShardAware, wanted).await?);
        }
        Ok(())
    }

    /// All that is bound speaks TLS: the plain numbers and those of TLS are the same.
    #[cfg(feature = "tls")]
    fn turn_to_tls(&mut self, acceptor: &tls::Acceptor) {
        self.options.tls_port = Some(self.options.port);
        self.options.shard_aware_tls_port = self.options.shard_aware_port;
        for (port, _) in &mut self.bound {
            port.kind = port.kind.with_tls();
            port.acceptor = Some(acceptor.clone());
        }
    }

    #[cfg(feature = "tls")]
    async fn bind_tls(
        &mut self,
        acceptor: &tls::Acceptor,
        port: u16,
        shard_aware_port: Option<u16>,
    ) -> io::Result<()> {
        let plain = self.bound.len();
        self.options.tls_port = Some(self.bind(Listener::RegularTls, port).await?);
        self.options.shard_aware_tls_port = match shard_aware_port {
            Some(port) => Some(self.bind(Listener::ShardAwareTls, port).await?),
            None => None,
        };
        for (port, _) in self.bound.iter_mut().skip(plain) {
            port.acceptor = Some(acceptor.clone());
        }
        Ok(())
    }

    async fn serve(self) -> io::Result<SimServer> {
        let control_listener = TcpListener::bind((self.options.base_address, 0)).await?;
        let control = control_listener.local_addr()?;
        let port = self.options.port;
        let contacts = self.addresses.iter();
        let contacts = contacts.map(|address| SocketAddr::new(*address, port));
        let contacts = contacts.collect();
        let (stop, stopped) = watch::channel(false);
        let handle = SimHandle {
            shared: Arc::new(Shared::new(Cluster::new(self.options))),
        };
        let mut tasks = JoinSet::new();
        for (port, listener) in self.bound {
            tasks.spawn(listen(handle.clone(), port, listener, stopped.clone()));
        }
        tasks.spawn(listen_control(handle.clone(), control_listener, stopped));
        Ok(SimServer {
            handle,
            contacts,
            control,
            tasks,
            stop,
            #[cfg(feature = "tls")]
            certificates: None,
        })
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
