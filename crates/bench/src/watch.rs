//! What processes use, by /proc (proc(5)): Linux only.

use std::{fs, time::Duration};

use crate::Failure;

/// The CPU time that a process has used.
pub(crate) fn cpu_of(pid: u32) -> Result<Duration, Failure> {
    Ok(ticks(Stat::read(pid)?.own))
}

/// The CPU time that a process and all that it started have used; of those that ended it keeps the sum.
pub(crate) fn cpu_of_family(parent: u32) -> Result<Duration, Failure> {
    let first = Stat::read(parent)?;
    let pids = fs::read_dir("/proc")?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // One that ends while we look has gone into the sum, or will be there next time.
    let children = pids.filter_map(|pid| Stat::read(pid).ok()).filter(|stat| stat.parent == parent);
    Ok(ticks(first.own + first.ended + children.map(|stat| stat.own + stat.ended).sum::<u64>()))
}

/// The most memory that a process has had at once, in MiB.
pub(crate) fn peak_memory(pid: u32) -> Result<f64, Failure> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u32>().ok());
    Ok(f64::from(kib.ok_or("no VmHWM in /proc")?) / 1024.0)
}

struct Stat {
    parent: u32,
    /// Clock ticks of its own.
    own: u64,
    /// Clock ticks of children that ended.
    ended: u64,
}

impl Stat {
    fn read(pid: u32) -> Result<Self, Failure> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat"))?).ok_or_else(|| "an unknown form of /proc/PID/stat".into())
    }

    /// The name in brackets may hold anything; after it the fields are counted from the third.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        let field = |nth: usize| fields.get(nth - 3)?.parse::<u64>().ok();
        Some(Self { parent: u32::try_from(field(4)?).ok()?, own: field(14)? + field(15)?, ended: field(16)? + field(17)? })
    }
}

fn ticks(ticks: u64) -> Duration {
    Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = Stat::parse("7 (a) b) S 3 7 7 0 -1 0 0 0 0 0 11 22 33 44 20 0").unwrap();
        assert_eq!((stat.parent, stat.own, stat.ended), (3, 33, 77));
    }

    #[test]
    fn this_process_is_seen() {
        assert!(peak_memory(std::process::id()).unwrap() > 0.1);
        assert!(cpu_of_family(std::process::id()).unwrap() >= cpu_of(std::process::id()).unwrap());
    }
}
