with moved as (
  update counter set last = last + 256, last_date = current_date
   where tenant_id = :tenant::uuid and series = 'hot' and part = 0 and period = 'all' returning last - 256 as last
), claimed as (
  insert into claim (tenant_id, series, key, fingerprint, operation, part, period, first, count, at)
  select :tenant::uuid, 'hot', 'key-' || lpad((random() * 9e18)::bigint::text, 20, '0'), decode(repeat('ab', 32), 'hex'),
         'issue', 0, 'all', last + nth, 1, now() from moved, generate_series(1, 256) nth
)
insert into number (tenant_id, series, part, period, value, prev, number, state, document_ref, document_date,
                    config_version, at, principal, operation_id)
select :tenant::uuid, 'hot', 0, 'all', last + nth, last + nth - 1, 'RE-' || lpad((last + nth)::text, 9, '0'),
       'issued', 'order-' || lpad((random() * 9e18)::bigint::text, 20, '0'), current_date, 1, now(), 'key:' || :tenant::text,
       :tenant::text
  from moved, generate_series(1, 256) nth;
