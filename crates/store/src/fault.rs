//! Named points of a transaction at which a test makes something go wrong. Without the feature `faults`, which
//! only the testkit asks for, a point is nothing.

use domain::id::TenantId;

use crate::Error;

/// Where something can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The transaction has begun and nothing is known of its key yet.
    BeforeClaim,
    /// The counter is locked.
    AfterLock,
    /// Counter, claim and numbers are written.
    AfterWrite,
    /// COMMIT is about to be sent.
    BeforeCommit,
    /// COMMIT was answered; the caller does not know yet.
    AfterCommit,
}

/// What the code calls when it comes by.
#[cfg(not(feature = "faults"))]
#[expect(clippy::unused_async, reason = "with faults it can wait")]
#[inline]
pub async fn reach(_: Point, _: Option<TenantId>) -> Result<(), Error> {
    Ok(())
}

#[cfg(feature = "faults")]
pub use armed::{Action, Armed, arm, reach};

#[cfg(feature = "faults")]
mod armed {
    use std::{
        env,
        sync::{
            Arc, Mutex, OnceLock, PoisonError,
            atomic::{AtomicU32, Ordering},
        },
        time::Duration,
    };

    use super::{Error, Point, TenantId};

    /// What goes wrong.
    #[derive(Clone, Copy, Debug)]
    pub enum Action {
        /// It takes this long.
        Wait(Duration),
        /// The connection is lost.
        Lose,
        /// The process dies at once.
        Die,
    }

    #[derive(Debug)]
    struct Plan {
        point: Point,
        /// None: whoever comes by.
        tenant: Option<TenantId>,
        action: Action,
        /// Which passage meets it, from 1; 0 for each.
        passage: u32,
        passed: AtomicU32,
    }

    static PLANS: Mutex<Vec<Arc<Plan>>> = Mutex::new(Vec::new());

    /// A fault that is armed until this is dropped.
    #[derive(Debug)]
    pub struct Armed(Arc<Plan>);

    impl Armed {
        /// How often somebody came by.
        pub fn passed(&self) -> u32 {
            self.0.passed.load(Ordering::SeqCst)
        }
    }

    impl Drop for Armed {
        fn drop(&mut self) {
            PLANS.lock().unwrap_or_else(PoisonError::into_inner).retain(|plan| !Arc::ptr_eq(plan, &self.0));
        }
    }

    /// Arms a fault for one tenant's transactions in this process: at the given passage (from 1), or at each (0).
    #[must_use]
    pub fn arm(point: Point, tenant: TenantId, action: Action, passage: u32) -> Armed {
        let plan = Arc::new(Plan { point, tenant: Some(tenant), action, passage, passed: AtomicU32::new(0) });
        PLANS.lock().unwrap_or_else(PoisonError::into_inner).push(plan.clone());
        Armed(plan)
    }

    /// What the code calls when it comes by.
    pub async fn reach(point: Point, tenant: Option<TenantId>) -> Result<(), Error> {
        let mut plans: Vec<_> = PLANS.lock().unwrap_or_else(PoisonError::into_inner).clone();
        plans.extend(of_process().cloned());
        for plan in plans.iter().filter(|plan| plan.point == point && (plan.tenant.is_none() || plan.tenant == tenant)) {
            let passage = plan.passed.fetch_add(1, Ordering::SeqCst) + 1;
            if plan.passage != 0 && plan.passage != passage {
                continue;
            }
            match plan.action {
                Action::Wait(time) => tokio::time::sleep(time).await,
                Action::Lose => return Err(Error::Unavailable("a fault was armed here".into())),
                Action::Die => std::process::abort(),
            }
        }
        Ok(())
    }

    /// `SERIATIM_FAULT=after_write:7` makes the process die at the seventh passage.
    fn of_process() -> Option<&'static Arc<Plan>> {
        static PLAN: OnceLock<Option<Arc<Plan>>> = OnceLock::new();
        PLAN.get_or_init(|| {
            let word = env::var("SERIATIM_FAULT").ok()?;
            let plan = word.split_once(':').and_then(|(point, passage)| {
                let point = match point {
                    "before_claim" => Point::BeforeClaim,
                    "after_lock" => Point::AfterLock,
                    "after_write" => Point::AfterWrite,
                    "before_commit" => Point::BeforeCommit,
                    "after_commit" => Point::AfterCommit,
                    _ => return None,
                };
                let (passage, passed) = (passage.parse().ok()?, AtomicU32::new(0));
                Some(Arc::new(Plan { point, tenant: None, action: Action::Die, passage, passed }))
            });
            assert!(plan.is_some(), "SERIATIM_FAULT={word} is not POINT:PASSAGE");
            plan
        })
        .as_ref()
    }
}
