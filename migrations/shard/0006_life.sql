-- Reservations with a deadline, numbers that are given back and given again, periods that are closed.

alter table series
  add column release text not null default 'never' check (release in ('never', 'last_unsent')),
  add column reservation_ttl_seconds bigint check (reservation_ttl_seconds between 1 and 315576000),
  add column reservation_overdue text not null default 'alarm' check (reservation_overdue in ('alarm', 'void'));
grant update (release, reservation_ttl_seconds, reservation_overdue) on series to seriatim_app;

-- A number that was released and given again is in its next life; a claim says in which life it answered with it.
-- `due` is until when a reservation may stay one, fixed when it is made.
alter table number
  add column life integer not null default 1 check (life >= 1),
  add column due  timestamptz;
grant update (life, due) on number to seriatim_app;

-- What is not simply issued is found without passing what is; and so is what is overdue, and where it is to be voided.
create index number_state on number (tenant_id, series, state, part, period, value) where state <> 'issued';
create index number_due on number (tenant_id, series, due) where state = 'reserved' and due is not null;
create index series_sweep on series (tenant_id, series) where reservation_overdue = 'void';

-- Who closed a period, and when; null also where the series as a whole was closed.
alter table counter
  add column closed_at timestamptz,
  add column closed_by text,
  add constraint counter_closed check ((closed_at is null) = (closed_by is null) and (closed_at is null or gate = 'closed'));
grant update (closed_at, closed_by) on counter to seriatim_app;

-- An entry that leaves the state as it is says what else was changed, and why.
alter table history drop constraint history_moves;
alter table history add constraint history_moves check (("from", "to") in (
    ('reserved', 'issued'), ('reserved', 'failed'), ('reserved', 'voided'), ('reserved', 'released'), ('reserved', 'sending'),
    ('sending', 'issued'), ('sending', 'failed'), ('sending', 'in_doubt'),
    ('failed', 'issued'), ('failed', 'voided'), ('failed', 'sending'),
    ('in_doubt', 'issued'), ('in_doubt', 'voided'), ('in_doubt', 'sending'),
    ('issued', 'voided'),
    ('released', 'reserved'), ('released', 'issued'))
  or ("from" = "to" and reason is not null));
-- What was changed stands before the caller's reason, which has at most 2,000 characters.
alter table history drop constraint history_reason_check;
alter table history add constraint history_reason_check check (char_length(reason) between 1 and 2200);

-- What the installation does by itself, one of a kind at a time on each shard: whoever holds the lease. How far it came is
-- kept with it.
create table job (
  kind     text primary key check (kind in ('sweep', 'audit')),
  holder   text not null,
  until    timestamptz not null,
  progress jsonb
);
alter table job enable row level security;
alter table job force row level security;
create policy job_worker on job for all to seriatim_worker using (true) with check (true);
create policy job_owner  on job for all to seriatim_owner  using (true) with check (true);
grant select, insert, update on job to seriatim_worker;
grant select (reservation_overdue) on series to seriatim_worker;
grant select (due) on number to seriatim_worker;
