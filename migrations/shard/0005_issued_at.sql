-- When a number was issued, where that was not the moment at which its row was made: a reservation that was confirmed. It
-- is also kept when an issued number is voided. An issued number without it was issued when it was made.
alter table number add column issued_at timestamptz;
grant update (issued_at) on number to seriatim_app;
