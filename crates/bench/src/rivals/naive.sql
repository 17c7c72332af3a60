begin;
select last, series from counter
 where tenant_id = :tenant::uuid and part = 0 and period = 'all'
   and series = case :row::integer when 0 then 'hot' else 'row-' || lpad(:row::integer::text, 2, '0') end
   for update \gset
update counter set last = :last::bigint + 1, last_date = current_date
 where tenant_id = :tenant::uuid and series = :series and part = 0 and period = 'all';
insert into number (tenant_id, series, part, period, value, prev, number, state, document_ref, document_date,
                    config_version, at, principal, operation_id)
values (:tenant::uuid, :series, 0, 'all', :last::bigint + 1, :last::bigint, 'RE-' || lpad((:last::bigint + 1)::text, 9, '0'),
        'issued', 'order-' || lpad(:document::bigint::text, 20, '0'), current_date, 1, now(), 'key:' || :tenant::text, :tenant::text);
insert into claim (tenant_id, series, key, fingerprint, operation, part, period, first, count, at)
values (:tenant::uuid, :series, 'key-' || lpad(:key::bigint::text, 20, '0'), decode(repeat('ab', 32), 'hex'), 'issue', 0, 'all',
        :last::bigint + 1, 1, now());
commit;
