\set key random(1, 9000000000000000000)
\set document random(1, 9000000000000000000)
begin;
select last from counter where id = 1 for update \gset
update counter set last = :last::bigint + 1 where id = 1;
insert into numbers (value, number, document_ref)
values (:last::bigint + 1, 'RE-' || lpad((:last::bigint + 1)::text, 9, '0'), 'order-' || lpad(:document::bigint::text, 20, '0'));
insert into claims (key, value) values ('key-' || lpad(:key::bigint::text, 20, '0'), :last::bigint + 1);
commit;
