//! The power goes in every single write and erasure of the flash, torn in several ways; after the
//! next power-on the tables equal the model. The driver is the real one, the cluster simulated.

use core::time::Duration;

use embassy_gateway::host::{Board, Chip, Cut, Cycle, Fate, Link, Scene, Tear};

/// What a board that is cut goes through.
#[derive(Clone, Copy, Debug)]
struct Plot {
    /// How the link is in the middle of it.
    link: Link,
    /// When the board knows the time.
    clock_after: Option<Duration>,
}

/// A chip whose oldest page is in the middle, and which is empty.
async fn used_chip(scene: &Scene) -> Chip {
    let chip = Chip::new(8);
    let readings = 30;
    let cycle = scene.power_cycle(&chip, Board::new(readings)).await;
    assert_eq!(cycle.gateway.written, readings);
    chip
}

/// A board that is cut, then one that measures a little more and writes all that is left. Returns
/// what the first did, and the rows.
async fn play(scene: &Scene, chip: &Chip, plot: Plot, cut: Option<Cut>) -> (Cycle, usize) {
    scene.clear().await.expect("the tables can be emptied");
    let chip = chip.copy();
    scene.set_link_after(Duration::from_millis(60), plot.link);
    scene.set_link_after(Duration::from_millis(160), Link::Up);
    let board = Board {
        cut,
        clock_after: plot.clock_after,
        ..Board::new(24)
    };
    let first = scene.power_cycle(&chip, board).await;
    scene.pause(Duration::from_millis(100)).await;
    let second = scene.power_cycle(&chip, Board::new(5)).await;
    assert_eq!(second.left, 0, "all is written");
    scene.pause(Duration::from_millis(200)).await;
    let rows = scene.compare().await;
    let rows = rows.unwrap_or_else(|differs| panic!("{plot:?} {cut:?}: {differs}"));
    assert!(scene.model().count(Fate::Open) <= 1);
    assert_eq!(chip.stats().spoiled, 0, "no word is written over another");
    (first, rows)
}

/// Cuts in every so many operations until there are no more, torn in each way. Returns how many
/// batches were sent again although they may have been applied.
fn cut_everywhere(plot: Plot, step: usize) -> u32 {
    let mut uncertain = 0;
    for (first, tear) in (0_u64..).zip(Tear::EACH) {
        let played = Scene::play(first, move |scene| async move {
            let chip = used_chip(&scene).await;
            let mut uncertain = 0;
            for operation in (first..).step_by(step) {
                let cut = Cut { operation, tear };
                let (cycle, _) = play(&scene, &chip, plot, Some(cut)).await;
                uncertain += cycle.gateway.uncertain;
                if !cycle.was_cut {
                    assert!(operation > 50, "there is much to cut: {operation}");
                    break;
                }
            }
            uncertain
        });
        uncertain += played.expect("the scene ends");
    }
    uncertain
}

#[test]
fn without_a_cut_every_reading_is_a_row() {
    for link in [Link::Up, Link::Down, Link::Flaky, Link::Silent] {
        let played = Scene::play(1, move |scene| async move {
            let clock_after = Some(Duration::ZERO);
            let chip = used_chip(&scene).await;
            play(&scene, &chip, Plot { link, clock_after }, None).await
        });
        let (cycle, rows) = played.expect("the scene ends");
        assert!(!cycle.was_cut);
        assert_eq!(rows, 29);
    }
}

#[test]
fn cut_while_the_link_is_up() {
    let plot = Plot {
        link: Link::Up,
        clock_after: Some(Duration::ZERO),
    };
    cut_everywhere(plot, 5);
}

#[test]
fn cut_while_the_link_goes_down_and_up() {
    let plot = Plot {
        link: Link::Down,
        clock_after: Some(Duration::ZERO),
    };
    assert!(cut_everywhere(plot, 5) > 0, "some are sent twice");
}

#[test]
fn cut_while_nobody_answers() {
    let plot = Plot {
        link: Link::Silent,
        clock_after: Some(Duration::ZERO),
    };
    assert!(cut_everywhere(plot, 7) > 0, "some are sent twice");
}

#[test]
fn cut_while_batches_are_sent_twice() {
    let plot = Plot {
        link: Link::Flaky,
        clock_after: Some(Duration::ZERO),
    };
    assert!(cut_everywhere(plot, 5) > 0, "some are sent twice");
}

#[test]
fn cut_before_and_after_the_clock_is_known() {
    let plot = Plot {
        link: Link::Down,
        clock_after: Some(Duration::from_millis(90)),
    };
    cut_everywhere(plot, 1);
}

#[test]
fn cut_where_only_the_cluster_knows_the_time() {
    let plot = Plot {
        link: Link::Down,
        clock_after: None,
    };
    cut_everywhere(plot, 5);
}
