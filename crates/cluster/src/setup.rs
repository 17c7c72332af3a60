//! Making a cluster: `initdb`, the three roles with passwords of their own, the databases.

use std::{
    collections::BTreeMap,
    env, fs,
    io::Write,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{DATABASES, Error, Tools, account::Account};

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

    pub(crate) fn read(folder: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(folder.join("passwords")).map_err(Error::io("reading the passwords"))?;
        Ok(Self(
            text.lines().filter_map(|line| line.split_once(' ')).map(|(role, word)| (role.to_owned(), word.to_owned())).collect(),
        ))
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

/// Makes the data folder from nothing. The passwords are written last: their file says "finished".
pub(crate) fn make(tools: &Tools, account: &Account, folder: &Path, durable: bool) -> Result<(), Error> {
    let data = folder.join("postgres");
    if data.exists() {
        fs::remove_dir_all(&data).map_err(Error::io("removing a half-made cluster"))?;
    }
    let passwords = Passwords::new()?;
    let word_file = folder.join("superuser");
    write_private(&word_file, passwords.of(SUPERUSER))?;
    account.give(&word_file)?;
    let mut initdb = account.command(tools.program("initdb"));
    initdb.args(["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--username", SUPERUSER, "--pwfile"]);
    initdb.arg(&word_file).arg("-D").arg(&data);
    if !durable {
        initdb.arg("--no-sync");
    }
    let made = run("initdb", &mut initdb);
    fs::remove_file(&word_file).map_err(Error::io("removing the password file of initdb"))?;
    made?;
    single_user(tools, account, &data, &statements(&passwords))?;
    passwords.write(folder, account)
}

fn statements(passwords: &Passwords) -> String {
    let mut sql = format!("{ROLES_SQL}\n\n");
    for role in ROLES {
        sql.push_str(&format!("alter role {role} password '{}';\n\n", passwords.of(role)));
    }
    for database in DATABASES {
        sql.push_str(&format!("create database {database} owner seriatim_owner;\n\n"));
    }
    sql
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

fn write_private(path: &Path, text: &str) -> Result<(), Error> {
    let _ = fs::remove_file(path);
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(Error::io(format!("writing {}", path.display())))
}

fn random_word() -> Result<String, Error> {
    let mut bytes = [0_u8; 24];
    getrandom::fill(&mut bytes).map_err(|e| Error::Io { what: "drawing random bytes".to_owned(), source: e.into() })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
