//! The cluster, the links to it, and what will happen when.

use core::cmp::Reverse;
use core::net::SocketAddr;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::Waker;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use messina_core::error::{LinkError, LinkErrorKind};

use super::faults::Faults;
use crate::node::{Cluster, ConnectionId, Listener, Options};

/// Least time of a chunk on its way, in microseconds.
const LATENCY_MICROS: u64 = 100;

/// Bytes a link takes before it wants to be drained.
pub(super) const LINK_BUFFER: usize = 64 << 10;

/// How often each fault struck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Links opened.
    pub links: u64,
    /// Those that were opened through a proxy.
    pub proxied: u64,
    /// Chunks cut into pieces.
    pub splits: u64,
    /// Writes taken in part.
    pub short_writes: u64,
    /// Links reset.
    pub resets: u64,
    /// Links gone silent for a while.
    pub stalls: u64,
    /// Connects refused.
    pub refused: u64,
    /// Connects that nobody answered.
    pub blackholes: u64,
    /// Requests never answered.
    pub no_answers: u64,
    /// Source ports taken.
    pub ports_in_use: u64,
}

/// A simulated cluster and the network to it. Cheap to clone; all clones are the same world.
#[derive(Clone, Debug)]
pub struct World {
    pub(super) now: Arc<AtomicU64>,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) cluster: Cluster,
    pub(super) faults: Faults,
    pub(super) dice: Dice,
    pub(super) counts: Counts,
    /// The nodes behind the ports of proxies.
    proxies: BTreeMap<(String, u16), usize>,
    links: BTreeMap<u64, LinkState>,
    by_connection: BTreeMap<ConnectionId, u64>,
    links_made: u64,
    agenda: BinaryHeap<Reverse<(u64, u64)>>,
    happenings: BTreeMap<u64, Happening>,
    happenings_made: u64,
    trace: u64,
}

#[derive(Debug)]
enum Happening {
    /// Bytes reach a node.
    ToNode(u64, Vec<u8>),
    /// Bytes reach the client.
    ToClient(u64, Vec<u8>),
    /// The node's end of a link is closed.
    Closed(u64),
    /// A link is reset.
    Reset(u64),
    /// A node may have more output.
    Look(ConnectionId),
    /// A timer, or a connect, is due.
    Wake(Waker),
}

/// One link, seen from the client.
#[derive(Debug)]
struct LinkState {
    connection: ConnectionId,
    received: VecDeque<u8>,
    /// Bytes on their way to the node.
    sending: usize,
    /// Nothing is delivered before the one delivered last, in either direction.
    to_node_at: u64,
    to_client_at: u64,
    end: Option<Result<(), LinkError>>,
    /// A reset has taken bytes: nothing that was sent later arrives, in either direction.
    is_broken: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl World {
    /// A world at time 0.
    pub fn new(options: Options, faults: Faults) -> Self {
        let dice = Dice::new(options.seed ^ 0x5851_f42d_4c95_7f2d);
        let inner = Inner {
            cluster: Cluster::new(options),
            faults,
            dice,
            counts: Counts::default(),
            proxies: BTreeMap::new(),
            links: BTreeMap::new(),
            by_connection: BTreeMap::new(),
            links_made: 0,
            agenda: BinaryHeap::new(),
            happenings: BTreeMap::new(),
            happenings_made: 0,
            trace: 0xcbf2_9ce4_8422_2325,
        };
        Self {
            now: Arc::new(AtomicU64::new(0)),
            inner: Arc::new(Mutex::new(inner)),
        }
    }

    /// The faults that a seed draws.
    pub fn drawn_faults(seed: u64) -> Faults {
        Faults::drawn(&mut Dice::new(seed ^ 0x9e6c_63d0_a5b1_f283))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic elsewhere has failed the test already.
        self.inner
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Microseconds since the beginning.
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// Looks at the cluster or changes it.
    pub fn with_cluster<R>(&self, change: impl FnOnce(&mut Cluster) -> R) -> R {
        let now = self.now();
        let mut inner = self.lock();
        let result = change(&mut inner.cluster);
        inner.collect_touched(now);
        result
    }

    /// From now on this port of a proxy leads to the regular port of a node, or nowhere.
    pub fn forward(&self, name: &str, port: u16, node: Option<usize>) {
        let proxies = &mut self.lock().proxies;
        match node {
            Some(node) => proxies.insert((name.to_owned(), port), node),
            None => proxies.remove(&(name.to_owned(), port)),
        };
    }

    /// Sets what goes wrong from now on. Where all requests are answered then, that holds also for one
    /// that was to come next.
    pub fn set_faults(&self, faults: Faults) {
        let mut inner = self.lock();
        inner.faults = faults;
        if faults.no_answer == 0 {
            for node in 0..inner.cluster.node_count() {
                let _ = inner.cluster.drop_next(node, 0);
            }
        }
    }

    /// How often each fault struck so far.
    pub fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// A running hash of everything that happened, with its time.
    pub fn trace(&self) -> u64 {
        self.lock().trace
    }

    /// Whether anything will happen at all.
    pub(super) fn has_plans(&self) -> bool {
        !self.lock().agenda.is_empty()
    }

    /// Lets the next thing happen, and the clock jump to it. `false` when nothing will.
    pub(super) fn step(&self, until: u64) -> bool {
        let mut inner = self.lock();
        let Some(&Reverse((at, id))) = inner.agenda.peek() else {
            return false;
        };
        if at > until {
            return false;
        }
        inner.agenda.pop();
        let now = at.max(self.now());
        self.now.store(now, Ordering::Relaxed);
        let Some(happening) = inner.happenings.remove(&id) else {
            return true;
        };
        let wakers = inner.happen(now, happening);
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
        true
    }
}

impl Inner {
    pub(super) fn plan_wake(&mut self, at: u64, waker: Waker) {
        self.plan(at, Happening::Wake(waker));
    }

    fn plan(&mut self, at: u64, happening: Happening) {
        self.happenings_made += 1;
        self.agenda.push(Reverse((at, self.happenings_made)));
        self.happenings.insert(self.happenings_made, happening);
    }

    fn happen(&mut self, now: u64, happening: Happening) -> Vec<Waker> {
        let mut wakers = Vec::new();
        match happening {
            Happening::Wake(waker) => wakers.push(waker),
            Happening::Look(connection) => self.collect(connection, now),
            Happening::ToNode(id, bytes) => {
                self.note(now, 1, id, &bytes);
                if let Some(link) = self.links.get_mut(&id) {
                    link.sending = link.sending.saturating_sub(bytes.len());
                    wakers.extend(link.writer.take());
                    let connection = link.connection;
                    self.cluster.feed(connection, &bytes, micros(now));
                    self.collect(connection, now);
                    self.collect_touched(now);
                }
            }
            Happening::ToClient(id, bytes) => {
                self.note(now, 2, id, &bytes);
                if let Some(link) = self.links.get_mut(&id) {
                    link.received.extend(bytes);
                    wakers.extend(link.reader.take());
                }
            }
            Happening::Closed(id) => {
                self.note(now, 3, id, &[]);
                wakers.extend(self.end(id, Ok(())));
            }
            Happening::Reset(id) => {
                self.note(now, 4, id, &[]);
                wakers.extend(self.end(id, Err(LinkError::new(LinkErrorKind::Reset))));
            }
        }
        wakers
    }

    /// Ends a link for the client and disconnects it at the node.
    fn end(&mut self, id: u64, how: Result<(), LinkError>) -> Vec<Waker> {
        let Some(link) = self.links.get_mut(&id) else {
            return Vec::new();
        };
        link.end.get_or_insert(how);
        let connection = link.connection;
        let wakers = [link.reader.take(), link.writer.take()];
        self.by_connection.remove(&connection);
        self.cluster.disconnect(connection);
        wakers.into_iter().flatten().collect()
    }

    /// Sends what the cluster has for other connections.
    fn collect_touched(&mut self, now: u64) {
        for connection in self.cluster.take_touched() {
            self.collect(connection, now);
        }
    }

    /// Sends what a node has for a connection.
    fn collect(&mut self, connection: ConnectionId, now: u64) {
        let Some(&id) = self.by_connection.get(&connection) else {
            return;
        };
        let bytes = self.cluster.take_output(connection, micros(now));
        if !bytes.is_empty() {
            self.send_to_client(id, bytes, now);
        }
        if let Some(at) = self.cluster.next_output_at(connection) {
            let at = u64::try_from(at).unwrap_or(0).max(now);
            self.plan(at, Happening::Look(connection));
        } else if self.cluster.is_closed(connection) {
            let at = self.links.get(&id).map_or(now, |link| link.to_client_at);
            self.plan(at.max(now + LATENCY_MICROS), Happening::Closed(id));
        }
    }

    fn send_to_client(&mut self, id: u64, bytes: Vec<u8>, now: u64) {
        if self.strikes(id, now) {
            return;
        }
        for piece in self.pieces(bytes) {
            let delay = self.delay();
            let Some(link) = self.links.get_mut(&id) else {
                return;
            };
            link.to_client_at = (now + delay).max(link.to_client_at);
            let at = link.to_client_at;
            self.plan(at, Happening::ToClient(id, piece));
        }
    }

    /// The client writes. Returns how many bytes were taken; 0 when the link is full.
    pub(super) fn write(&mut self, id: u64, bytes: &[u8], now: u64) -> Result<usize, LinkError> {
        let link = self.links.get(&id).ok_or_else(gone)?;
        if let Some(end) = link.end {
            return Err(end.err().unwrap_or(LinkError::CLOSED_BY_PEER));
        }
        let mut len = bytes.len().min(LINK_BUFFER.saturating_sub(link.sending));
        if len > 1 && self.dice.hits(self.faults.short_write) {
            self.counts.short_writes += 1;
            len = 1 + usize::try_from(self.dice.below(len as u64 - 1)).unwrap_or(0);
        }
        if len == 0 {
            return Ok(0);
        }
        if self.dice.hits(self.faults.no_answer)
            && let Some(node) = self.node_of(id)
        {
            self.counts.no_answers += 1;
            let _ = self.cluster.drop_next(node, 1);
        }
        if !self.strikes(id, now) {
            for piece in self.pieces(bytes[..len].to_vec()) {
                let delay = self.delay();
                let Some(link) = self.links.get_mut(&id) else {
                    break;
                };
                link.sending += piece.len();
                link.to_node_at = (now + delay).max(link.to_node_at);
                let at = link.to_node_at;
                self.plan(at, Happening::ToNode(id, piece));
            }
        }
        Ok(len)
    }

    /// The client reads at most `max` bytes. `None` when nothing is there yet; 0 bytes at the end.
    pub(super) fn read(&mut self, id: u64, max: usize) -> Result<Option<Vec<u8>>, LinkError> {
        let link = self.links.get_mut(&id).ok_or_else(gone)?;
        if let Some(Err(error)) = link.end {
            return Err(error);
        }
        if link.received.is_empty() {
            return Ok(link.end.map(|_| Vec::new()));
        }
        let len = max.min(link.received.len());
        Ok(Some(link.received.drain(..len).collect()))
    }

    pub(super) fn park_reader(&mut self, id: u64, waker: Waker) {
        if let Some(link) = self.links.get_mut(&id) {
            link.reader = Some(waker);
        }
    }

    pub(super) fn park_writer(&mut self, id: u64, waker: Waker) {
        if let Some(link) = self.links.get_mut(&id) {
            link.writer = Some(waker);
        }
    }

    /// Opens a link through a proxy.
    pub(super) fn open_by_name(
        &mut self,
        name: &str,
        port: u16,
        source_port: u16,
        now: u64,
    ) -> Result<u64, LinkError> {
        let node = self.proxies.get(&(name.to_owned(), port));
        let &node = node.ok_or(LinkError::new(LinkErrorKind::Refused))?;
        let options = self.cluster.options();
        let to = SocketAddr::new(options.address(node), options.port);
        let opened = self.open(to, source_port, now)?;
        self.counts.proxied += 1;
        Ok(opened)
    }

    /// Opens a link, or says why not.
    pub(super) fn open(
        &mut self,
        to: SocketAddr,
        source_port: u16,
        now: u64,
    ) -> Result<u64, LinkError> {
        let refused = LinkError::new(LinkErrorKind::Refused);
        let options = self.cluster.options();
        let listener = if to.port() == options.port {
            Listener::Regular
        } else if Some(to.port()) == options.shard_aware_port {
            Listener::ShardAware
        } else {
            return Err(refused);
        };
        let nodes = 0..options.nodes.len();
        let node = nodes
            .clone()
            .find(|&node| options.address(node) == to.ip())
            .ok_or(refused)?;
        let peer = SocketAddr::new([10, 0, 0, 1].into(), source_port);
        let connection = self
            .cluster
            .accept(node, listener, peer, micros(now))
            .ok_or(refused)?;
        self.links_made += 1;
        self.counts.links += 1;
        let id = self.links_made;
        let link = LinkState {
            connection,
            received: VecDeque::new(),
            sending: 0,
            to_node_at: now,
            to_client_at: now,
            end: None,
            is_broken: false,
            reader: None,
            writer: None,
        };
        self.links.insert(id, link);
        self.by_connection.insert(connection, id);
        self.note(now, 5, id, &source_port.to_be_bytes());
        Ok(id)
    }

    /// The client closes or drops its end.
    pub(super) fn close(&mut self, id: u64, now: u64) {
        self.note(now, 6, id, &[]);
        if let Some(link) = self.links.remove(&id) {
            self.by_connection.remove(&link.connection);
            self.cluster.disconnect(link.connection);
            self.collect_touched(now);
        }
    }

    /// Whether a fault takes the chunk that is to be sent.
    fn strikes(&mut self, id: u64, now: u64) -> bool {
        if self.links.get(&id).is_some_and(|link| link.is_broken) {
            return true;
        }
        if self.dice.hits(self.faults.reset) {
            self.counts.resets += 1;
            let at = now + self.delay();
            self.plan(at, Happening::Reset(id));
            if let Some(link) = self.links.get_mut(&id) {
                link.is_broken = true;
            }
            return true;
        }
        if self.dice.hits(self.faults.stall) {
            self.counts.stalls += 1;
            let until = now + self.faults.stall_micros;
            if let Some(link) = self.links.get_mut(&id) {
                link.to_node_at = link.to_node_at.max(until);
                link.to_client_at = link.to_client_at.max(until);
            }
        }
        false
    }

    fn pieces(&mut self, bytes: Vec<u8>) -> Vec<Vec<u8>> {
        if bytes.len() < 2 || !self.dice.hits(self.faults.split) {
            return vec![bytes];
        }
        self.counts.splits += 1;
        let (mut rest, mut pieces) = (&bytes[..], Vec::new());
        while rest.len() > 1 && pieces.len() < 8 {
            let at = 1 + usize::try_from(self.dice.below(rest.len() as u64 - 1)).unwrap_or(0);
            pieces.push(rest[..at].to_vec());
            rest = &rest[at..];
        }
        pieces.push(rest.to_vec());
        pieces
    }

    pub(super) fn delay(&mut self) -> u64 {
        LATENCY_MICROS + self.dice.below(self.faults.jitter_micros + 1)
    }

    fn node_of(&self, id: u64) -> Option<usize> {
        self.cluster
            .node_of_connection(self.links.get(&id)?.connection)
    }

    /// FNV-1a over what happened.
    fn note(&mut self, now: u64, what: u8, id: u64, bytes: &[u8]) {
        let words = [now.to_be_bytes(), id.to_be_bytes()];
        for byte in [what].iter().chain(words.as_flattened()).chain(bytes) {
            self.trace = (self.trace ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

fn micros(now: u64) -> i64 {
    i64::try_from(now).unwrap_or(i64::MAX)
}

fn gone() -> LinkError {
    LinkError::new(LinkErrorKind::ClosedByUs)
}

/// A small generator of its own, independent of the driver's.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Seeds that lie close together give streams that have nothing to do with each other.
    pub(crate) fn new(seed: u64) -> Self {
        let word = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((word ^ (word >> 31)) | 1)
    }

    /// xorshift64*.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`; 0 if that is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        match bound {
            0 => 0,
            bound => self.next() % bound,
        }
    }

    /// Whether a chance in thousandths comes true. Draws nothing for a chance of 0.
    pub(crate) fn hits(&mut self, thousandths: u32) -> bool {
        thousandths > 0 && self.below(1000) < u64::from(thousandths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_arrives_behind_bytes_that_a_reset_took() {
        let world = World::new(Options::uniform(1, 1), Faults::NONE);
        let mut inner = world.lock();
        let options = inner.cluster.options();
        let to = SocketAddr::new(options.address(0), options.port);
        let id = inner.open(to, 0, 0).unwrap();
        let arriving = |inner: &Inner| {
            let happenings = inner.happenings.values();
            let bytes = happenings.filter_map(|happening| match happening {
                Happening::ToNode(_, bytes) => Some(bytes.len()),
                _ => None,
            });
            bytes.sum::<usize>()
        };
        assert_eq!(inner.write(id, b"abc", 0), Ok(3));
        inner.faults.reset = 1000;
        assert_eq!(inner.write(id, b"de", 0), Ok(2));
        inner.faults.reset = 0;
        assert_eq!(inner.write(id, b"fghi", 0), Ok(4));
        inner.send_to_client(id, b"jk".to_vec(), 0);
        assert_eq!(arriving(&inner), 3);
        drop(inner);
        while world.step(1_000_000) {}
        let reset = LinkErrorKind::Reset;
        let read = world.lock().read(id, 9).map_err(LinkError::kind);
        assert_eq!(read, Err(reset));
    }
}
