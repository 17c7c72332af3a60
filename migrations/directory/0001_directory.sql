-- The directory: which tenants there are, who may act for them, and on which shard a series lives.
--
-- The tenant leads every key of a tenant's table, and row-level security is forced, also for the owner.
-- What crosses tenants does so by name: an operator (setting seriatim.operator) sees the tenants; a
-- caller becomes a principal through authenticate(), which answers only to somebody holding the secret.

revoke create on schema public from public;
grant usage on schema public to seriatim_app, seriatim_worker;

-- The tenant of the present transaction; null outside one, and null equals nothing.
create function current_tenant() returns uuid
  language sql stable parallel safe
  return nullif(current_setting('seriatim.tenant', true), '')::uuid;

create function is_operator() returns boolean
  language sql stable parallel safe
  return coalesce(current_setting('seriatim.operator', true), '') = 'on';

create function refuse_change() returns trigger
  language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name using errcode = 'insufficient_privilege';
end
$$;

create table shard (
  shard      text primary key check (shard ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  epoch      bigint not null default 1 check (epoch >= 1),
  open       boolean not null default true,  -- whether new series are placed here
  created_at timestamptz not null default now()
);

create table tenant (
  tenant_id  uuid primary key,
  name       text not null check (char_length(name) between 1 and 200),
  mode       text not null check (mode in ('live', 'test')),
  status     text not null default 'active' check (status in ('active', 'suspended')),
  version    bigint not null default 1 check (version >= 1),
  created_at timestamptz not null,
  created_by text not null
);

create table api_key (
  tenant_id   uuid not null references tenant,
  key_id      uuid not null,
  name        text not null check (char_length(name) between 1 and 200),
  secret_hash bytea not null check (octet_length(secret_hash) = 32),
  scopes      text[] not null check (cardinality(scopes) > 0),
  created_at  timestamptz not null,
  created_by  text not null,
  expires_at  timestamptz,
  revoked_at  timestamptz,
  primary key (tenant_id, key_id)
);
-- The one unique key that the tenant does not lead: a hash of 178 random bits tells nobody anything.
create unique index api_key_secret on api_key (secret_hash);

create table operator_key (
  key_id      uuid primary key,
  name        text not null check (char_length(name) between 1 and 200),
  secret_hash bytea not null check (octet_length(secret_hash) = 32),
  scopes      text[] not null check (cardinality(scopes) > 0),
  created_at  timestamptz not null,
  expires_at  timestamptz,
  revoked_at  timestamptz
);
create unique index operator_key_secret on operator_key (secret_hash);

-- Locked while a pattern is added, so that two series of one issuer can't both pass the overlap check.
create table issuer (
  tenant_id uuid not null references tenant,
  issuer    text not null check (issuer ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  primary key (tenant_id, issuer)
);

-- A series exists from the COMMIT that wrote this row. The shard's row is made from `settings`, at once
-- or, after a crash in between, by whoever next looks for it (ADR 0004).
create table placement (
  tenant_id  uuid not null,
  series     text not null check (series ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  issuer     text not null,
  shard      text not null references shard,
  epoch      bigint not null check (epoch >= 1),
  settings   jsonb not null,
  created_at timestamptz not null,
  created_by text not null,
  primary key (tenant_id, series),
  foreign key (tenant_id, issuer) references issuer
);

-- Every pattern a series ever had.
create table pattern (
  tenant_id  uuid not null,
  issuer     text not null,
  series     text not null,
  version    bigint not null check (version >= 1),
  pattern    text not null,
  overflow   text not null check (overflow in ('refuse', 'widen')),
  primary key (tenant_id, issuer, series, version),
  foreign key (tenant_id, series) references placement,
  foreign key (tenant_id, issuer) references issuer
);

-- Idempotency keys of operations that concern a tenant as a whole, written with what they made.
create table claim (
  tenant_id   uuid not null references tenant,
  key         text not null check (key ~ '^[!-~]{1,255}$'),
  fingerprint bytea not null check (octet_length(fingerprint) = 32),
  operation   text not null check (operation in ('create_key', 'create_series')),
  subject     text not null,
  at          timestamptz not null,
  primary key (tenant_id, key)
);
create table operator_claim (
  key         text primary key check (key ~ '^[!-~]{1,255}$'),
  fingerprint bytea not null check (octet_length(fingerprint) = 32),
  operation   text not null check (operation in ('create_tenant')),
  subject     uuid not null references tenant,
  at          timestamptz not null
);

-- Who holds this secret? The only way from a caller to a principal. It runs as the owner and answers
-- one row or none, so that the app role can neither list keys nor see another tenant's.
create function authenticate(hash bytea)
  returns table (key_id uuid, tenant_id uuid, tenant_status text, tenant_mode text, scopes text[],
                 expires_at timestamptz, revoked_at timestamptz)
  language sql stable security definer set search_path = pg_catalog, public
  begin atomic
    select k.key_id, k.tenant_id, t.status, t.mode, k.scopes, k.expires_at, k.revoked_at
      from api_key k join tenant t on t.tenant_id = k.tenant_id where k.secret_hash = hash
    union all
    select k.key_id, null::uuid, null::text, null::text, k.scopes, k.expires_at, k.revoked_at
      from operator_key k where k.secret_hash = hash;
  end;
revoke all on function authenticate(bytea) from public;
grant execute on function authenticate(bytea) to seriatim_app;

-- Row-level security, forced: the owner passes only through its own policies.
alter table shard          enable row level security;
alter table shard          force row level security;
alter table tenant         enable row level security;
alter table tenant         force row level security;
alter table api_key        enable row level security;
alter table api_key        force row level security;
alter table operator_key   enable row level security;
alter table operator_key   force row level security;
alter table issuer         enable row level security;
alter table issuer         force row level security;
alter table placement      enable row level security;
alter table placement      force row level security;
alter table pattern        enable row level security;
alter table pattern        force row level security;
alter table claim          enable row level security;
alter table claim          force row level security;
alter table operator_claim enable row level security;
alter table operator_claim force row level security;

create policy shard_read  on shard for select to seriatim_app, seriatim_worker using (true);

create policy tenant_self     on tenant for select to seriatim_app using (tenant_id = current_tenant());
create policy tenant_operator on tenant for all to seriatim_app using (is_operator()) with check (is_operator());

create policy api_key_tenant   on api_key for all to seriatim_app
  using (tenant_id = current_tenant()) with check (tenant_id = current_tenant());
create policy api_key_operator on api_key for insert to seriatim_app with check (is_operator());

create policy issuer_tenant    on issuer for all to seriatim_app
  using (tenant_id = current_tenant()) with check (tenant_id = current_tenant());
create policy placement_tenant on placement for all to seriatim_app
  using (tenant_id = current_tenant()) with check (tenant_id = current_tenant());
create policy pattern_tenant   on pattern for all to seriatim_app
  using (tenant_id = current_tenant()) with check (tenant_id = current_tenant());
create policy claim_tenant     on claim for all to seriatim_app
  using (tenant_id = current_tenant()) with check (tenant_id = current_tenant());
create policy operator_claim_operator on operator_claim for all to seriatim_app
  using (is_operator()) with check (is_operator());

-- The owner sees every row, by policies that say so: a later migration must not pass over rows in silence,
-- and authenticate() runs as the owner.
create policy shard_owner          on shard          for all to seriatim_owner using (true) with check (true);
create policy tenant_owner         on tenant         for all to seriatim_owner using (true) with check (true);
create policy api_key_owner        on api_key        for all to seriatim_owner using (true) with check (true);
create policy operator_key_owner   on operator_key   for all to seriatim_owner using (true) with check (true);
create policy issuer_owner         on issuer         for all to seriatim_owner using (true) with check (true);
create policy placement_owner      on placement      for all to seriatim_owner using (true) with check (true);
create policy pattern_owner        on pattern        for all to seriatim_owner using (true) with check (true);
create policy claim_owner          on claim          for all to seriatim_owner using (true) with check (true);
create policy operator_claim_owner on operator_claim for all to seriatim_owner using (true) with check (true);

-- Grants: what the app role may do at all. Nothing is deleted here but swept claims.
grant select on shard to seriatim_app, seriatim_worker;
grant select, insert, update (name, status, version) on tenant to seriatim_app;
grant select, insert, update (name, expires_at, revoked_at) on api_key to seriatim_app;
-- Locking the issuer's row needs an UPDATE right on some column; the key itself never changes.
grant select, insert, update (issuer) on issuer to seriatim_app;
grant select, insert on placement, pattern to seriatim_app;
grant select, insert, delete on claim, operator_claim to seriatim_app;

-- A pattern once used is history.
create trigger pattern_append_only before update or delete or truncate on pattern
  for each statement execute function refuse_change();
