-- Whether a document may be dated before one with a lower number of its period.
alter table series add column chronology text not null default 'none' check (chronology in ('none', 'strict'));
grant update (chronology) on series to seriatim_app;
