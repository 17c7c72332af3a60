-- Patterns that a series had before, and the audit trail of what is decided here.

-- With which reset a pattern is used (`yearly`, `fiscal_year:04-01:end`): one series uses one pattern again without making a
-- text twice only if its periods are still the same.
alter table pattern add column reset text;
alter table pattern disable trigger pattern_append_only;
update pattern p set reset = s.settings ->> 'reset' from placement s where s.tenant_id = p.tenant_id and s.series = p.series;
alter table pattern enable trigger pattern_append_only;
alter table pattern alter column reset set not null;

-- A reader takes rows in the order of (xid, event), and only those of transactions before which none is still running.
create table event (
  tenant_id    uuid not null references tenant,
  xid          xid8 not null default pg_current_xact_id(),
  event        bigint generated always as identity,
  at           timestamptz not null,
  principal    text not null,
  operation_id text not null,
  kind         text not null check (kind in ('series.created', 'key.created', 'key.revoked', 'tenant.changed', 'tenant.conflict')),
  subject      text not null,
  before       jsonb,
  after        jsonb,
  primary key (tenant_id, xid, event)
);
alter table event enable row level security;
alter table event force row level security;
create policy event_tenant on event for all to seriatim_app
  using (tenant_id = current_tenant()) with check (tenant_id = current_tenant());
create policy event_operator on event for insert to seriatim_app with check (is_operator());
create policy event_owner on event for all to seriatim_owner using (true) with check (true);
grant select, insert on event to seriatim_app;
create trigger event_append_only before update or delete or truncate on event
  for each statement execute function refuse_change();
