//! Requests end as they should on a cluster where nothing goes wrong.

use core::time::Duration;

use messina_core::compact::Options;
use messina_core::config::Routing;
use messina_core::error::{ApiMisuse, ErrorKind};

use crate::scene::{INSERT, KEYSPACE, SELECT, TABLE, options, run};

#[test]
fn rows_are_written_and_read() {
    for routing in [Routing::Single, Routing::Full] {
        for seed in 1..=8 {
            run(
                options(seed, 3, 2),
                |config| config.routing = routing,
                |scene| async move {
                    let session = &scene.session;
                    scene.create(&[KEYSPACE, TABLE]).await;
                    let insert = session.prepare(INSERT).await.unwrap();
                    let select = session.prepare(SELECT).await.unwrap();
                    for key in 0..20_i64 {
                        let reply = session.execute(&insert, (key, key * 2)).await.unwrap();
                        assert!(!reply.is_rows());
                        let reply = session.execute(&select, (key,)).await.unwrap();
                        assert_eq!(reply.single_row(), Ok((key * 2,)));
                        // Another node may have to be given the statement first.
                        assert!(reply.attempts() == 1 || routing == Routing::Full);
                    }
                    session.close(Duration::from_secs(1)).await.unwrap();
                    assert_eq!(scene.open_connections(), 0);
                    let error = session.execute(&select, (1_i64,)).await.unwrap_err();
                    let closed = ErrorKind::ApiMisuse(ApiMisuse::SessionClosed);
                    assert_eq!(error.kind(), closed);
                },
            );
        }
    }
}

#[test]
fn further_nodes_are_given_statements_before_they_are_asked() {
    for seed in 1..=8 {
        run(
            options(seed, 3, 2),
            |_| {},
            |scene| async move {
                let session = &scene.session;
                scene.create(&[KEYSPACE, TABLE]).await;
                scene.pause(5_000_000).await;
                let select = session.prepare(SELECT).await.unwrap();
                scene.pause(1_000_000).await;
                for key in 0..40_i64 {
                    let reply = session.execute(&select, (key,)).await.unwrap();
                    assert_eq!(reply.attempts(), 1);
                }
                let stats = scene.world.with_cluster(|cluster| cluster.stats());
                let prepares: Vec<_> = stats.nodes.iter().map(|node| node.prepares).collect();
                assert_eq!(prepares, [1, 1, 1]);
            },
        );
    }
}

#[test]
fn a_page_goes_through_the_window() {
    run(
        options(1, 1, 1),
        |config| {
            config.limits.row_window = 200;
            config.limits.read_chunk = 100;
        },
        |scene| async move {
            let session = &scene.session;
            let table = "CREATE TABLE ks.rows (pk int, ck int, v text, PRIMARY KEY (pk, ck))";
            scene.create(&[KEYSPACE, table]).await;
            let insert = "INSERT INTO ks.rows (pk, ck, v) VALUES (1, ?, ?)";
            let insert = session.prepare(insert).await.unwrap();
            let select = "SELECT ck, v FROM ks.rows WHERE pk = 1";
            let select = session.prepare(select).await.unwrap();
            for ck in 0..300 {
                let text = "x".repeat(usize::try_from(ck % 50).unwrap());
                session.execute(&insert, (ck, text)).await.unwrap();
            }
            let all = select.with(Options::new().with_page_size(0));
            let mut stream = session.stream(&all, ());
            let mut count = 0;
            while let Some(row) = stream.next::<(i32, String)>().await {
                let (ck, text) = row.unwrap();
                assert_eq!((ck, text.len()), (count, usize::try_from(ck % 50).unwrap()));
                count += 1;
            }
            assert_eq!(count, 300);
            assert_eq!(stream.paging_state(), None);
            drop(stream);
            let mut stream = session.stream(&select, ());
            let mut pages = 0;
            count = 0;
            loop {
                while let Some(row) = stream.next_raw().await {
                    let row = row.unwrap();
                    assert_eq!(row.cells().next(), Some(Some(&count.to_be_bytes()[..])));
                    count += 1;
                }
                pages += 1;
                let Some(state) = stream.paging_state().cloned() else {
                    break;
                };
                stream = session.stream_paged(&select, (), Some(&state));
            }
            // The server says that there may be more when a page is full.
            assert!(
                (19..=20).contains(&pages) && count == 300,
                "{pages}, {count}"
            );
        },
    );
}
