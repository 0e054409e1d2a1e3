//! What the driver tells nodes about itself, read back from their own tables.

use core::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use messina_sim::node::Options;

use crate::scene::run_on;

/// One random id on every connection, so that those of a session are found; another for each.
#[test]
fn all_connections_of_a_session_say_its_id() {
    let ids = Rc::new(RefCell::new(BTreeSet::new()));
    for seed in 1..=3 {
        let mut options = Options::uniform(2, 3);
        options.seed = seed;
        let seen = Rc::clone(&ids);
        run_on(
            options,
            |config| config.application_name = Some("shop".into()),
            |scene| async move {
                let session = &scene.session;
                session.ready().await.unwrap();
                scene.pause(10_000_000).await;
                let text = "SELECT client_options FROM system.clients";
                let shown = session.query(text, ()).await.unwrap();
                let mut count = 0;
                for row in shown.rows::<(BTreeMap<String, String>,)>().unwrap() {
                    let (options,) = row.unwrap();
                    assert_eq!(options["DRIVER_NAME"], "messina");
                    assert_eq!(options["APPLICATION_NAME"], "shop");
                    assert!(!options.contains_key("SCYLLA_HOST_ID"));
                    seen.borrow_mut()
                        .insert((seed, options["SESSION_ID"].clone()));
                    count += 1;
                }
                assert!(count >= 3, "a connection for each shard: {count}");
            },
        );
    }
    let ids = ids.take();
    assert_eq!(ids.len(), 3, "one for each session: {ids:?}");
    let different: BTreeSet<&str> = ids.iter().map(|(_, id)| &**id).collect();
    assert_eq!(different.len(), 3);
    for id in different {
        // The text of a random UUID.
        let lengths: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
        assert_eq!(&id[14..15], "4", "{id}");
    }
}
