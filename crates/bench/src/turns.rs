//! Turns: contestants are measured one after the other, several times, and the rounds change who goes first, so
//! that what else the machine does meets all of them.

use std::{
    net::SocketAddr,
    path::PathBuf,
    time::{Duration, Instant},
};

use sqlx::Connection;

use crate::{
    Failure,
    gateway::Gateway,
    load::{Load, Outcome, Requests},
    plan::Plan,
    proof::Held,
    requests::Issues,
    rivals::Rival,
    say,
    server::{DIRECTORY, SHARD, Server},
    stock, watch,
};

/// Everything that a figure needs.
pub(crate) struct Bench {
    /// Where all contestants write.
    pub(crate) server: Server,
    /// The sizes.
    pub(crate) plan: Plan,
    /// The program to be measured.
    pub(crate) program: PathBuf,
    /// The best speed so far of one hot series, numbers/s.
    pub(crate) peak: Option<f64>,
    /// The turns that were taken.
    pub(crate) turns: usize,
}

/// Who takes a turn.
#[derive(Clone, Debug)]
pub(crate) enum Contestant {
    /// The program.
    Ours(Ours),
    /// A script.
    Rival(Rival),
}

/// How the program is called.
#[derive(Clone, Debug)]
pub(crate) struct Ours {
    /// What a person calls it.
    pub(crate) name: &'static str,
    /// So many processes.
    pub(crate) gateways: usize,
    /// So many clients, each over a connection of its own.
    pub(crate) clients: usize,
    /// What they ask for.
    pub(crate) what: What,
    /// The shard, if it is not to be a fresh one.
    pub(crate) shard: Option<String>,
    /// How long it runs unmeasured, if not as long as all others.
    pub(crate) warm: Option<Duration>,
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A number of the hot series.
    Single,
    /// A number of any of so many series.
    Spread(u64),
    /// So many numbers of the hot series at once.
    Batch(u32),
}

impl What {
    fn numbers(self) -> u32 {
        match self {
            Self::Single | Self::Spread(_) => 1,
            Self::Batch(count) => count,
        }
    }

    /// Requests of this kind.
    pub(crate) fn requests(self) -> Issues {
        let api_key = stock::api_key(stock::TENANT);
        match self {
            Self::Single => Issues::single(api_key.reveal(), stock::HOT),
            Self::Spread(rows) => Issues::spread(api_key.reveal(), rows),
            Self::Batch(count) => Issues::batch(api_key.reveal(), stock::HOT, count),
        }
    }
}

impl Ours {
    /// Clients that each want a number of the one hot series.
    pub(crate) fn hot(name: &'static str, clients: usize) -> Self {
        Self { name, gateways: 1, clients, what: What::Single, shard: None, warm: None }
    }

    /// Whether it is one gateway on one hot series of a shard without numbers.
    fn is_plain(&self) -> bool {
        self.gateways == 1 && self.what == What::Single && self.shard.is_none() && self.warm.is_none()
    }
}

/// What turns showed; of several, the median of each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shown {
    /// Numbers a second.
    pub(crate) speed: f64,
    /// The time within which half of the answers came, in milliseconds.
    pub(crate) p50: Option<f64>,
    /// The time within which 99 of 100 came.
    pub(crate) p99: Option<f64>,
    /// CPU time of the gateways for each number, in microseconds.
    pub(crate) gateway_cpu: Option<f64>,
    /// CPU time of PostgreSQL for each number.
    pub(crate) server_cpu: Option<f64>,
    /// The most memory of a gateway, in MiB.
    pub(crate) memory: Option<f64>,
}

impl Bench {
    /// All rounds; what each contestant showed, in the order given.
    pub(crate) async fn rounds(&mut self, figure: &str, contestants: &[Contestant]) -> Result<Vec<Shown>, Failure> {
        let mut all = vec![Vec::new(); contestants.len()];
        for round in 0..self.plan.rounds {
            let mut order: Vec<usize> = (0..contestants.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for nth in order {
                let (name, shown) = match &contestants[nth] {
                    Contestant::Ours(ours) => (ours.name, self.ours(ours).await),
                    Contestant::Rival(rival) => (rival.name, self.rival(*rival).await),
                };
                let shown = shown.map_err(|why| format!("{name}: {why}"))?;
                say(&format!("{figure}, round {} of {}, {name}: {:.0} numbers/s", round + 1, self.plan.rounds, shown.speed));
                all[nth].push(shown);
            }
        }
        let all: Vec<Shown> = all.iter().map(|turns| Shown::median(turns)).collect();
        for (contestant, shown) in contestants.iter().zip(&all) {
            if matches!(contestant, Contestant::Ours(ours) if ours.is_plain()) && self.peak.is_none_or(|peak| peak < shown.speed)
            {
                self.peak = Some(shown.speed);
            }
        }
        Ok(all)
    }

    async fn rival(&mut self, rival: Rival) -> Result<Shown, Failure> {
        self.turns += 1;
        let shown = rival.turn(&mut self.server, &self.plan).await?;
        Ok(Shown { speed: shown.speed, p50: shown.p50, ..Shown::default() })
    }

    /// One turn of the program.
    pub(crate) async fn ours(&mut self, ours: &Ours) -> Result<Shown, Failure> {
        let mut stage = self.stage(ours.shard.as_deref(), ours.gateways).await?;
        let mut load = Load::start(&stage.addresses(), ours.clients, || ours.what.requests());
        tokio::time::sleep(ours.warm.unwrap_or(self.plan.warm)).await;
        load.measure();
        let before = stage.cpu(&self.server)?;
        tokio::time::sleep(self.plan.turn()).await;
        let after = stage.cpu(&self.server)?;
        let memory = stage.peak_memory()?;
        let outcome = load.stop().await?;
        stage.count(&outcome)?;
        self.leave(stage, ours.what.numbers()).await?;
        if outcome.other_than(201) > 0 {
            return Err(format!("not every request got its number: {}", outcome.counts()).into());
        }
        let speed = outcome.speed(201) * f64::from(ours.what.numbers());
        let each = |from: Duration, to: Duration| {
            let numbers = speed * self.plan.turn().as_secs_f64();
            (numbers > 0.0).then(|| to.saturating_sub(from).as_secs_f64() * 1e6 / numbers)
        };
        Ok(Shown {
            speed,
            p50: outcome.within(201, 50),
            p99: outcome.within(201, 99),
            gateway_cpu: each(before.0, after.0),
            server_cpu: each(before.1, after.1),
            memory: Some(memory),
        })
    }

    /// Gateways on a shard, by default a fresh one.
    pub(crate) async fn stage(&mut self, shard: Option<&str>, gateways: usize) -> Result<Stage, Failure> {
        self.turns += 1;
        let (shard, fresh) = match shard {
            Some(shard) => {
                self.server.checkpoint().await?;
                (shard.to_owned(), false)
            }
            None => (self.server.clone_of(SHARD).await?, true),
        };
        let before = Held::read(&mut self.server.connect(&shard).await?).await?;
        let mut running = Vec::new();
        for _ in 0..gateways {
            running.push(Gateway::start(&self.program, &self.server, DIRECTORY, &shard).await?);
        }
        Ok(Stage { gateways: running, shard, fresh, before, known: 0, unknown: 0 })
    }

    /// Stops the gateways, proves that what was acknowledged is written, and removes the shard if it was fresh. A
    /// request that got another answer than a number may have left one all the same.
    pub(crate) async fn leave(&mut self, stage: Stage, numbers: u32) -> Result<(), Failure> {
        for gateway in stage.gateways {
            gateway.stop().await?;
        }
        let mut db = self.server.connect(&stage.shard).await?;
        let numbers = i64::from(numbers);
        let (least, most) = (stage.known, stage.known + stage.unknown);
        Held::read(&mut db).await?.expect(stage.before, &(least * numbers..=most * numbers), &(least..=most))?;
        db.close().await?;
        if stage.fresh {
            self.server.drop(&stage.shard).await?;
        }
        Ok(())
    }

    /// A load on a stage for so long; what came of it.
    pub(crate) async fn load_for<R: Requests>(
        &self,
        stage: &mut Stage,
        clients: usize,
        time: Duration,
        requests: impl Fn() -> R,
    ) -> Result<Outcome, Failure> {
        let mut load = Load::start(&stage.addresses(), clients, requests);
        load.measure();
        let begun = Instant::now();
        while begun.elapsed() < time {
            tokio::time::sleep(time.saturating_sub(begun.elapsed()).min(Duration::from_secs(10))).await;
            if time > Duration::from_secs(10) {
                say(&format!("  {} of {} s", begun.elapsed().as_secs(), time.as_secs()));
            }
        }
        let outcome = load.stop().await?;
        stage.count(&outcome)?;
        Ok(outcome)
    }
}

/// Running gateways and the shard they write to.
pub(crate) struct Stage {
    /// The gateways.
    pub(crate) gateways: Vec<Gateway>,
    shard: String,
    fresh: bool,
    before: Held,
    /// Requests that were answered with a number, and those that got another answer.
    known: i64,
    unknown: i64,
}

impl Stage {
    /// Takes note of what was acknowledged.
    fn count(&mut self, outcome: &Outcome) -> Result<(), Failure> {
        self.known += i64::try_from(outcome.all(201))?;
        self.unknown += i64::try_from(outcome.other_than(201))?;
        Ok(())
    }

    /// Where the gateways listen.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.gateways.iter().map(|gateway| gateway.address).collect()
    }

    /// The most memory that one of the gateways has had.
    pub(crate) fn peak_memory(&self) -> Result<f64, Failure> {
        self.gateways.iter().try_fold(0.0, |most: f64, gateway| Ok(most.max(watch::peak_memory(gateway.pid)?)))
    }

    /// The CPU time used by the gateways and by PostgreSQL.
    fn cpu(&self, server: &Server) -> Result<(Duration, Duration), Failure> {
        let gateways = self.gateways.iter().map(|gateway| watch::cpu_of(gateway.pid)).sum::<Result<Duration, _>>()?;
        Ok((gateways, watch::cpu_of_family(server.pid())?))
    }
}

impl Shown {
    fn median(turns: &[Self]) -> Self {
        let of = |part: fn(&Self) -> Option<f64>| median(turns.iter().filter_map(part).collect());
        Self {
            speed: of(|turn| Some(turn.speed)).unwrap_or_default(),
            p50: of(|turn| turn.p50),
            p99: of(|turn| turn.p99),
            gateway_cpu: of(|turn| turn.gateway_cpu),
            server_cpu: of(|turn| turn.server_cpu),
            memory: of(|turn| turn.memory),
        }
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some(f64::midpoint(values[last / 2], values[values.len() / 2]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_several() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(vec![]), None);
    }
}
