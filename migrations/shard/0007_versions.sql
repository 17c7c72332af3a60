-- Series that change: fiscal years, how far ahead a date may be, every version kept, and who changed what.

alter table series
  add column fiscal_starts  text check (fiscal_starts ~ '^[0-9]{2}-[0-9]{2}$'),
  add column fiscal_label   text check (fiscal_label in ('start', 'end')),
  add column max_days_ahead bigint check (max_days_ahead between 0 and 36525),
  add constraint series_fiscal check ((reset = 'fiscal_year') = (fiscal_starts is not null)
                                      and (fiscal_starts is null) = (fiscal_label is null));
grant update (fiscal_starts, fiscal_label, max_days_ahead) on series to seriatim_app;

-- What a series was in each of its versions, so that whoever changed an old one can be shown what came between.
create table series_version (
  tenant_id    uuid not null,
  series       text not null,
  version      bigint not null check (version >= 1),
  settings     jsonb not null check (jsonb_typeof(settings) = 'object'),
  status       text not null check (status in ('active', 'paused', 'closed')),
  at           timestamptz not null,
  principal    text not null,
  operation_id text not null,
  primary key (tenant_id, series, version),
  foreign key (tenant_id, series) references series
);
insert into series_version (tenant_id, series, version, settings, status, at, principal, operation_id)
select tenant_id, series, version,
       jsonb_build_object('issuer', issuer, 'pattern', pattern, 'reset', reset, 'fiscal_year', null, 'time_zone', time_zone,
                          'first', first, 'gapless', gapless, 'overflow', overflow, 'max_length', max_length,
                          'chronology', chronology, 'max_days_ahead', null, 'release', release,
                          'reservation_ttl_seconds', reservation_ttl_seconds, 'reservation_overdue', reservation_overdue),
       status, created_at, created_by, 'migration'
  from series;

-- The audit trail of what lies on this shard: who changed which setting or period, from what to what, and who could not.
-- A reader takes rows in the order of (xid, event), and only those of transactions before which none is still running: so
-- none is passed over that commits late.
create table event (
  tenant_id    uuid not null,
  xid          xid8 not null default pg_current_xact_id(),
  event        bigint generated always as identity,
  at           timestamptz not null,
  principal    text not null,
  operation_id text not null,
  kind         text not null check (kind in ('series.changed', 'series.conflict', 'period.closed', 'period.raised')),
  subject      text not null,
  before       jsonb,
  after        jsonb,
  primary key (tenant_id, xid, event)
);

alter table series_version enable row level security;
alter table series_version force row level security;
alter table event          enable row level security;
alter table event          force row level security;
create policy series_version_tenant on series_version for all to seriatim_app
  using (tenant_id = current_tenant()) with check (tenant_id = current_tenant());
create policy series_version_owner on series_version for all to seriatim_owner using (true) with check (true);
create policy event_tenant on event for all to seriatim_app
  using (tenant_id = current_tenant()) with check (tenant_id = current_tenant());
create policy event_owner on event for all to seriatim_owner using (true) with check (true);
grant select, insert on series_version, event to seriatim_app;
create trigger series_version_append_only before update or delete or truncate on series_version
  for each statement execute function refuse_change();
create trigger event_append_only before update or delete or truncate on event
  for each statement execute function refuse_change();
