//! Bounds of memory, measured with an allocator that counts.
//!
//! The counters belong to the thread, and each test runs on one thread, so tests do not disturb
//! one another. The allocator is the only unsafe code of this crate.

mod compact;

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use std::alloc::System;
use std::thread::LocalKey;

use messina_core::drive::{Batch, Prepared, Session};
use messina_core::error::{ErrorKind, LimitField};
use messina_scenario::frame::VOID;
use messina_scenario::{Scene, hex, on_stream, play_once};

/// Counts bytes held and their peak, for each thread by itself.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

fn count(bytes: usize, sign: isize) {
    let get = |cell: &'static LocalKey<Cell<isize>>| cell.try_with(Cell::get).unwrap_or(0);
    let held = get(&HELD) + sign * isize::try_from(bytes).unwrap_or(isize::MAX);
    let _ = HELD.try_with(|cell| cell.set(held));
    let _ = PEAK.try_with(|cell| cell.set(cell.get().max(held)));
}

// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing, since
// the thread locals are initialised by constants and have no destructors.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the pointer came from `alloc` above, thus from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes held now; the peak is measured from here.
fn begin() -> isize {
    let held = HELD.get();
    PEAK.set(held);
    held
}

/// Most bytes held at once since [`begin`], beyond those held then.
fn growth_since(begun: isize) -> isize {
    PEAK.get() - begun
}

const SELECT: &str = "SELECT v FROM k.t";

#[test]
fn the_counter_sees_what_is_allocated_and_freed() {
    let begun = begin();
    drop(vec![0_u8; 3 << 20]);
    assert!((3 << 20..4 << 20).contains(&growth_since(begun)));
    assert_eq!(HELD.get(), begun);
}

/// Filled again, a batch needs no memory: not for its values, and not for its way out.
#[test]
fn a_batch_filled_again_allocates_nothing() {
    // PREPARED aa for the markers pk int, v text.
    const INSERT: &str = "84000001080000003a 00000004 0001aa 00000001 00000002 00000001 0000 \
        00016b 000174 0002706b 0009 000176 000d 00000004 00000000";
    let insert = INSERT.replace("0000003a", &format!("{:08x}", hex(INSERT).len() - 9));
    play_once(1, move |scene| {
        let prepared = insert.clone();
        async move {
            let (session, mut peer) = scene.connect(scene.config()).await;
            let insert = scene.prepare(&session, &mut peer, "INSERT", &prepared);
            let insert = insert.await;
            let mut batch = Batch::unlogged();
            for round in 0..4 {
                let begun = begin();
                batch.clear();
                for pk in 0..64_i32 {
                    batch.push(&insert, (pk, "value")).expect("fits");
                }
                let filling = growth_since(begun);
                let mut call = pin!(session.batch(&batch));
                let begun = begin();
                poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_pending())).await;
                let sending = growth_since(begun);
                // Both of the connection's buffers have grown in two rounds.
                if round > 1 {
                    assert_eq!((filling, sending), (0, 0), "round {round}");
                }
                let request = peer.request().await;
                assert_eq!(request.batch().statements.len(), 64);
                peer.answer(&request, VOID);
                call.await.expect("VOID");
            }
        }
    });
}

/// Case F6: buffers grow with what came, not with what was declared.
#[test]
fn a_declared_length_allocates_nothing() {
    for header in [
        "840000010810000001",
        "8400000108ffffffff",
        "84000001087fffffff",
        // The longest that is read: nothing comes of it.
        "840000010810000000",
    ] {
        let script = move |scene: Scene| async move {
            let (session, mut peer) = scene.connect(scene.config()).await;
            let call = scene.query(&session, SELECT);
            let request = peer.request().await;
            let begun = begin();
            peer.answer(&request, header);
            scene.turn().await;
            drop(peer);
            let error = call.await.expect_err("no answer");
            assert!(
                growth_since(begun) < 1 << 20,
                "{header}: {}",
                growth_since(begun)
            );
            if header == "840000010810000001" {
                assert_eq!(error.kind(), ErrorKind::Limit(LimitField::FrameLen));
            }
        };
        play_once(0, script);
        play_once(0, |scene| script(scene.through_tunnel()));
    }
}

/// Case F6, other direction: a request that is refused is not copied into the output, which
/// would keep its size.
#[test]
fn a_request_too_long_is_not_copied() {
    play_once(0, |scene| async move {
        let mut config = scene.config();
        config.limits.connection.request_len_max = 64 << 10;
        let (session, _peer) = scene.connect(config).await;
        let text = "x".repeat(8 << 20);
        let begun = begin();
        scene.query(&session, text).await.expect_err("too long");
        assert!(growth_since(begun) < 1 << 20, "{}", growth_since(begun));
    });
}

/// PREPARED id aa: no markers, no metadata.
const PREPARED: &str = "84000001080000001b000000040001aa0000000000000000000000000000000400000000";
/// No rows, paging state dead.
const EMPTY_PAGE: &str = "84000001080000002100000002000000030000000100000002dead\
                          00016b000174000176000900000000";

/// Reads pages until it is given up.
async fn read_pages(session: Session, prepared: Prepared) {
    let mut pager = session.pages(&prepared, ()).expect("no values");
    loop {
        let page = pager.next_page().await.expect("a page");
        assert_eq!(page.expect("not the end").row_count(), 0);
    }
}

/// Case G1: ten thousand empty pages in a row, and one more that is given up.
#[test]
fn ten_thousand_empty_pages_need_no_growing_memory() {
    play_once(0, |scene| async move {
        let (session, mut peer) = scene.connect(scene.config()).await;
        let prepared = scene.prepare(&session, &mut peer, SELECT, PREPARED).await;
        let reading = scene.call(read_pages(session.clone(), prepared));
        let mut page = hex(EMPTY_PAGE);
        let begun = begin();
        let mut peaks = [0; 2];
        for asked in 0..10_000 {
            let request = peer.request().await;
            page[2..4].copy_from_slice(&request.stream.to_be_bytes());
            peer.send(&page);
            peaks[asked / 5_000] = growth_since(begun);
        }
        // All that is needed was needed in the first half already: a few read chunks.
        assert_eq!(peaks[0], peaks[1]);
        assert!(peaks[0] < 256 << 10, "{peaks:?}");

        // Given up between two pages: nothing more is asked.
        peer.request().await;
        reading.cancel();
        scene.turn().await;
        peer.send(&on_stream(1, EMPTY_PAGE));
        scene.turn().await;
        assert!(!peer.has_request());
    });
}
