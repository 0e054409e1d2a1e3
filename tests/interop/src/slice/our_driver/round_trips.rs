//! Round trips until the first row, counted at the wire.
//!
//! With early requests the first row of a session that nothing is known to comes after four of them here, and of
//! one with a warm start after three; ScyllaDB needs one less of each. Cassandra refuses what comes before the
//! login is over, so that is sent twice, and it loses an AUTH_RESPONSE that comes behind STARTUP in one packet, so
//! the two cannot share a round trip.

use core::net::{Ipv4Addr, SocketAddr};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use anyhow::{Context as _, Result, ensure};
use messina_core::Shared;
use messina_core::cluster::WarmStart;
use messina_core::config::{Config, Routing};
use messina_core::conn::auth::PlainAuthenticator;
use messina_tokio::connect;

use crate::cassandra::Cassandra;

const SELECT: &str = "SELECT release_version FROM system.local WHERE key = ?";

/// Both kinds of start.
pub(super) async fn run(node: &Cassandra) -> Result<String> {
    let counter = Counter::start(node.address())?;
    let (cold, saved) = first_row(node, &counter, None).await?;
    let (warm, _) = first_row(node, &counter, Some(saved)).await?;
    ensure!(
        (cold, warm) == (4, 3),
        "{cold} and {warm} round trips, not 4 and 3"
    );
    Ok(format!("{cold}, with a warm start {warm}"))
}

/// Round trips of a new session until its first row, and what it knows then.
async fn first_row(
    node: &Cassandra,
    counter: &Counter,
    saved: Option<Vec<u8>>,
) -> Result<(u32, Vec<u8>)> {
    let credentials = node.credentials().context("the node demands no login")?;
    let mut config = Config::server();
    config.add_contact_points(&counter.address.to_string())?;
    config.routing = Routing::Single;
    config.early_requests = true;
    config.warm_start = saved.map(WarmStart::new);
    let plain = PlainAuthenticator::new(credentials.user, credentials.password);
    config.authenticator = Some(Shared::new(plain));
    counter.trips.store(0, Ordering::Release);
    let session = connect(config).await?;
    let select = session.prepare(SELECT).await?;
    let row = session.execute(&select, ("local",)).await?;
    ensure!(row.row_count() == 1, "{} rows", row.row_count());
    let trips = counter.trips.load(Ordering::Acquire);
    let saved = session.warm_start(1 << 16);
    session.close().await;
    Ok((trips, saved))
}

/// A proxy that counts how often the client has said something to which nothing was said yet. It lives until the
/// process ends.
struct Counter {
    address: SocketAddr,
    trips: Arc<AtomicU32>,
}

impl Counter {
    fn start(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let trips = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&trips);
        thread::spawn(move || {
            for client in listener.incoming().take(CONNECTIONS_MAX).flatten() {
                // The server's refusal shows as the end of the connection.
                if let Ok(server) = TcpStream::connect(server) {
                    let _ = relay(&client, &server, &counted);
                }
            }
        });
        Ok(Self { address, trips })
    }
}

fn relay(client: &TcpStream, server: &TcpStream, trips: &Arc<AtomicU32>) -> io::Result<()> {
    // Something was said by the server since the client last spoke.
    let heard = Arc::new(AtomicBool::new(true));
    for is_client in [true, false] {
        let (from, to) = match is_client {
            true => (client, server),
            false => (server, client),
        };
        let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
        to.set_nodelay(true)?;
        let (heard, trips) = (Arc::clone(&heard), Arc::clone(trips));
        thread::spawn(move || {
            let mut chunk = [0; 16 * 1024];
            while let Ok(len @ 1..) = from.read(&mut chunk) {
                if !is_client {
                    // What is said in several packets is heard at once.
                    thread::sleep(PAUSE);
                    heard.store(true, Ordering::Release);
                } else if heard.swap(false, Ordering::AcqRel) {
                    trips.fetch_add(1, Ordering::AcqRel);
                }
                if to.write_all(&chunk[..len]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Write);
        });
    }
    Ok(())
}

const PAUSE: Duration = Duration::from_millis(20);

const CONNECTIONS_MAX: usize = 16;
