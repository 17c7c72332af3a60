-- A shard: series, their counters, and every number that was ever given.
--
-- What must be true is refused otherwise by this schema, whatever the program does:
--   * a value is given once                      number_pkey
--   * no value is skipped                        number_follows: value n stands on value n − 1,
--                                                number_head: or it opens a run that says who and why
--   * a text, and a document, has one number     number_text, number_document_ref
--   * a key has one effect                       claim_pkey, written in the same transaction
--   * nothing disappears                         no DELETE grant; history and runs are append-only
--   * no tenant reaches another                  the tenant leads every key; FORCE row-level security
--
-- The unique indexes on number beside its primary key are PARTIAL on purpose. With full ones, which share
-- their leading columns with the predecessor's key, a fresh table makes PostgreSQL cache a foreign-key
-- check that walks the wrong index, and inserts slow down a hundredfold within seconds.

revoke create on schema public from public;
grant usage on schema public to seriatim_app, seriatim_worker;

-- The tenant of the present transaction; null outside one, and null equals nothing.
create function current_tenant() returns uuid
  language sql stable parallel safe
  return nullif(current_setting('seriatim.tenant', true), '')::uuid;

create function refuse_change() returns trigger
  language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name using errcode = 'insufficient_privilege';
end
$$;

create table series (
  tenant_id  uuid not null,
  series     text not null check (series ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  issuer     text not null check (issuer ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  pattern    text not null check (char_length(pattern) between 1 and 200),
  reset      text not null check (reset in ('never', 'yearly', 'quarterly', 'monthly', 'daily', 'fiscal_year')),
  time_zone  text not null,
  first      bigint not null check (first between 0 and 9007199254740991),
  gapless    boolean not null,
  overflow   text not null check (overflow in ('refuse', 'widen')),
  max_length integer not null check (max_length between 1 and 64),
  status     text not null default 'active' check (status in ('active', 'paused', 'closed')),
  version    bigint not null default 1 check (version >= 1),
  epoch      bigint not null check (epoch >= 1),
  created_at timestamptz not null,
  created_by text not null,
  primary key (tenant_id, series)
);

-- The one row that an issue locks. It is updated for every transaction and carries no index beside its
-- key, so that updates stay on their page (HOT).
create table counter (
  tenant_id      uuid not null,
  series         text not null,
  part           smallint not null check (part >= 0),
  period         text not null check (char_length(period) between 1 and 16),
  last           bigint not null check (last between -1 and 9007199254740991),
  gate           text not null default 'open' check (gate in ('open', 'paused', 'closed')),
  config_version bigint not null check (config_version >= 1),
  epoch          bigint not null check (epoch >= 1),
  last_date      date,
  primary key (tenant_id, series, part, period),
  foreign key (tenant_id, series) references series
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- An unbroken stretch of values. Values jump only where a run says who and why.
create table run (
  tenant_id uuid not null,
  series    text not null,
  part      smallint not null,
  period    text not null,
  first     bigint not null check (first between 0 and 9007199254740991),
  "limit"   bigint check ("limit" between first and 9007199254740991),
  why       text not null check (why in ('start', 'takeover', 'authorisation', 'raised')),
  principal text not null,
  at        timestamptz not null,
  primary key (tenant_id, series, part, period, first),
  foreign key (tenant_id, series, part, period) references counter
);

-- A number. Its row is the first entry of its own history.
create table number (
  tenant_id      uuid not null,
  series         text not null,
  part           smallint not null,
  period         text not null,
  value          bigint not null check (value between 0 and 9007199254740991),
  prev           bigint check (prev = value - 1),
  head           bigint generated always as (case when prev is null then value end) stored,
  number         text check (char_length(number) between 1 and 64),
  state          text not null check (state in
                   ('reserved', 'sending', 'failed', 'in_doubt', 'issued', 'voided', 'released', 'missing')),
  document_ref   text check (char_length(document_ref) between 1 and 200),
  document_date  date,
  metadata       jsonb check (jsonb_typeof(metadata) = 'object'),
  config_version bigint not null check (config_version >= 1),
  at             timestamptz not null,
  principal      text not null,
  operation_id   text not null,
  trace_id       text,
  primary key (tenant_id, series, part, period, value),
  constraint number_follows foreign key (tenant_id, series, part, period, prev) references number,
  constraint number_head    foreign key (tenant_id, series, part, period, head) references run,
  -- A missing value never had a text, a given one has text and date; a released one has no document.
  constraint number_has_text check ((state = 'missing') = (number is null)),
  constraint number_has_date check (state = 'missing' or document_date is not null),
  constraint number_released check (state <> 'released' or document_ref is null)
);
create unique index number_text on number (tenant_id, series, number) where number is not null;
create unique index number_document_ref on number (tenant_id, series, document_ref) where document_ref is not null;

-- What became of a number later. Append-only.
create table history (
  tenant_id    uuid not null,
  series       text not null,
  part         smallint not null,
  period       text not null,
  value        bigint not null,
  entry        bigint generated always as identity,
  at           timestamptz not null,
  "from"       text not null,
  "to"         text not null,
  principal    text not null,
  operation_id text not null,
  reason       text check (char_length(reason) between 1 and 2000),
  trace_id     text,
  primary key (tenant_id, series, part, period, value, entry),
  foreign key (tenant_id, series, part, period, value) references number,
  constraint history_moves check (("from", "to") in (
    ('reserved', 'issued'), ('reserved', 'failed'), ('reserved', 'voided'), ('reserved', 'released'), ('reserved', 'sending'),
    ('sending', 'issued'), ('sending', 'failed'), ('sending', 'in_doubt'),
    ('failed', 'issued'), ('failed', 'voided'), ('failed', 'sending'),
    ('in_doubt', 'issued'), ('in_doubt', 'voided'), ('in_doubt', 'sending'),
    ('issued', 'voided'),
    ('released', 'reserved'), ('released', 'issued')))
);

-- An idempotency key and what it did. `first` and `count` are the values it took; where documents were
-- already numbered, `answer` lists every value of the answer in order as [period, part, value].
create table claim (
  tenant_id   uuid not null,
  series      text not null,
  key         text not null check (key ~ '^[!-~]{1,255}$'),
  fingerprint bytea not null check (octet_length(fingerprint) = 32),
  operation   text not null check (operation in ('issue', 'reserve', 'import')),
  part        smallint not null,
  period      text not null,
  first       bigint,
  count       integer not null check (count >= 0),
  answer      jsonb check (jsonb_typeof(answer) = 'array'),
  at          timestamptz not null,
  primary key (tenant_id, series, key),
  constraint claim_took check ((count > 0) = (first is not null)),
  constraint claim_answers check (count > 0 or answer is not null)
);

-- Row-level security, forced: not even the owner passes without a policy.
alter table series  enable row level security;
alter table series  force row level security;
alter table counter enable row level security;
alter table counter force row level security;
alter table run     enable row level security;
alter table run     force row level security;
alter table number  enable row level security;
alter table number  force row level security;
alter table history enable row level security;
alter table history force row level security;
alter table claim   enable row level security;
alter table claim   force row level security;

create policy series_tenant  on series  for all to seriatim_app
  using (tenant_id = current_tenant()) with check (tenant_id = current_tenant());
create policy counter_tenant on counter for all to seriatim_app
  using (tenant_id = current_tenant()) with check (tenant_id = current_tenant());
create policy run_tenant     on run     for all to seriatim_app
  using (tenant_id = current_tenant()) with check (tenant_id = current_tenant());
create policy number_tenant  on number  for all to seriatim_app
  using (tenant_id = current_tenant()) with check (tenant_id = current_tenant());
create policy history_tenant on history for all to seriatim_app
  using (tenant_id = current_tenant()) with check (tenant_id = current_tenant());
create policy claim_tenant   on claim   for all to seriatim_app
  using (tenant_id = current_tenant()) with check (tenant_id = current_tenant());

-- The owner sees every row, by policies that say so: a later migration must not pass over rows in silence.
create policy series_owner  on series  for all to seriatim_owner using (true) with check (true);
create policy counter_owner on counter for all to seriatim_owner using (true) with check (true);
create policy run_owner     on run     for all to seriatim_owner using (true) with check (true);
create policy number_owner  on number  for all to seriatim_owner using (true) with check (true);
create policy history_owner on history for all to seriatim_owner using (true) with check (true);
create policy claim_owner   on claim   for all to seriatim_owner using (true) with check (true);

-- The worker finds (tenant, series, value) of what is open, and nothing that is written on a document.
create policy series_worker  on series  for select to seriatim_worker using (true);
create policy number_worker  on number  for select to seriatim_worker
  using (state in ('reserved', 'sending', 'failed', 'in_doubt'));

-- Grants: what the app role may do at all. The columns that say which value a row is are never updated.
grant select, insert, update (issuer, pattern, reset, time_zone, first, gapless, overflow, max_length, status, version, epoch)
  on series to seriatim_app;
grant select, insert, update (last, gate, config_version, epoch, last_date) on counter to seriatim_app;
grant select, insert on run to seriatim_app;
grant select, insert, update (number, state, document_ref, document_date, metadata, config_version) on number to seriatim_app;
grant select, insert on history to seriatim_app;
grant select, insert, delete on claim to seriatim_app;
grant select (tenant_id, series, status, epoch) on series to seriatim_worker;
grant select (tenant_id, series, part, period, value, state, at) on number to seriatim_worker;

create trigger history_append_only before update or delete or truncate on history
  for each statement execute function refuse_change();
create trigger run_append_only before update or delete or truncate on run
  for each statement execute function refuse_change();
create trigger number_stays before delete or truncate on number
  for each statement execute function refuse_change();
