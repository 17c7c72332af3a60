\set key random(1, 9000000000000000000)
\set document random(1, 9000000000000000000)
begin;
insert into number (tenant_id, series, part, period, value, prev, number, state, document_ref, document_date,
                    config_version, at, principal, operation_id)
select :tenant::uuid, 'hot', 0, 'all', value, value - 1, 'RE-' || lpad(value::text, 9, '0'),
       'issued', 'order-' || lpad(:document::bigint::text, 20, '0'), current_date, 1, now(), 'key:' || :tenant::text, :tenant::text
  from (select nextval('hot_value') as value) next
returning value \gset
insert into claim (tenant_id, series, key, fingerprint, operation, part, period, first, count, at)
values (:tenant::uuid, 'hot', 'key-' || lpad(:key::bigint::text, 20, '0'), decode(repeat('ab', 32), 'hex'), 'issue', 0, 'all',
        :value::bigint, 1, now());
commit;
