//! 20,000 prepared reads at 256 in flight on 3 nodes of 4 shards: nothing lost, nothing doubled,
//! every answer that of its key, no stream id leaked, and once the tablets are known no answer tells
//! one again; on both runtimes.
#![forbid(unsafe_code)]

use core::time::Duration;
use std::path::Path;
use std::time::Instant;

use messina_bench::ours::{Ours, fill};
use messina_bench::server::Server;
use messina_bench::workload::{Shape, Work, run};
use tokio::runtime::Builder;

const READS: u32 = 20_000;
const IN_FLIGHT: u32 = 256;
const SHAPE: Shape = Shape::new(READS, 1);

#[test]
fn on_the_current_thread_runtime() {
    nothing_is_lost_or_doubled(Builder::new_current_thread());
}

#[test]
fn on_the_multi_thread_runtime() {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(4);
    nothing_is_lost_or_doubled(builder);
}

fn nothing_is_lost_or_doubled(mut builder: Builder) {
    let server = Server::start(Path::new(env!("CARGO_BIN_EXE_messina-bench"))).unwrap();
    let runtime = builder.enable_all().build().unwrap();
    runtime.block_on(async {
        fill(&server.contacts(), SHAPE).await.unwrap();
        let ours = Ours::connect(&server.contacts(), None).await.unwrap();
        learn_all_tablets(&server, &ours).await;
        let before = server.counted().unwrap();
        let outcome = run(&ours, Work::Select, SHAPE, READS, IN_FLIGHT).await;
        outcome.unwrap().check().unwrap();
        let after = server.counted().unwrap();
        // The nodes took each request once: none was sent twice behind our back.
        assert_eq!(after.executes - before.executes, u64::from(READS));
        assert_eq!(after.payloads, before.payloads);
        no_stream_id_is_in_use(&ours).await;
    });
}

/// Reads until a round of reads brings no tablet. A chance match of the version hides one from some
/// rounds, so only the last of several quiet ones counts.
async fn learn_all_tablets(server: &Server, ours: &Ours) {
    let (mut quiet, mut told) = (0, server.counted().unwrap().payloads);
    for _ in 0..100 {
        let outcome = run(ours, Work::Select, SHAPE, READS / 20, IN_FLIGHT).await;
        outcome.unwrap().check().unwrap();
        let now = server.counted().unwrap().payloads;
        quiet = if now == told { quiet + 1 } else { 0 };
        if quiet == 3 {
            return;
        }
        told = now;
    }
    panic!("answers tell tablets for ever");
}

/// The control connection may ask something at any time, so a moment without requests is waited for.
async fn no_stream_id_is_in_use(ours: &Ours) {
    let give_up_at = Instant::now() + Duration::from_secs(10);
    loop {
        let status = ours.session().status();
        let connections = || status.nodes.iter().flat_map(|node| &node.connections);
        assert_eq!(connections().count(), 12, "{status:?}");
        assert!(connections().all(|connection| connection.orphans == 0));
        if connections().all(|connection| connection.in_flight == 0) {
            return;
        }
        assert!(Instant::now() < give_up_at, "{status:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
