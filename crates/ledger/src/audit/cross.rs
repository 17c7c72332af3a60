//! What one table says against what another does, and what waits for somebody.

use jiff::SignedDuration;
use jiff_sqlx::ToSqlx;
use store::Error;

use super::{Auditor, MOST, add, within};

/// How long a number may be on its way to an outside system, or in doubt, before it counts as stuck.
const PATIENT: SignedDuration = SignedDuration::from_mins(15);

/// One more than is kept: so it is known that there are more.
const ASKED: i64 = 10_001;

impl Auditor<'_> {
    pub(super) async fn cross_check(&mut self) -> Result<(), Error> {
        self.went_on("texts", 0).await;
        self.duplicates().await?;
        self.went_on("histories", self.progress.of / 3).await;
        self.histories().await?;
        self.without_history().await?;
        self.lives().await?;
        self.overdue().await?;
        self.stuck().await?;
        self.guards().await
    }

    /// Over a whole series each is a walk along an index that has all it needs; what was found is then looked at.
    async fn duplicates(&mut self) -> Result<(), Error> {
        let (tenant, name) = (self.principal.tenant.0, self.series.name.as_str());
        let texts = match self.period {
            None => sqlx::query_scalar!(
                r#"select number as "number!" from number where tenant_id = $1 and series = $2 and number is not null
                    group by number having count(*) > 1 limit $3"#,
                tenant,
                name,
                ASKED
            )
            .fetch_all(self.tx.db()),
            Some(period) => sqlx::query_scalar!(
                r#"select number as "number!" from number
                    where tenant_id = $1 and series = $2 and period = $4 and number is not null
                    group by number having count(*) > 1 limit $3"#,
                tenant,
                name,
                ASKED,
                period
            )
            .fetch_all(self.tx.db()),
        };
        let texts = within(texts).await?;
        let references = match self.period {
            None => sqlx::query_scalar!(
                r#"select document_ref as "document_ref!" from number
                    where tenant_id = $1 and series = $2 and document_ref is not null
                    group by document_ref having count(*) > 1 limit $3"#,
                tenant,
                name,
                ASKED
            )
            .fetch_all(self.tx.db()),
            Some(period) => sqlx::query_scalar!(
                r#"select document_ref as "document_ref!" from number
                    where tenant_id = $1 and series = $2 and period = $4 and document_ref is not null
                    group by document_ref having count(*) > 1 limit $3"#,
                tenant,
                name,
                ASKED,
                period
            )
            .fetch_all(self.tx.db()),
        };
        let references = within(references).await?;
        if texts.is_empty() && references.is_empty() {
            return Ok(());
        }
        let rows = sqlx::query!(
            r#"select min(period) as "period!", number, document_ref from (
                 select period, number, null as document_ref from number
                  where tenant_id = $1 and series = $2 and number = any($3)
                  union all
                 select period, null, document_ref from number
                  where tenant_id = $1 and series = $2 and document_ref = any($4)) n
                group by number, document_ref order by number, document_ref"#,
            tenant,
            name,
            &texts,
            &references
        );
        for row in within(rows.fetch_all(self.tx.db())).await? {
            match (row.number, row.document_ref) {
                (Some(number), _) => drop(add(&mut self.of(&row.period).duplicates, number)),
                (None, document) => {
                    let document = document.unwrap_or_default();
                    self.impossible(Some(&row.period), || format!("document {document} has two numbers"));
                }
            }
        }
        Ok(())
    }

    /// Each step begins where the last one ended, and the number is where the last one went; a life begins with the end of
    /// another.
    async fn histories(&mut self) -> Result<(), Error> {
        let rows = within(
            sqlx::query!(
                r#"select h.period, h.value, h.ended as "ended!", h.broken as "broken!", h.lives as "lives!", n.state as "state?", n.life as "life?"
                     from (select part, period, value, (array_agg("to" order by entry desc))[1] as ended,
                                  coalesce(bool_or(before <> "from"), false)
                                    or not (array_agg("from" order by entry))[1] = any('{issued,reserved,missing}') as broken,
                                  count(*) filter (where "from" = 'released' and "to" <> 'released') + 1 as lives
                             from (select part, period, value, entry, "from", "to",
                                          lag("to") over (partition by part, period, value order by entry) as before
                                     from history where tenant_id = $1 and series = $2 and ($3::text is null or period = $3)) h
                            group by part, period, value) h
                     left join lateral (select state, life from number
                       where tenant_id = $1 and series = $2 and part = h.part and period = h.period and value = h.value offset 0) n on true
                    where h.broken or n.state is distinct from h.ended or n.life is distinct from h.lives limit $4"#,
                self.principal.tenant.0,
                self.series.name.as_str(),
                self.period,
                ASKED
            )
            .fetch_all(self.tx.db()),
        )
        .await?;
        for row in rows {
            let value = row.value;
            let state = row.state.unwrap_or_else(|| "not there".to_owned());
            let what = match row.broken {
                true => format!("a step in the history of value {value} does not begin where the last one ended"),
                false if state != row.ended => format!("value {value} is {state}, and its history ended with {}", row.ended),
                false => format!(
                    "value {value} is in its life {}, and its history tells of {}",
                    row.life.unwrap_or_default(),
                    row.lives
                ),
            };
            self.impossible(Some(&row.period), || what);
        }
        Ok(())
    }

    /// As many lives as histories tell of.
    async fn lives(&mut self) -> Result<(), Error> {
        let told = within(
            sqlx::query_scalar!(
                r#"select count(*) as "count!" from history
                    where tenant_id = $1 and series = $2 and ($3::text is null or period = $3)
                      and "from" = 'released' and "to" <> 'released'"#,
                self.principal.tenant.0,
                self.series.name.as_str(),
                self.period
            )
            .fetch_one(self.tx.db()),
        )
        .await?;
        let later = self.later_lives;
        if later != told {
            self.impossible(None, || format!("numbers were given again {later} times, and histories tell of {told}"));
        }
        Ok(())
    }

    /// Where nothing is noted, nothing has happened.
    async fn without_history(&mut self) -> Result<(), Error> {
        let rows = within(
            sqlx::query!(
                r#"select n.period, n.value, n.state, n.life from number n
                    where n.tenant_id = $1 and n.series = $2 and ($3::text is null or n.period = $3) and n.state <> 'issued'
                      and (n.state not in ('reserved', 'missing') or n.life > 1)
                      and not exists (select from history h where h.tenant_id = $1 and h.series = $2 and h.part = n.part
                                         and h.period = n.period and h.value = n.value)
                    limit $4"#,
                self.principal.tenant.0,
                self.series.name.as_str(),
                self.period,
                ASKED
            )
            .fetch_all(self.tx.db()),
        )
        .await?;
        for row in rows {
            let what = || format!("value {} is {} in its life {}, and its history is empty", row.value, row.state, row.life);
            self.impossible(Some(&row.period), what);
        }
        Ok(())
    }

    async fn overdue(&mut self) -> Result<(), Error> {
        let rows = within(
            sqlx::query!(
                r#"select period, number as "number!" from number
                    where tenant_id = $1 and series = $2 and ($3::text is null or period = $3)
                      and state = 'reserved' and due is not null and due < $4 order by due, period, value limit $5"#,
                self.principal.tenant.0,
                self.series.name.as_str(),
                self.period,
                self.at.to_sqlx() as _,
                i64::try_from(MOST).unwrap_or(i64::MAX)
            )
            .fetch_all(self.tx.db()),
        )
        .await?;
        for row in rows {
            self.of(&row.period).overdue.push(row.number);
        }
        Ok(())
    }

    async fn stuck(&mut self) -> Result<(), Error> {
        let since = self.at.checked_sub(PATIENT).unwrap_or(self.at);
        let rows = within(
            sqlx::query!(
                r#"select n.period, n.number as "number!" from number n
                     left join lateral (select at from history h where h.tenant_id = $1 and h.series = $2 and h.part = n.part
                       and h.period = n.period and h.value = n.value and "from" <> "to" order by entry desc limit 1) h on true
                    where n.tenant_id = $1 and n.series = $2 and ($3::text is null or n.period = $3) and n.state <> 'issued'
                      and n.state in ('sending', 'in_doubt') and coalesce(h.at, n.at) < $4
                    order by n.period, n.value limit $5"#,
                self.principal.tenant.0,
                self.series.name.as_str(),
                self.period,
                since.to_sqlx() as _,
                i64::try_from(MOST).unwrap_or(i64::MAX)
            )
            .fetch_all(self.tx.db()),
        )
        .await?;
        for row in rows {
            self.of(&row.period).stuck.push(row.number);
        }
        Ok(())
    }

    /// The database's own barriers: without them this is only what the program says.
    async fn guards(&mut self) -> Result<(), Error> {
        let gone = within(
            sqlx::query_scalar!(
                r#"select wanted as "wanted!" from unnest(array['number_pkey', 'number_follows', 'number_head', 'claim_pkey',
                     'counter_pkey', 'history_moves', 'run_pkey']) wanted
                    where not exists (select from pg_constraint where conname = wanted and convalidated
                      and connamespace = 'public'::regnamespace)
                   union all
                   select wanted from unnest(array['number_text', 'number_document_ref']) wanted
                    where not exists (select from pg_index join pg_class on pg_class.oid = indexrelid
                      where relname = wanted and relnamespace = 'public'::regnamespace and indisunique and indisvalid)
                   union all
                   select wanted from unnest(array['number', 'history', 'run', 'claim', 'counter', 'series']) wanted
                    where not exists (select from pg_class where relname = wanted and relnamespace = 'public'::regnamespace
                      and relrowsecurity and relforcerowsecurity)"#
            )
            .fetch_all(self.tx.db()),
        )
        .await?;
        for name in gone {
            self.impossible(None, || format!("the database's guard {name} is gone"));
        }
        Ok(())
    }
}
