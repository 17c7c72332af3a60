-- What the planner believes of tables that nobody has analysed yet.
--
-- A new table could be taken for a tiny one, and a prepared statement would keep reading all of it while it grows. So the
-- planner is shown a thousand rows of two tenants with two series each, and they
-- are taken away again. What it learned, that a tenant and a series alone say little, stays until it is replaced by what
-- is really there (an empty table teaches it nothing). No value may stand out: the planner would think that all others
-- are rare, hence the target of one.
do $$
begin
  if exists (select from series) then
    return;
  end if;
  alter table number disable trigger number_stays;
  alter table run disable trigger run_append_only;
  alter table history disable trigger history_append_only;
  alter table number  alter tenant_id set statistics 1, alter series set statistics 1;
  alter table claim   alter tenant_id set statistics 1, alter series set statistics 1;
  alter table history alter tenant_id set statistics 1, alter series set statistics 1;

  insert into series (tenant_id, series, issuer, pattern, reset, time_zone, first, gapless, overflow, max_length, epoch,
                      created_at, created_by)
  select ('00000000-0000-0000-0000-00000000000' || tenant)::uuid, 's' || series, 'default', '{seq}', 'never', 'UTC', 1, true,
         'refuse', 16, 1, 'epoch', 'migration'
    from generate_series(1, 2) tenant, generate_series(1, 2) series;
  insert into counter (tenant_id, series, part, period, last, config_version, epoch)
  select tenant_id, series, 0, 'all', 250, 1, 1 from series;
  insert into run (tenant_id, series, part, period, first, why, principal, at)
  select tenant_id, series, 0, 'all', 1, 'start', 'migration', 'epoch' from series;
  insert into number (tenant_id, series, part, period, value, prev, number, state, document_ref, document_date,
                      config_version, at, principal, operation_id)
  select tenant_id, series, 0, 'all', value, nullif(value - 1, 0), value::text, 'issued', 'document ' || value, '1970-01-01',
         1, 'epoch', 'migration', value::text
    from series, generate_series(1, 250) value;
  insert into claim (tenant_id, series, key, fingerprint, operation, part, period, first, count, at)
  select tenant_id, series, 'key-' || value, sha256(value::text::bytea), 'issue', 0, 'all', value, 1, 'epoch'
    from series, generate_series(1, 250) value;
  insert into history (tenant_id, series, part, period, value, at, "from", "to", principal, operation_id)
  select tenant_id, series, part, period, value, at, 'issued', 'voided', 'migration', 'migration' from number;

  analyze number (tenant_id, series, value, number, document_ref), claim (tenant_id, series, key),
          history (tenant_id, series, value);
  truncate series, counter, run, number, history, claim;

  alter table number  alter tenant_id set statistics -1, alter series set statistics -1;
  alter table claim   alter tenant_id set statistics -1, alter series set statistics -1;
  alter table history alter tenant_id set statistics -1, alter series set statistics -1;
  alter table number enable trigger number_stays;
  alter table run enable trigger run_append_only;
  alter table history enable trigger history_append_only;
end
$$;
