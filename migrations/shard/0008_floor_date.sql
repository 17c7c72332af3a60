-- The latest date that a period had when its series became strict: from then on dates do not go back, and where the last
-- number is released, the latest date left is that of the number before, or this.
alter table counter add column floor_date date;
grant update (floor_date) on counter to seriatim_app;
-- Series that are strict already have been so from their first number on, or their counters' latest dates are the best known.
update counter c set floor_date = last_date
  from series s
 where s.tenant_id = c.tenant_id and s.series = c.series and s.chronology = 'strict' and s.version > 1;
