//! Lets the near stack reach a server on the host's loopback: connections to the far stack's port
//! are passed on byte by byte.

use core::net::{Ipv4Addr, SocketAddr};

use embassy_futures::join::join_array;
use embassy_futures::select::select;
use embassy_net::tcp::{TcpReader, TcpSocket, TcpWriter};
use embassy_time::{Duration, with_timeout};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use crate::cable::{Rig, leak};

/// Connections that can be passed on at once.
const CONNECTIONS: usize = 4;
const GRACE: Duration = Duration::from_millis(100);

/// Passes connections to `port` of the far stack on to the same port of the host. Runs for ever.
pub(crate) async fn relay(rig: Rig, port: u16) {
    let relays = [(); CONNECTIONS].map(|()| async move {
        let mut far = TcpSocket::new(rig.far, leak([0; 4096]), leak([0; 4096]));
        loop {
            if far.accept(port).await.is_ok() {
                pass_on(&mut far, port).await;
            }
            far.close();
            // Fails when the near side is gone; then there is nobody to tell.
            let _ = with_timeout(GRACE, far.flush()).await;
            far.abort();
            let _ = with_timeout(GRACE, far.flush()).await;
        }
    });
    join_array(relays).await;
}

async fn pass_on(far: &mut TcpSocket<'_>, port: u16) {
    let host = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let Ok(mut stream) = TcpStream::connect(host).await else {
        return;
    };
    let (from_host, to_host) = stream.split();
    let (from_near, to_near) = far.split();
    select(upstream(from_near, to_host), downstream(from_host, to_near)).await;
}

async fn upstream(mut from: TcpReader<'_>, mut to: WriteHalf<'_>) {
    let mut buffer = [0; 1024];
    while let Ok(len @ 1..) = from.read(&mut buffer).await {
        if to.write_all(&buffer[..len]).await.is_err() {
            return;
        }
    }
}

async fn downstream(mut from: ReadHalf<'_>, mut to: TcpWriter<'_>) {
    let mut buffer = [0; 1024];
    while let Ok(len @ 1..) = from.read(&mut buffer).await {
        let mut rest = &buffer[..len];
        while !rest.is_empty() {
            let Ok(written) = to.write(rest).await else {
                return;
            };
            rest = &rest[written..];
        }
    }
}
