//! Series in files, JSON or YAML, and as words like FIELD=VALUE.

use std::{io::Read, path::Path};

use api::Series;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::Failure;

/// The most that is read of a file.
const MOST: u64 = 1 << 20;

/// Fields whose value is a text whatever it looks like; those of others are JSON.
const TEXTS: [&str; 12] = [
    "series",
    "issuer",
    "pattern",
    "reset",
    "time_zone",
    "overflow",
    "chronology",
    "release",
    "reservation_overdue",
    "status",
    "rule_pack",
    "integrator",
];

/// The fields in a file; YAML unless its name ends in `.json` (JSON is YAML, too).
pub(super) fn read(path: &Path) -> Result<Map<String, Value>, Failure> {
    let shown = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    let mut text = String::new();
    let done = if path == Path::new("-") {
        std::io::stdin().take(MOST).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(MOST).read_to_string(&mut text))
    };
    done.map_err(|why| format!("can't read {shown}: {why}"))?;
    let fields = if is_json(path) {
        serde_json::from_str(&text).map_err(|why| why.to_string())
    } else {
        // As YAML 1.2 has it: a series may be called no.
        let options = serde_saphyr::options! { strict_booleans: true };
        serde_saphyr::from_str_with_options(&text, options).map_err(|why| why.to_string())
    };
    fields.map_err(|why| format!("{shown} is not a list of fields, each with its value: {why}").into())
}

/// Writes a series into a file, over what is there.
pub(super) fn write(path: &Path, series: &Series) -> Result<(), Failure> {
    let text = if is_json(path) { format!("{}\n", serde_json::to_string_pretty(series)?) } else { yaml(series)? };
    std::fs::write(path, text).map_err(|why| format!("can't write {}: {why}", path.display()).into())
}

/// A series as people write it.
pub(super) fn yaml(series: &impl Serialize) -> Result<String, Failure> {
    Ok(serde_saphyr::to_string(series)?)
}

/// Words like `pattern=INV{seq:6}`, `max_days_ahead=30` or `max_days_ahead=null`.
pub(super) fn fields(words: &[String]) -> Result<Map<String, Value>, Failure> {
    let field = |word: &String| {
        let (name, value) = word.split_once('=').ok_or_else(|| format!("{word} is not FIELD=VALUE"))?;
        let json = (!TEXTS.contains(&name)).then(|| serde_json::from_str(value).ok()).flatten();
        let value = json.unwrap_or_else(|| Value::from(value));
        Ok((name.to_owned(), value))
    };
    words.iter().map(field).collect::<Result<_, String>>().map_err(Into::into)
}

/// Fields as what the API takes; an unknown one is named.
pub(super) fn typed<T: DeserializeOwned>(fields: Map<String, Value>) -> Result<T, Failure> {
    serde_path_to_error::deserialize(Value::Object(fields)).map_err(|why| match why.path().to_string().as_str() {
        "." => why.inner().to_string().into(),
        field if TEXTS.contains(&field) => format!("{field}: {}; in YAML, put it in quotes", why.inner()).into(),
        field => format!("{field}: {}", why.inner()).into(),
    })
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

#[cfg(test)]
mod tests {
    use api::CreateSeries;

    use super::*;

    #[test]
    fn what_is_shown_is_read_back() {
        let series = Series {
            settings: CreateSeries {
                reset: "fiscal_year".into(),
                fiscal_year: Some(api::FiscalYear { starts: "04-01".into(), label: "start".into() }),
                max_days_ahead: Some(30),
                ..CreateSeries::new("no", "{fy}: #-{seq:6}")
            },
            status: "active".into(),
            version: 3,
            warnings: Vec::new(),
        };
        let folder = std::env::temp_dir().join(format!("seriatim-series-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["it.json", "it.yaml"] {
            let path = folder.join(name);
            write(&path, &series).unwrap();
            assert_eq!(typed::<Series>(read(&path).unwrap()).unwrap(), series, "{name}");
        }
        let path = folder.join("by-hand.yaml");
        std::fs::write(&path, "series: no\npattern: {seq:4}\n").unwrap();
        let braces = typed::<CreateSeries>(read(&path).unwrap()).unwrap_err().to_string();
        assert!(braces.starts_with("pattern: ") && braces.ends_with("; in YAML, put it in quotes"), "{braces}");
        std::fs::write(&path, "series: no\npattern: 'A{seq:4}'\n").unwrap();
        assert_eq!(typed::<CreateSeries>(read(&path).unwrap()).unwrap().series, "no");
        assert!(yaml(&series).unwrap().starts_with("series: "), "in the contract's order");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn fields_are_words() {
        let words = ["pattern={yyyy}{seq}", "first=5", "max_days_ahead=null", "status=null"].map(str::to_owned);
        let read = fields(&words).unwrap();
        assert_eq!(
            Value::Object(read),
            serde_json::json!({
                "pattern": "{yyyy}{seq}", "first": 5, "max_days_ahead": null, "status": "null"
            })
        );
        assert!(fields(&["pattern".into()]).unwrap_err().to_string().contains("FIELD=VALUE"));
        let wrong = typed::<CreateSeries>(fields(&["series=a".into(), "pattern={seq}".into(), "first=five".into()]).unwrap());
        assert_eq!(wrong.unwrap_err().to_string(), "first: invalid type: string \"five\", expected i64");
    }
}
