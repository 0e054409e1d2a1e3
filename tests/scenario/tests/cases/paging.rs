//! Pages that are empty though more follow.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

use messina_core::drive::{QueryResult, Statement};
use messina_core::error::{DecodeFailure, ErrorKind};
use messina_core::exec::paging::{Paging, PagingState};
use messina_core::types::{CqlValue, RowError};
use messina_scenario::play_everywhere;

use super::support::{SELECT, value};

/// PREPARED id aa: no markers, no metadata.
pub(crate) const PREPARED: &str =
    "84000001080000001b000000040001aa0000000000000000000000000000000400000000";
/// No rows, paging state dead.
pub(crate) const EMPTY_PAGE: &str = "84000001080000002100000002000000030000000100000002dead\
                                     00016b000174000176000900000000";
/// The last page: v = 5.
const LAST_PAGE: &str = "84000002080000002300000002000000010000000100016b000174000176\
                         0009000000010000000400000005";

/// The empty page with the state `de` and this byte.
fn empty_page(last: u8) -> String {
    EMPTY_PAGE.replace("dead", &format!("de{last:02x}"))
}

/// Case G1. The first page is the one above; the others have states of their own, so that a
/// state sent late or twice shows.
#[test]
fn reading_goes_on_over_empty_pages() {
    play_everywhere(|scene| async move {
        let (session, mut peer) = scene.connect(scene.config()).await;
        let prepared = scene.prepare(&session, &mut peer, SELECT, PREPARED).await;
        let reader = session.clone();
        let call = scene.call(async move {
            let mut pager = reader.pages(&prepared, ()).expect("no values");
            let (mut values, mut pages) = (Vec::new(), 0);
            while let Some(page) = pager.next_page().await.expect("a page") {
                pages += 1;
                let rows = page.rows::<(i32,)>().expect("rows");
                values.extend(rows.map(|row| row.expect("a row").0));
            }
            assert_eq!(pager.paging(), &Paging::End);
            (values, pages)
        });

        let mut expected_state = None;
        for page in 0..6 {
            let request = peer.request().await;
            assert_eq!(request.execute(false).paging_state, expected_state);
            peer.answer(&request, &empty_page(0xad + page));
            expected_state = Some(vec![0xde, 0xad + page]);
        }
        let request = peer.request().await;
        assert_eq!(request.execute(false).paging_state, expected_state);
        peer.answer(&request, LAST_PAGE);
        assert_eq!(call.await, (vec![5], 7));
        scene.turn().await;
        assert!(!peer.has_request());
    });
}

/// Case G1: one page at a time, by prepared statement and by text.
#[test]
fn a_single_empty_page_is_not_the_end() {
    play_everywhere(|scene| async move {
        let (session, mut peer) = scene.connect(scene.config()).await;
        let prepared = scene.prepare(&session, &mut peer, SELECT, PREPARED).await;
        for is_prepared in [true, false] {
            let call = match is_prepared {
                true => scene.execute(&session, &prepared, ()),
                false => scene.query(&session, SELECT),
            };
            let request = peer.request().await;
            peer.answer(&request, EMPTY_PAGE);
            let page = call.await.expect("a page");
            assert!(page.is_rows());
            assert_eq!(page.row_count(), 0);
            let state = page.paging_state().map(PagingState::as_bytes);
            assert_eq!(state.map(|bytes| &bytes[..]), Some(&[0xde, 0xad][..]));

            // The state leads to the last page, which says that it is.
            let next = Statement::new(SELECT).with_paging_state(page.paging_state().cloned());
            let call = scene.query(&session, next);
            let request = peer.request().await;
            // Consistency, flags 18 (state, serial consistency), then the state.
            assert_eq!(request.body[4 + SELECT.len()..][..3], [0, 6, 0x18]);
            assert_eq!(
                request.body[4 + SELECT.len() + 3..][..6],
                [0, 0, 0, 2, 0xde, 0xad]
            );
            peer.answer(&request, LAST_PAGE);
            let page = call.await.expect("a page");
            assert_eq!(page.paging_state(), None);
            assert_eq!(value(Ok(page)), 5);
        }
    });
}

/// Rows (a int, d int): (1, 2), and more follow, state 01.
const TWO_INTS: &str = "840000010800000035000000020000000300000002000000010100016b0001740001610009\
                        00016400090000000100000004000000010000000400000002";
/// Rows (a int, d blob): (1, 01).
const INT_AND_BLOB: &str = "84000002080000002d00000002000000010000000200016b00017400016100090001640003\
                            0000000100000004000000010000000101";

/// Case G3: each page has columns of its own.
#[test]
fn a_page_with_other_columns_is_read_by_them_or_refused() {
    play_everywhere(|scene| async move {
        let (session, mut peer) = scene.connect(scene.config()).await;
        let prepared = scene.prepare(&session, &mut peer, SELECT, PREPARED).await;
        let call = scene.call(async move {
            let mut pager = session.pages(&prepared, ()).expect("no values");
            let mut pages = Vec::new();
            while let Some(page) = pager.next_page().await.expect("a page") {
                pages.push(page);
            }
            pages
        });
        for page in [TWO_INTS, INT_AND_BLOB] {
            let request = peer.request().await;
            peer.answer(&request, page);
        }
        let pages = call.await;
        let typed = |page: &QueryResult| page.single_row::<(i32, i32)>();
        assert_eq!(typed(&pages[0]).expect("two ints"), (1, 2));
        let error = typed(&pages[1]).expect_err("d is a blob");
        assert_eq!(error.kind(), ErrorKind::Decode(DecodeFailure::Value));
        let Some(RowError::Column { index: 1, name, .. }) = error.row_error() else {
            panic!("{error:?}");
        };
        assert_eq!(&**name, "d");

        let (one, two) = (CqlValue::Int(1), CqlValue::Int(2));
        let blob = CqlValue::Blob(vec![1]);
        for (page, row) in pages.iter().zip([[one.clone(), two], [one, blob]]) {
            let found: Vec<CqlValue> = page.single_row().expect("a row");
            assert_eq!(found, row);
        }
    });
}

/// Case G1: a page given up is asked for again; its late answer goes nowhere.
#[test]
fn reading_can_be_given_up_and_taken_up_between_pages() {
    play_everywhere(|scene| async move {
        let (session, mut peer) = scene.connect(scene.config()).await;
        let prepared = scene.prepare(&session, &mut peer, SELECT, PREPARED).await;
        let mut pager = session.pages(&prepared, ()).expect("no values");

        let given_up = {
            let mut page = pin!(pager.next_page());
            poll_fn(|cx| Poll::Ready(page.as_mut().poll(cx).is_ready())).await;
            peer.request().await
        };
        assert_eq!(pager.paging(), &Paging::Start);

        let mut page = Box::pin(pager.next_page());
        poll_fn(|cx| Poll::Ready(page.as_mut().poll(cx).is_ready())).await;
        let request = peer.request().await;
        assert_eq!(request.execute(false), given_up.execute(false));
        assert_ne!(request.stream, given_up.stream);
        peer.answer(&given_up, LAST_PAGE);
        peer.answer(&request, EMPTY_PAGE);
        let page = page.await.expect("a page").expect("not the end");
        assert_eq!(page.row_count(), 0);
        assert!(matches!(pager.paging(), Paging::More(_)));
    });
}
