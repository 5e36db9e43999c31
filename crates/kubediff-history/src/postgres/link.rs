//! A connection to PostgreSQL for threads that wait. A thread of its own drives it, so that any thread may ask, one in a runtime too.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use futures_util::future::{join, join_all};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Config, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::sql::db::{Statement, Value};
use crate::sql::fault::{Fault, Outcome};

/// A server that says nothing for so long is asked whether it lives.
const SILENT: Duration = Duration::from_secs(10);

/// The result of a statement: its rows, and how many it changed.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) rows: Vec<Row>,
    pub(crate) changed: u64,
}

type Answer<T> = Result<T, tokio_postgres::Error>;

enum Command {
    /// Sends all statements, and then waits for their results: that is one round trip.
    Run(Vec<Statement>, SyncSender<Answer<Vec<Done>>>),
    /// Sends these statements with the next command, and not before.
    First(String),
    /// Statements without parameters and results.
    Batch(String, SyncSender<Answer<()>>),
    /// Runs this statement now and after each such time.
    Repeat(Duration, String),
}

/// A connection.
#[derive(Clone)]
pub(crate) struct Link {
    commands: UnboundedSender<Command>,
}

impl Link {
    /// Connects.
    pub(crate) fn connect(config: Config, tls: Option<Arc<rustls::ClientConfig>>) -> Outcome<Self> {
        let (commands, receiver) = unbounded_channel();
        let (connected, result) = sync_channel(1);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Fault::Io(error.into()))?;
        let drive = move || runtime.block_on(drive(config, tls, receiver, connected));
        thread::Builder::new()
            .name("postgres".to_owned())
            .spawn(drive)
            .map_err(|error| Fault::Io(error.into()))?;
        result.recv().map_err(|_| Fault::Closed)??;
        Ok(Self { commands })
    }

    /// Runs statements, all of which are sent before the first one is answered. The first error is the result.
    pub(crate) fn run(&self, statements: Vec<Statement>) -> Outcome<Vec<Done>> {
        self.ask(|reply| Command::Run(statements, reply))
    }

    /// Runs one statement.
    pub(crate) fn run_one(&self, sql: String, values: &[Value]) -> Outcome<Done> {
        let done = self.run(vec![Statement { sql, values: values.to_vec() }])?;
        Ok(done.into_iter().next().unwrap_or_default())
    }

    /// Runs statements without parameters.
    pub(crate) fn batch(&self, sql: impl Into<String>) -> Outcome<()> {
        self.ask(|reply| Command::Batch(sql.into(), reply))
    }

    /// Runs statements without parameters together with what comes next. Their error is its error.
    pub(crate) fn first(&self, sql: String) {
        // A connection that has ended says so then.
        let _ = self.commands.send(Command::First(sql));
    }

    /// Runs statements without parameters, of which nobody waits for the end.
    pub(crate) fn last(&self, sql: &str) {
        let (reply, _) = sync_channel(1);
        let _ = self.commands.send(Command::Batch(sql.to_owned(), reply));
    }

    /// Runs this statement again and again, as long as the connection lives. Its failures have no consequence.
    pub(crate) fn repeat(&self, every: Duration, sql: String) {
        // A connection that has ended says so at the next statement.
        let _ = self.commands.send(Command::Repeat(every, sql));
    }

    fn ask<T>(&self, command: impl FnOnce(SyncSender<Answer<T>>) -> Command) -> Outcome<T> {
        let (reply, answer) = sync_channel(1);
        self.commands.send(command(reply)).map_err(|_| Fault::Closed)?;
        Ok(answer.recv().map_err(|_| Fault::Closed)??)
    }
}

async fn drive(
    config: Config,
    tls: Option<Arc<rustls::ClientConfig>>,
    mut commands: UnboundedReceiver<Command>,
    connected: SyncSender<Answer<()>>,
) {
    // Who asked for it waits, and is told that the connection has ended when `connected` does.
    let Ok(client) = timeout(SILENT, connect(config.clone(), tls.clone())).await else { return };
    let mut client = match client {
        Ok(client) => Prepared::new(client),
        Err(error) => {
            let _ = connected.send(Err(error));
            return;
        }
    };
    let lives = || lives(&config, &tls);
    let _ = connected.send(Ok(()));
    let mut repeat: Option<(tokio::time::Interval, String)> = None;
    let mut first: Option<String> = None;
    loop {
        let tick = async {
            match &mut repeat {
                Some((interval, _)) => drop(interval.tick().await),
                None => std::future::pending().await,
            }
        };
        let command = tokio::select! {
            command = commands.recv() => command,
            () = tick => {
                if let Some((_, sql)) = &repeat
                    && answered(client.client.batch_execute(sql), lives).await.is_none()
                {
                    return;
                }
                continue;
            }
        };
        match command {
            None => return,
            Some(Command::Run(statements, reply)) => {
                let Some(done) = answered(client.run(first.take(), &statements), lives).await else { return };
                let _ = reply.send(done);
            }
            Some(Command::First(sql)) => first = Some(sql),
            Some(Command::Batch(sql, reply)) => {
                let sql = first.take().map_or(sql.clone(), |first| format!("{first}; {sql}"));
                let Some(done) = answered(client.client.batch_execute(&sql), lives).await else { return };
                let _ = reply.send(done);
            }
            Some(Command::Repeat(every, sql)) => repeat = Some((tokio::time::interval(every), sql)),
        }
    }
}

/// The answer, however long it takes a server that lives; `None` from one that does not.
async fn answered<T, L: Future<Output = bool>>(
    answer: impl Future<Output = T>,
    lives: impl Fn() -> L,
) -> Option<T> {
    let mut answer = pin!(answer);
    loop {
        if let Ok(answer) = timeout(SILENT, &mut answer).await {
            return Some(answer);
        }
        if !lives().await {
            return None;
        }
    }
}

/// Whether the server answers another connection, be it by a refusal: a machine that stands still acknowledges packets, and nothing else.
async fn lives(config: &Config, tls: &Option<Arc<rustls::ClientConfig>>) -> bool {
    match timeout(SILENT, connect(config.clone(), tls.clone())).await {
        Ok(Ok(_)) => true,
        Ok(Err(error)) => error.code().is_some(),
        Err(_) => false,
    }
}

/// Connects, and lets the connection go on in the background.
async fn connect(config: Config, tls: Option<Arc<rustls::ClientConfig>>) -> Answer<Client> {
    let client = match tls.filter(|_| config.get_ssl_mode() != SslMode::Disable) {
        Some(tls) => {
            let (client, connection) = config.connect(MakeRustlsConnect::new((*tls).clone())).await?;
            // Its error is that of the statements that wait.
            tokio::spawn(async { drop(connection.await) });
            client
        }
        None => {
            let (client, connection) = config.connect(NoTls).await?;
            tokio::spawn(async { drop(connection.await) });
            client
        }
    };
    Ok(client)
}

/// A client, and the statements that it has prepared: those that were asked before. Their plans are made once.
struct Prepared {
    client: Client,
    asked: HashMap<String, Option<tokio_postgres::Statement>>,
}

/// This many statements are remembered.
const REMEMBERED: usize = 500;

impl Prepared {
    fn new(client: Client) -> Self {
        Self { client, asked: HashMap::new() }
    }

    async fn run(&mut self, first: Option<String>, statements: &[Statement]) -> Answer<Vec<Done>> {
        for Statement { sql, values } in statements {
            if self.asked.len() >= REMEMBERED {
                self.asked.clear();
            }
            match self.asked.get_mut(sql) {
                None => drop(self.asked.insert(sql.clone(), None)),
                Some(prepared) if prepared.is_none() => {
                    let types: Vec<Type> = values.iter().map(Value::type_).collect();
                    *prepared = Some(self.client.prepare_typed(sql, &types).await?);
                }
                Some(_) => {}
            }
        }
        let (client, asked) = (&self.client, &self.asked);
        let prepared = |sql: &str| asked.get(sql).and_then(Option::as_ref);
        let results = statements.iter().map(|statement| one(client, prepared(&statement.sql), statement));
        let (first, results) = match first {
            Some(first) => join(client.batch_execute(&first), join_all(results)).await,
            None => (Ok(()), join_all(results).await),
        };
        first?;
        results.into_iter().collect()
    }
}

async fn one(
    client: &Client,
    prepared: Option<&tokio_postgres::Statement>,
    Statement { sql, values }: &Statement,
) -> Answer<Done> {
    use futures_util::TryStreamExt;

    let rows = match prepared {
        Some(prepared) => client.query_raw(prepared, values).await?,
        None => {
            let values = values.iter().map(|value| (value as &(dyn ToSql + Sync), value.type_()));
            client.query_typed_raw(sql, values).await?
        }
    };
    futures_util::pin_mut!(rows);
    let mut found = Vec::new();
    while let Some(row) = rows.try_next().await? {
        found.push(row);
    }
    Ok(Done { rows: found, changed: rows.rows_affected().unwrap_or_default() })
}

impl Value {
    fn type_(&self) -> Type {
        match self {
            Self::Integer(_) => Type::INT8,
            Self::Text(_) => Type::TEXT,
            Self::Bytes(_) => Type::BYTEA,
            Self::Integers(_) => Type::INT8_ARRAY,
            Self::Texts(_) => Type::TEXT_ARRAY,
            Self::Blobs(_) => Type::BYTEA_ARRAY,
        }
    }
}

impl ToSql for Value {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut bytes::BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Integer(number) => number.to_sql(ty, out),
            Self::Text(text) => text.to_sql(ty, out),
            Self::Bytes(bytes) => bytes.to_sql(ty, out),
            Self::Integers(numbers) => numbers.to_sql(ty, out),
            Self::Texts(texts) => texts.to_sql(ty, out),
            Self::Blobs(blobs) => blobs.to_sql(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
