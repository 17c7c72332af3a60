-- Once per PostgreSQL cluster, by a superuser, before the first migration of any of its databases.
-- Roles belong to the cluster, not to a database, so they can't be part of a database's migrations.
-- Give each a password of its own (ALTER ROLE … PASSWORD …); a gateway is only ever told the app role's.
--
--   seriatim_owner   owns the tables, runs migrations, mints operator keys; nothing serves with it
--   seriatim_app     what gateways and workers act as: one tenant at a time, under row-level security
--   seriatim_worker  finds work across tenants; reads a few columns and changes nothing
do $$
declare
  role text;
begin
  foreach role in array array['seriatim_owner', 'seriatim_app', 'seriatim_worker'] loop
    if not exists (select from pg_roles where rolname = role) then
      execute format('create role %I login nosuperuser nobypassrls nocreatedb nocreaterole', role);
    end if;
  end loop;
end
$$;
