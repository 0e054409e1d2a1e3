//! The power goes in every single write and erasure of the flash, torn in several ways; after the
//! next power-on the table equals the model.

use core::time::Duration;

use embassy_gateway::host::{Board, Chip, Cut, Cycle, Fate, Link, Scene, Tear};

/// A board that is cut, one that measures a little more, and writes all that is left.
fn play(seed: u64, link: Link, clock_after: Option<Duration>, cut: Option<Cut>) -> (Cycle, usize) {
    let played = Scene::play(seed, move |scene| async move {
        let chip = Chip::new(8);
        // Not from the first page, so that the last is followed by it in time.
        let board = Board {
            cut: None,
            clock_after: Some(Duration::ZERO),
            readings: 30,
            drains: true,
        };
        scene.power_cycle(&chip, board).await;
        scene.set_link_after(Duration::from_millis(60), link);
        scene.set_link_after(Duration::from_millis(160), Link::Up);
        let board = Board {
            cut,
            clock_after,
            readings: 24,
            drains: true,
        };
        let first = scene.power_cycle(&chip, board).await;
        scene.pause(Duration::from_millis(100)).await;
        scene.set_link(Link::Up);
        let board = Board {
            cut: None,
            clock_after: Some(Duration::ZERO),
            readings: 5,
            drains: true,
        };
        let second = scene.power_cycle(&chip, board).await;
        assert_eq!(second.left, 0, "all is written");
        let rows = scene.compare().await;
        let rows = rows.unwrap_or_else(|differs| panic!("{link:?} {cut:?}: {differs}"));
        assert!(scene.model().count(Fate::Open) <= 1);
        assert_eq!(chip.stats().spoiled, 0, "no word is written over another");
        (first, rows)
    });
    played.expect("the scene ends")
}

#[test]
fn without_a_cut_every_reading_is_a_row() {
    for link in [Link::Up, Link::Down, Link::Flaky] {
        let (cycle, rows) = play(1, link, Some(Duration::ZERO), None);
        assert!(!cycle.was_cut);
        assert_eq!(rows, 59);
    }
}

/// Cuts in every so many operations until there are no more, torn in each way. Returns how many
/// batches were sent again although they may have been applied.
fn cut_everywhere(link: Link, clock_after: Option<Duration>, step: usize) -> u32 {
    let mut uncertain = 0;
    for (first, tear) in (0..).zip(Tear::EACH) {
        for operation in (first..).step_by(step) {
            let cut = Cut { operation, tear };
            let (cycle, _) = play(operation, link, clock_after, Some(cut));
            uncertain += cycle.gateway.uncertain;
            if !cycle.was_cut {
                assert!(operation > 50, "there is much to cut: {operation}");
                if tear == Tear::All {
                    return uncertain;
                }
                break;
            }
        }
    }
    unreachable!("the last tear returns");
}

#[test]
fn cut_while_the_link_is_up() {
    cut_everywhere(Link::Up, Some(Duration::ZERO), 5);
}

#[test]
fn cut_while_the_link_goes_down_and_up() {
    let uncertain = cut_everywhere(Link::Down, Some(Duration::ZERO), 5);
    assert!(uncertain > 0, "some are sent twice");
}

#[test]
fn cut_while_batches_are_sent_twice() {
    let uncertain = cut_everywhere(Link::Flaky, Some(Duration::ZERO), 5);
    assert!(uncertain > 0, "some are sent twice");
}

#[test]
fn cut_before_and_after_the_clock_is_known() {
    cut_everywhere(Link::Down, Some(Duration::from_millis(90)), 1);
}

#[test]
fn cut_where_only_the_cluster_knows_the_time() {
    cut_everywhere(Link::Down, None, 5);
}
