//! Making a cluster: `initdb`, the three roles with passwords of their own, the databases.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    DATABASES, Error, Tools,
    account::Account,
    leftover,
    private::{self, write_private},
};

const SUPERUSER: &str = "postgres";
const ROLES: [&str; 3] = ["seriatim_owner", "seriatim_app", "seriatim_worker"];
const ROLES_SQL: &str = include_str!("../../../migrations/roles.sql");

/// A password for each role, kept in a file that only the account may read.
#[derive(Clone)]
pub(crate) struct Passwords(BTreeMap<String, String>);

impl std::fmt::Debug for Passwords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Passwords(hidden)")
    }
}

impl Passwords {
    fn new() -> Result<Self, Error> {
        let roles = ROLES.into_iter().chain([SUPERUSER]);
        roles.map(|role| Ok((role.to_owned(), random_word()?))).collect::<Result<_, _>>().map(Self)
    }

    /// What the file says; none if it is not there, or says less than it must.
    fn read(folder: &Path) -> Result<Option<Self>, Error> {
        let text = match fs::read_to_string(folder.join("passwords")) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("reading the passwords")(error)),
        };
        let words = text.lines().filter_map(|line| line.split_once(' '));
        let words = Self(words.map(|(role, word)| (role.to_owned(), word.to_owned())).collect());
        let whole = ROLES.into_iter().chain([SUPERUSER]).all(|role| !words.of(role).is_empty());
        Ok(whole.then_some(words))
    }

    pub(crate) fn of(&self, role: &str) -> &str {
        self.0.get(role).map_or("", String::as_str)
    }

    fn write(&self, folder: &Path, account: &Account) -> Result<(), Error> {
        let path = folder.join("passwords");
        let text: String = self.0.iter().map(|(role, word)| format!("{role} {word}\n")).collect();
        write_private(&path, &text)?;
        account.give(&path)
    }
}

/// Makes what is not there: the cluster, or the file with its passwords. Never touches a cluster that was finished.
pub(crate) fn ready(
    tools: &Tools,
    account: &Account,
    folder: &Path,
    durable: bool,
    progress: &dyn Fn(&str),
) -> Result<Passwords, Error> {
    let data = folder.join("postgres");
    if !data.join("PG_VERSION").exists() {
        progress(&format!("making a PostgreSQL {} cluster in {}", tools.version, folder.display()));
        return make(tools, account, folder, durable);
    }
    if let Some(passwords) = Passwords::read(folder)? {
        return Ok(passwords);
    }
    progress("the file with the passwords is not there or damaged; drawing new ones");
    leftover::clear(account, &data)?;
    let passwords = Passwords::new()?;
    single_user(tools, account, &data, &give_passwords(&passwords))?;
    passwords.write(folder, account)?;
    Ok(passwords)
}

/// Makes the cluster under a name that nobody looks at, and gives it its own when it is finished: a death at
/// any moment leaves a whole cluster with its passwords, or none.
fn make(tools: &Tools, account: &Account, folder: &Path, durable: bool) -> Result<Passwords, Error> {
    let data = folder.join("postgres");
    for entry in fs::read_dir(folder).map_err(Error::io(format!("reading {}", folder.display())))?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(MAKING) || entry.path() == data {
            // Somebody who outlived a kill may still write there, which is no matter: the next name is another.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let making = folder.join(format!("{MAKING}{}", &random_word()?[..12]));
    let made = fill(tools, account, folder, &making, durable).and_then(|passwords| {
        let named = fs::rename(&making, &data).and_then(|()| private::sync_folder_of(&data));
        named.map_err(Error::io("naming the new cluster")).map(|()| passwords)
    });
    if made.is_err() {
        // On a full disk a half-made one is in the way of everybody.
        let _ = fs::remove_dir_all(&making);
    }
    made
}

/// What the name of a cluster that is being made begins with.
const MAKING: &str = "making-";

fn fill(tools: &Tools, account: &Account, folder: &Path, data: &Path, durable: bool) -> Result<Passwords, Error> {
    let passwords = Passwords::new()?;
    let word_file = folder.join("superuser");
    write_private(&word_file, passwords.of(SUPERUSER))?;
    account.give(&word_file)?;
    let mut initdb = account.command(tools.program("initdb"));
    initdb.args(["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--username", SUPERUSER, "--pwfile"]);
    initdb.arg(&word_file).arg("-D").arg(data);
    if !durable {
        initdb.arg("--no-sync");
    }
    let made = run("initdb", &mut initdb);
    fs::remove_file(&word_file).map_err(Error::io("removing the password file of initdb"))?;
    made?;
    let mut sql = format!("{ROLES_SQL}\n\n{}", give_passwords(&passwords));
    for database in DATABASES {
        sql.push_str(&format!("create database {database} owner seriatim_owner;\n\n"));
    }
    single_user(tools, account, data, &sql)?;
    passwords.write(folder, account)?;
    Ok(passwords)
}

fn give_passwords(passwords: &Passwords) -> String {
    let roles = ROLES.into_iter().chain([SUPERUSER]);
    roles.map(|role| format!("alter role {role} password '{}';\n\n", passwords.of(role))).collect()
}

/// Runs statements in single-user mode, before anybody can connect: no client is needed and nothing
/// listens. With `-j` a statement ends at a semicolon and an empty line.
fn single_user(tools: &Tools, account: &Account, data: &Path, sql: &str) -> Result<(), Error> {
    let mut command = account.command(tools.program("postgres"));
    command.args(["--single", "-j", "-D"]).arg(data).arg("postgres");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::io("starting postgres"))?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(sql.as_bytes()).map_err(Error::io("writing to postgres"))?;
    }
    let done = child.wait_with_output().map_err(Error::io("running postgres"))?;
    let said = String::from_utf8_lossy(&done.stderr);
    if done.status.success() && !said.contains("ERROR:") && !said.contains("FATAL:") {
        Ok(())
    } else {
        Err(Error::Program { program: "postgres", said: tail(&said) })
    }
}

pub(crate) fn run(program: &'static str, command: &mut Command) -> Result<(), Error> {
    let done = command.stdin(Stdio::null()).output().map_err(Error::io(format!("running {program}")))?;
    if done.status.success() {
        return Ok(());
    }
    let said = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    Err(Error::Program { program, said: tail(&said) })
}

/// The last lines, where the reason is.
pub(crate) fn tail(said: &str) -> String {
    let lines: Vec<_> = said.trim_end().lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

pub(crate) fn temporary_folder() -> Result<PathBuf, Error> {
    let folder = env::temp_dir().join(format!("seriatim-{}", &random_word()?[..12]));
    fs::create_dir(&folder).map_err(Error::io(format!("making {}", folder.display())))?;
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).map_err(Error::io("closing the folder to others"))?;
    Ok(folder)
}

fn random_word() -> Result<String, Error> {
    let mut bytes = [0_u8; 24];
    getrandom::fill(&mut bytes).map_err(|e| Error::Io { what: "drawing random bytes".to_owned(), source: e.into() })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
