//! What this process has used, as the system counts it.

use core::time::Duration;

/// Processor time and memory of this process, as far as the system tells.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// In user code and in the system.
    pub(super) cpu: Option<(Duration, Duration)>,
    /// Memory held now.
    pub(super) resident_bytes: Option<u64>,
}

impl Usage {
    /// As of now.
    pub(super) fn now() -> Self {
        Self {
            cpu: cpu(),
            resident_bytes: resident_bytes(),
        }
    }

    /// Processor time since an earlier look; memory as of now.
    pub(super) fn since(self, before: Self) -> Self {
        let difference = |(now, then): ((Duration, Duration), (Duration, Duration))| {
            (now.0.saturating_sub(then.0), now.1.saturating_sub(then.1))
        };
        Self {
            cpu: self.cpu.zip(before.cpu).map(difference),
            ..self
        }
    }
}

#[cfg(unix)]
fn cpu() -> Option<(Duration, Duration)> {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeVal;
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let duration = |time: TimeVal| {
        let seconds = u64::try_from(time.tv_sec()).ok()?;
        let micros = u64::try_from(time.tv_usec()).ok()?;
        Some(Duration::from_secs(seconds) + Duration::from_micros(micros))
    };
    Some((duration(usage.user_time())?, duration(usage.system_time())?))
}

#[cfg(not(unix))]
const fn cpu() -> Option<(Duration, Duration)> {
    None
}

/// `VmRSS` of `/proc/self/status`, proc(5).
#[cfg(target_os = "linux")]
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(not(target_os = "linux"))]
const fn resident_bytes() -> Option<u64> {
    None
}
