//! Levels that count replicas in the coordinator's data centre keep requests there.

use super::*;
use crate::wire::SerialConsistency;

/// Replicas on both sides, and every level: conditional or not, with each level of the condition.
#[test]
fn local_levels_stay_at_home_unless_told_otherwise() {
    let mut writer = writer(&NODES);
    learn(&mut writer, "eventual", None, &[(5, 1), (3, 2), (1, 3)]);
    let view = writer.view();
    let (home, all) = ("3D/2 1D/3 | 2 4", "3D/2 1D/3 5F/1 | 2 4 6");
    for consistency in Consistency::ALL {
        let named_local = format!("{consistency:?}").starts_with("Local");
        for (is_lwt, serial, conditional_is_local) in [
            (false, None, false),
            (false, Some(SerialConsistency::LocalSerial), false),
            (true, Some(SerialConsistency::Serial), false),
            (true, Some(SerialConsistency::LocalSerial), true),
        ] {
            let request = RouteRequest {
                is_lwt,
                serial_consistency: serial,
                ..request(&view, "eventual", 50, consistency)
            };
            let stays = named_local || conditional_is_local;
            for (dc_failover, at_local_levels, expected) in [
                (false, false, home),
                (false, true, home),
                (true, false, if stays { home } else { all }),
                (true, true, all),
            ] {
                let policy = Policy {
                    dc_failover_at_local_levels: at_local_levels,
                    ..policy("a", "", dc_failover)
                };
                let found = plan(&view, &request, &policy, &Fake::default(), 3, 0);
                let name = format!("{request:?} {dc_failover} {at_local_levels}");
                assert_eq!(show(&found), expected, "{name}");
            }
        }
    }
    // With everything at home down there is no target at a local level, and there is at others.
    for n in 1..=4_u128 {
        let idx = writer.topology().node_by_host_id(Uuid::from_u128(n));
        writer.set_up(idx.unwrap(), false);
    }
    let view = writer.view();
    for (level, expected) in [(Consistency::LocalOne, "|"), (Consistency::One, "5F/1 | 6")] {
        let request = request(&view, "eventual", 50, level);
        let policy = Policy {
            dc_failover_at_local_levels: false,
            ..policy("a", "", true)
        };
        let found = plan(&view, &request, &policy, &Fake::default(), 3, 0);
        assert_eq!(show(&found), expected);
    }
}

/// There is one leader for all data centres, so a local level does not keep a request from it.
#[test]
fn the_leader_is_contacted_across_data_centres_at_local_levels_too() {
    let mut writer = writer(&NODES);
    learn(&mut writer, "strong", Some(1), &[(5, 1), (3, 2), (1, 3)]);
    let view = writer.view();
    for (dc_failover, expected) in [(false, "1R/3 3D/2 | 2 4"), (true, "5L/1 1R/3 3D/2 | 2 4")] {
        let request = request(&view, "strong", 50, Consistency::LocalQuorum);
        let policy = Policy {
            dc_failover_at_local_levels: false,
            ..policy("a", "r1", dc_failover)
        };
        let found = plan(&view, &request, &policy, &Fake::default(), 3, 0);
        assert_eq!(show(&found), expected);
    }
}
