//! A page that is served, and a client with a cookie.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

/// The time of the page's clock, where the history is the shop's.
pub(crate) const NOW: &str = "2026-03-01T15:00:00+00:00[UTC]";

/// A running `kubediff ui`. It ends with this.
pub(crate) struct Page {
    child: Child,
    /// Its address and port, as a browser names the host.
    pub(crate) host: String,
    /// The path of the link that was printed.
    pub(crate) entry: String,
    cookie: Option<String>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) text: String,
}

impl Answer {
    /// Reads a whole answer.
    pub(crate) fn read(mut stream: impl Read, path: &str) -> Self {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, text) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{path}: {text}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, head: head.to_owned(), text: text.to_owned() }
    }

    /// All values of a header.
    pub(crate) fn headers(&self, name: &str) -> Vec<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
    }

    /// A header, by its name in small letters.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }
}

impl Page {
    /// A page whose clock stands still.
    pub(crate) fn at(history: &Path, now: &str) -> Self {
        Self::with(history, &["--now", now])
    }

    /// A page in which somebody is inside.
    pub(crate) fn with(history: &Path, arguments: &[&str]) -> Self {
        Self::outside(history, arguments).entered()
    }

    /// The page, in which somebody is now.
    pub(crate) fn entered(mut self) -> Self {
        let entered = self.get(&self.entry.clone());
        assert_eq!((entered.status, entered.header("location")), (303, Some("/")), "{entered:?}");
        let cookie = entered.header("set-cookie").unwrap();
        self.cookie = cookie.split_once(';').map(|(cookie, _)| cookie.to_owned());
        self
    }

    /// A page in which nobody is.
    pub(crate) fn outside(history: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubediff"));
        command.args(["ui", "--history"]).arg(history).args(arguments).env("TZ", "UTC");
        Self::of(command)
    }

    /// The page of a command, in which nobody is.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut seen = Vec::new();
        let link = lines.by_ref().map(Result::unwrap).find_map(|line| {
            let link = line.split_once("http://").map(|(_, link)| link.to_owned());
            seen.push(line);
            link
        });
        let link = link.unwrap_or_else(|| panic!("{seen:?}"));
        // Later messages must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let (host, entry) = link.split_once('/').unwrap();
        assert!(host.starts_with("127."), "{host}");
        Self { child, host: host.to_owned(), entry: format!("/{entry}"), cookie: None }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &self.host, self.cookie.as_deref())
    }

    pub(crate) fn ask(&self, method: &str, path: &str, host: &str, cookie: Option<&str>) -> Answer {
        let cookie = cookie.map(|cookie| format!("Cookie: {cookie}\r\n")).unwrap_or_default();
        self.answer(method, path, host, &cookie)
    }

    /// The answer to somebody who has those with these tags.
    pub(crate) fn unless(&self, method: &str, path: &str, tags: &str) -> Answer {
        let cookie = self.cookie.as_deref().unwrap_or_default();
        self.answer(method, path, &self.host, &format!("Cookie: {cookie}\r\nIf-None-Match: {tags}\r\n"))
    }

    fn answer(&self, method: &str, path: &str, host: &str, headers: &str) -> Answer {
        Answer::read(self.send(method, path, host, headers), path)
    }

    /// The lines of an answer that does not end.
    pub(crate) fn follow(&self, path: &str) -> impl Iterator<Item = String> + use<> {
        let cookie = self.cookie.as_deref().unwrap_or_default();
        let stream = self.send("GET", path, &self.host, &format!("Cookie: {cookie}\r\n"));
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        BufReader::new(stream).lines().map(Result::unwrap)
    }

    fn send(&self, method: &str, path: &str, host: &str, headers: &str) -> TcpStream {
        let stream = TcpStream::connect(&self.host).unwrap();
        send(stream, method, path, &format!("Host: {host}\r\n{headers}"), "")
    }
}

/// Sends a request by HTTP/1.0: the body of the answer is as it is, and ends with the connection.
pub(crate) fn send<S: Write>(mut to: S, method: &str, path: &str, headers: &str, body: &str) -> S {
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let request = format!("{method} {path} HTTP/1.0\r\n{headers}{length}\r\n{body}");
    to.write_all(request.as_bytes()).unwrap();
    to
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The addresses of this page that an HTML names.
pub(crate) fn links(html: &str) -> Vec<String> {
    let targets = html.split("href=\"").skip(1).filter_map(|rest| rest.split_once('"'));
    targets.map(|(link, _)| link.replace("&amp;", "&")).filter(|link| link.starts_with('/')).collect()
}

/// The text of an HTML, in one line.
pub(crate) fn text(html: &str) -> String {
    let mut out = String::new();
    for part in html.split('<') {
        let text = part.split_once('>').map_or(part, |(_, text)| text);
        out.push_str(text);
        out.push(' ');
    }
    let out = out
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&#39;", "'")
        .replace("&quot;", "\"")
        .replace("&amp;", "&");
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}
