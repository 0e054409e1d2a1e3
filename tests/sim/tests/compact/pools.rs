//! Links to members and to their shards.

use core::num::NonZeroU16;

use messina_core::config::PoolSize;

use crate::scene::{options, run};

/// Where shards cannot be wished for, each link under way stands for one that lacks a link.
#[test]
fn no_more_links_are_dialed_than_shards_lack_one() {
    let mut options = options(1, 3, 4);
    for node in &mut options.nodes {
        node.advertise_shard_aware_port = false;
    }
    run(
        options,
        |config| {
            config.pool.size = PoolSize::PerShard(NonZeroU16::MIN);
            config.limits.connecting = 64;
        },
        |scene| async move {
            scene.session.ready().await.unwrap();
            scene.pause(5_000_000).await;
            assert_eq!(scene.open_connections(), 12);
            assert_eq!(scene.world.counts().links, 12);
        },
    );
}
