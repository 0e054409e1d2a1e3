//! Writes that are taken in part, resets with data pending, a peer whose window is shut, ends in the
//! middle of a header; and that a socket and its buffers serve the next connection after each.

use super::*;

/// One socket, whose send window is all that a write can take.
fn one_socket<const TX: usize>(
    rig: Rig,
) -> (EmbassyTransport<'static>, &'static SocketPool<'static, 1>) {
    let buffers = leak(SocketBuffers::<1, 256, TX>::new());
    let pool: &'static SocketPool<'static, 1> = leak(SocketPool::new(rig.near, buffers));
    (
        EmbassyTransport::new(pool, &mut seed(0), Options::default()),
        pool,
    )
}

async fn taken_in_parts<const TX: usize>(rig: Rig, len: usize) {
    let (transport, _) = one_socket::<TX>(rig);
    let (mut link, mut far) = pair(rig, &transport).await;
    let request: Vec<u8> = (0..len).map(byte_at).collect();
    let send = async {
        let mut rest = &request[..];
        while !rest.is_empty() {
            let len = poll_fn(|cx| link.poll_write(cx, rest)).await.unwrap();
            assert!((1..=TX).contains(&len));
            rest = &rest[len..];
        }
        close(&mut link).await.unwrap();
    };
    let receive = async {
        let (mut received, mut buffer) = (Vec::new(), [0; 64]);
        while let Ok(len @ 1..) = far.read(&mut buffer).await {
            received.extend_from_slice(&buffer[..len]);
        }
        received
    };
    let ((), received) = join(send, receive).await;
    assert_eq!(received, request);
}

#[test]
fn a_request_taken_in_parts_arrives_whole() {
    on_cable(async |rig| {
        // Each part waits for its acknowledgement, which the peer delays.
        taken_in_parts::<1>(rig, 20).await;
        taken_in_parts::<3>(rig, 60).await;
        taken_in_parts::<7>(rig, 100).await;
    });
}

#[test]
fn after_any_end_the_socket_and_its_buffers_serve_the_next_connection() {
    on_cable(async |rig| {
        let (transport, pool) = one_socket::<40>(rig);
        let request = [0xEE; 100];
        for round in 0..4 {
            let mut far = TcpSocket::new(rig.far, leak([0; 64]), leak([0; 64]));
            let connecting = transport.connect(target(&transport, FAR, PORT, PATIENCE));
            let (link, accepted) = join(connecting, far.accept(PORT)).await;
            accepted.unwrap();
            let mut link = link.unwrap();
            // Nothing that an earlier connection left behind is read or sent.
            write_all(&mut link, b"hello").await.unwrap();
            let mut word = [0; 64];
            assert_eq!(far.read(&mut word).await, Ok(5), "round {round}");
            assert_eq!(word[..5], *b"hello");
            far.write(b"world").await.unwrap();
            assert_eq!(read(&mut link, 64).await.unwrap(), "world");

            let begin = transport.clock().now();
            match round {
                // Reset with a part of the request taken.
                0 => {
                    let taken = poll_fn(|cx| link.poll_write(cx, &request)).await.unwrap();
                    assert_eq!(taken, 40);
                    far.abort();
                    let (rest, _) = join(write_all(&mut link, &request), far.flush()).await;
                    let reset = LinkError::new(LinkErrorKind::Reset);
                    assert_eq!(rest, Err(reset));
                    assert_eq!(close(&mut link).await, Err(reset));
                }
                // The peer reads nothing: its window shuts, and ours fills.
                1 => {
                    let stuck = async {
                        loop {
                            poll_fn(|cx| link.poll_write(cx, &request)).await.unwrap();
                        }
                    };
                    let patience = embassy_time::Duration::from_millis(100);
                    let stuck = embassy_time::with_timeout(patience, stuck).await;
                    assert!(stuck.is_err(), "more was taken than there is room for");
                }
                // The peer ends in the middle of a header.
                2 => {
                    far.write(&[0x84, 0, 0, 1]).await.unwrap();
                    far.close();
                    assert_eq!(read(&mut link, 64).await.unwrap().len(), 4);
                    assert_eq!(read(&mut link, 64).await.unwrap(), "");
                    close(&mut link).await.unwrap();
                }
                // Bytes that nobody reads are left in our buffer.
                _ => {
                    far.write(&[0xDD; 60]).await.unwrap();
                    far.flush().await.unwrap();
                }
            }
            drop(link);
            assert_eq!(pool.free(), 1);
            assert!(elapsed(begin, &transport) < Duration::from_secs(3));
            far.abort();
            far.flush().await.unwrap();
        }
    });
}
