//! A client of the page: requests one after the other, on one connection.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

pub(crate) type Failure = Box<dyn std::error::Error>;

/// The page on a history. It ends when this is dropped.
pub(crate) struct Page {
    child: Child,
    host: String,
    cookie: String,
    sender: SendRequest<Empty<Bytes>>,
}

async fn connected(host: &str) -> Result<SendRequest<Empty<Bytes>>, Failure> {
    let (sender, connection) = http1::handshake(TokioIo::new(TcpStream::connect(host).await?)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

/// The response to a question.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
    pub(crate) took: Duration,
}

impl Page {
    pub(crate) async fn open(program: &Path, history: &Path) -> Result<Self, Failure> {
        let mut child = Command::new(program)
            .args(["ui", "--history"])
            .arg(history)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut said = BufReader::new(child.stderr.take().ok_or("no standard error")?).lines();
        let link = loop {
            let line = said.next_line().await?.ok_or("kubediff ended before it had a page")?;
            if let Some(at) = line.find("http://127.") {
                break line[at..].split_whitespace().next().unwrap_or_default().to_owned();
            }
        };
        tokio::spawn(async move { while let Ok(Some(_)) = said.next_line().await {} });
        let link: http::Uri = link.parse()?;
        let host = link.authority().ok_or("no host")?.to_string();
        let sender = connected(&host).await?;
        let mut page = Self { child, host, cookie: String::new(), sender };
        let entered = page.send(&link.path_and_query().ok_or("no path")?.to_string()).await?;
        let cookie = entered.headers().get(header::SET_COOKIE).ok_or("no cookie")?.to_str()?;
        page.cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        entered.into_body().collect().await?;
        Ok(page)
    }

    /// The process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    async fn send(&mut self, path: &str) -> Result<Response<Incoming>, Failure> {
        let request = self.request(path)?;
        self.sender.ready().await?;
        Ok(self.sender.send_request(request).await?)
    }

    fn request(&self, path: &str) -> Result<Request<Empty<Bytes>>, Failure> {
        let request =
            Request::get(path).header(header::HOST, &self.host).header(header::COOKIE, &self.cookie);
        Ok(request.body(Empty::new())?)
    }

    /// A live page on a connection of its own, which ends with what is returned.
    pub(crate) async fn live(&self) -> Result<(SendRequest<Empty<Bytes>>, Incoming), Failure> {
        let mut sender = connected(&self.host).await?;
        let response = sender.send_request(self.request("/live")?).await?;
        if response.status() != StatusCode::OK {
            return Err(format!("/live: {}", response.status()).into());
        }
        Ok((sender, response.into_body()))
    }

    /// Asks, and reads the whole answer.
    pub(crate) async fn ask(&mut self, path: &str) -> Result<Answer, Failure> {
        let begin = Instant::now();
        let response = self.send(path).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok(Answer { status, body, took: begin.elapsed() })
    }
}
