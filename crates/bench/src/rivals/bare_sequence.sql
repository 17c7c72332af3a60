\set key random(1, 9000000000000000000)
\set document random(1, 9000000000000000000)
begin;
insert into numbers (value, number, document_ref)
select value, 'RE-' || lpad(value::text, 9, '0'), 'order-' || lpad(:document::bigint::text, 20, '0')
  from (select nextval('hot_value') as value) next
returning value \gset
insert into claims (key, value) values ('key-' || lpad(:key::bigint::text, 20, '0'), :value::bigint);
commit;
