//! The page for a team: a listener of the daemon. A user of the cluster enters with a token, and sees what the cluster would show them.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use jiff::Zoned;
use jiff::tz::TimeZone;
use kube_client::Client;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use serde_json::json;
use serve::http::{ConnectionInfo, Server, ServerOptions, Serving};
use serve::{Body, compressed};
use tokio_util::task::AbortOnDropHandle;

use super::entrance::hardened;
use super::params::Params;
use super::past;
use super::problem::Problem;
use super::rights::Rights;
use super::routes::{HTML, Routes, content, moved, refusal};
use super::sessions::{Guests, Pass, Sessions, User};
use super::store::Store;
use super::template::{Frame, render};
use super::viewer::Viewer;
use crate::config::{Listen, TlsFiles, WebSettings};
use crate::text::terminal::{escape, say};

/// How long a handshake, the head of a request and its body may take, and a connection may be idle.
const HEAD: Duration = Duration::from_secs(20);
/// Connections at once. A process may have 1,024 files open where nobody has raised that.
const CONNECTIONS: usize = 400;
/// How long an answer may take, but for a stream.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the files of the certificate are looked at.
const RENEW: Duration = Duration::from_secs(60);

/// The listener could not begin.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The history cannot be read.
    #[error(transparent)]
    History(#[from] kubediff_history::Error),
    /// The address is taken, or is not this machine's.
    #[error("nothing can be served on {listen}; choose another address as `{field}`")]
    Listen {
        /// The address.
        listen: String,
        /// The field of the configuration.
        field: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// A file of the certificate cannot be used.
    #[error("the certificate of a listener: {} has no {what} in PEM: {why}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// The missing part.
        what: &'static str,
        /// The reason.
        why: String,
    },
    /// The key is not that of the certificate.
    #[error("the key of the certificate cannot be used")]
    Key(#[source] rustls::Error),
}

/// A listener that answers. Dropping it closes the port and all connections.
pub(crate) struct Listener {
    serving: Serving,
    answered: Answered,
    _renewing: Option<AbortOnDropHandle<()>>,
}

/// How many requests had an answer of each status.
pub(crate) type Answered = Arc<Mutex<BTreeMap<u16, u64>>>;

struct Entrance {
    answered: Answered,
    routes: Routes,
    sessions: Arc<Sessions>,
    rights: Arc<Rights>,
    is_encrypted: bool,
}

impl Listener {
    /// Listens where the settings say.
    ///
    /// # Errors
    ///
    /// When the history cannot be read, the certificate cannot be used, or the address is taken.
    pub(crate) async fn open(
        settings: &WebSettings,
        folder: &Path,
        history: super::Place,
        client: Client,
        guests: Guests,
    ) -> Result<Self, WebError> {
        let is_encrypted = settings.tls.is_some();
        let bound =
            Bound::bind("web.listen", settings.listen.0, settings.tls.as_ref(), folder, options()).await?;
        let Bound { server, renewing } = bound;
        let address = server.address();
        let store = Arc::new(Store::open(history, TimeZone::system(), None)?);
        let scheme = if is_encrypted { "https" } else { "http" };
        let answered = Answered::default();
        let entrance = Arc::new(Entrance {
            answered: answered.clone(),
            sessions: Arc::new(Sessions::new(client.clone(), is_encrypted, guests)),
            rights: Arc::new(Rights::new(client, store.clone())),
            routes: Routes::new(store, scheme),
            is_encrypted,
        });
        let serving = server.serve(move |request: Request<Bytes>, _: ConnectionInfo| {
            let entrance = entrance.clone();
            async move { entrance.answer(request).await }
        });
        say(&format!("the page is on {scheme}://{address}"));
        Ok(Self { serving, answered, _renewing: renewing })
    }

    pub(crate) fn answered(&self) -> Answered {
        self.answered.clone()
    }

    pub(crate) async fn close(self) {
        self.serving.stop().await;
    }
}

fn options() -> ServerOptions {
    ServerOptions {
        max_request_body: 64 << 10,
        max_concurrent_streams: 100,
        read_timeout: Some(HEAD),
        max_connections: Some(CONNECTIONS),
        ..ServerOptions::default()
    }
}

/// A port of the daemon, plain or over TLS.
pub(crate) struct Bound {
    pub(crate) server: Server,
    /// Takes the certificate again when it changes, until it is dropped.
    pub(crate) renewing: Option<AbortOnDropHandle<()>>,
}

impl Bound {
    /// Listens where a field of the configuration says.
    ///
    /// # Errors
    ///
    /// When the certificate cannot be used, or the address is taken.
    pub(crate) async fn bind(
        field: &'static str,
        listen: Listen,
        tls: Option<&TlsFiles>,
        folder: &Path,
        options: ServerOptions,
    ) -> Result<Self, WebError> {
        let certificate = tls.map(|files| Certificate::read(files, folder)).transpose()?;
        let tls = |certificate: Arc<Certificate>| {
            let builder =
                ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
            let config =
                builder.map_err(WebError::Key)?.with_no_client_auth().with_cert_resolver(certificate);
            Ok::<_, WebError>(Arc::new(config))
        };
        let tls = certificate.clone().map(tls).transpose()?;
        let mut failed = None;
        for address in listen.addresses() {
            let options = ServerOptions { address, tls: tls.clone(), ..options.clone() };
            match free(address).await.and(Server::bind(options).await) {
                Ok(server) => {
                    let renewing = certificate.map(|it| AbortOnDropHandle::new(tokio::spawn(it.renew())));
                    return Ok(Self { server, renewing });
                }
                Err(error) => failed = Some(error),
            }
        }
        let source = failed.unwrap_or_else(|| std::io::ErrorKind::AddrNotAvailable.into());
        Err(WebError::Listen { listen: listen.to_string(), field, source })
    }
}

/// An error where somebody has the address: the server would share its port with other sockets of this user.
async fn free(address: SocketAddr) -> std::io::Result<()> {
    if address.port() == 0 { Ok(()) } else { tokio::net::TcpListener::bind(address).await.map(drop) }
}

impl Entrance {
    /// Answers a request, and says so in a line without any content.
    async fn answer(&self, request: Request<Bytes>) -> Response<Body> {
        let (begin, is_head) = (Instant::now(), request.method() == Method::HEAD);
        let line = format!("{} {}", request.method(), escape(&request.uri().to_string()));
        let headers = request.headers().clone();
        let (response, user) = self.admitted(request).await;
        let status = response.status().as_u16();
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner).entry(status).or_default() += 1;
        if let Some(user) = user {
            let ms = begin.elapsed().as_millis();
            say(&format!("page: {} {line} {status} {ms} ms", escape(&user.name)));
        }
        hardened(compressed(&headers, response).await, is_head)
    }

    /// The answer, and who gets it.
    async fn admitted(&self, request: Request<Bytes>) -> (Response<Body>, Option<Arc<User>>) {
        let path = request.uri().path().to_owned();
        let refused = |problem| refusal(&path, problem, &Zoned::now());
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        match path.as_str() {
            "/login" if is_read => return (login(&request, None), None),
            "/login" => {
                let (response, user) =
                    self.log_in(&request).await.unwrap_or_else(|problem| (refused(problem), None));
                return (response, user);
            }
            "/logout" if !is_read => return (self.log_out(&request).unwrap_or_else(refused), None),
            _ => {}
        }
        let is_api = past::Address::of(&path).is_some();
        if !is_read && !is_api {
            let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "The page answers GET alone");
            return (refused(problem.hint("Nothing can be changed here.")), None);
        }
        let (user, pass) = match self.user(&request).await {
            Ok(Some(found)) => found,
            Ok(None) if path.starts_with("/static/") => {
                return (self.routes.answer(&request, &Viewer::Owner).await, None);
            }
            Ok(None) if is_api => {
                let problem =
                    Problem::new(StatusCode::UNAUTHORIZED, "A bearer token of the cluster is needed here");
                let hint = "`kubectl create token NAME` makes one for a service account: give it to kubectl by --token.";
                let mut response = refused(problem.hint(hint));
                response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                return (response, None);
            }
            Ok(None) if path.starts_with("/v1/") || path == "/live" => {
                let problem =
                    Problem::new(StatusCode::UNAUTHORIZED, "A bearer token of the cluster is needed here");
                let hint = "`kubectl create token NAME` makes one for a service account; send it as `Authorization: Bearer TOKEN`.";
                let mut response = refused(problem.hint(hint));
                response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                return (response, None);
            }
            Ok(None) => {
                let to = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
                return (moved(&super::address::with("/login", [("to", to.to_owned())])), None);
            }
            Err(problem) => return (refused(problem), None),
        };
        let Ok(_room) = user.requests.clone().try_acquire_owned() else {
            let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "You ask too much at once");
            return (refused(problem.hint("Ask again when the other requests are answered.")), Some(user));
        };
        let (rights, sessions) = (self.rights.clone(), self.sessions.clone());
        let viewer = Viewer::User { user: user.clone(), rights, sessions, pass };
        let answer = tokio::time::timeout(PATIENCE, self.routes.answer(&request, &viewer)).await;
        (answer.unwrap_or_else(|_| refused(Problem::late())), Some(user))
    }

    /// The user of a request, and why they are in.
    async fn user(&self, request: &Request<Bytes>) -> Result<Option<(Arc<User>, Pass)>, Problem> {
        let sent = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        if let Some(sent) = sent {
            let token = sent.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
            let token = token.filter(|(_, token)| !token.trim().is_empty());
            return match token {
                Some((_, token)) => {
                    let user = self.sessions.of_token(token.trim()).await?;
                    Ok(user.map(|user| (user, Pass::Token(token.trim().into()))))
                }
                None => Ok(None),
            };
        }
        Ok(self.sessions.of_cookie(request.headers()))
    }

    async fn log_in(&self, request: &Request<Bytes>) -> Result<(Response<Body>, Option<Arc<User>>), Problem> {
        self.same_origin(request)?;
        let sent = Params::parse(&String::from_utf8_lossy(request.body()));
        let user = match sent.get("token") {
            Some(token) => self.sessions.of_token(token).await?,
            None => None,
        };
        let Some(user) = user else {
            let fault = "The cluster does not know this token, or it has expired.";
            return Ok((login(request, Some(fault)), None));
        };
        // An address of another site begins with two slashes. Browsers take a backslash for one, and leave out tabs and newlines.
        let is_here = |to: &&str| {
            let is_plain = to.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
            is_plain && to.starts_with('/') && !to.starts_with("//")
        };
        let to = sent.get("to").filter(is_here);
        let mut response = moved(to.unwrap_or("/"));
        let cookie = self.sessions.enter(user.clone()).map_err(|_| no_random_numbers())?;
        self.set_cookie(&mut response, cookie);
        Ok((response, Some(user)))
    }

    fn log_out(&self, request: &Request<Bytes>) -> Result<Response<Body>, Problem> {
        self.same_origin(request)?;
        let mut response = moved("/login");
        self.set_cookie(&mut response, self.sessions.leave(request.headers()));
        Ok(response)
    }

    fn set_cookie(&self, response: &mut Response<Body>, cookie: String) {
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
    }

    /// Refuses a form that another site has sent.
    fn same_origin(&self, request: &Request<Bytes>) -> Result<(), Problem> {
        let text = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
        let host = request.uri().authority().map(http::uri::Authority::as_str).or_else(|| text("host"));
        let scheme = if self.is_encrypted { "https" } else { "http" };
        let is_same = match (text("sec-fetch-site"), text("origin"), host) {
            (Some(site), ..) => site == "same-origin",
            (None, Some(origin), Some(host)) => origin == format!("{scheme}://{host}"),
            _ => false,
        };
        if *request.method() != Method::POST || !is_same {
            let problem = Problem::new(StatusCode::FORBIDDEN, "The form did not come from this page");
            return Err(problem.hint("Open /login and send its form."));
        }
        Ok(())
    }
}

fn no_random_numbers() -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "The system has no random numbers for a cookie")
}

/// The form of the entrance.
fn login(request: &Request<Bytes>, fault: Option<&str>) -> Response<Body> {
    let asked = Params::parse(request.uri().query().unwrap_or_default());
    let sent = Params::parse(&String::from_utf8_lossy(request.body()));
    let to = sent.get("to").or_else(|| asked.get("to")).unwrap_or("/");
    let page = Frame::new("Sign in", "login", &Params::default(), &[]).around("", &Zoned::now());
    let status = if fault.is_some() { StatusCode::UNAUTHORIZED } else { StatusCode::OK };
    match render("login.html", json!({ "page": page, "to": to, "fault": fault })) {
        Ok(html) => content(status, HTML, html),
        Err(error) => refusal("/login", error.into(), &Zoned::now()),
    }
}

/// The certificate of the listener. Its files may be renewed.
#[derive(Debug)]
struct Certificate {
    files: TlsFiles,
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificate {
    fn read(files: &TlsFiles, folder: &Path) -> Result<Arc<Self>, WebError> {
        let files = TlsFiles { certificate: folder.join(&files.certificate), key: folder.join(&files.key) };
        let current = RwLock::new(read(&files)?);
        Ok(Arc::new(Self { files, current }))
    }

    /// Takes the files again when they have changed.
    async fn renew(self: Arc<Self>) {
        let mut said = String::new();
        loop {
            tokio::time::sleep(RENEW).await;
            match read(&self.files) {
                Ok(read) => {
                    said.clear();
                    *self.current.write().unwrap_or_else(PoisonError::into_inner) = read;
                }
                Err(error) => {
                    let error = informer::error_chain(&error);
                    if error != said {
                        say(&format!("{error}; the former certificate stays in use"));
                        said = error;
                    }
                }
            }
        }
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

pub(super) fn provider() -> Arc<CryptoProvider> {
    let of_program = CryptoProvider::get_default().cloned();
    of_program.unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()))
}

fn read(files: &TlsFiles) -> Result<Arc<CertifiedKey>, WebError> {
    let failed =
        |path: &Path, what: &'static str, why: String| WebError::Pem { path: path.to_owned(), what, why };
    let text = |path: &Path, what: &'static str| {
        fs::read(path).map_err(|error| failed(path, what, error.to_string()))
    };
    let pem = text(&files.certificate, "certificate")?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let chain = chain.map_err(|error| failed(&files.certificate, "certificate", error.to_string()))?;
    if chain.is_empty() {
        return Err(failed(&files.certificate, "certificate", "the file has none".to_owned()));
    }
    // The text of an error would not have the key, and is left out all the same.
    let key = PrivateKeyDer::from_pem_slice(&text(&files.key, "private key")?)
        .map_err(|_| failed(&files.key, "private key", "the file has none".to_owned()))?;
    CertifiedKey::from_der(chain, key, &provider()).map(Arc::new).map_err(WebError::Key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(files: &TlsFiles) -> Vec<u8> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(&files.certificate, made.cert.pem()).unwrap();
        fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
        made.cert.der().to_vec()
    }

    async fn a_while() {
        for _ in 0..3 {
            tokio::task::yield_now().await;
            tokio::time::advance(RENEW).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewed_certificate_is_taken_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let files = TlsFiles { certificate: "page.crt".into(), key: "page.key".into() };
        let there =
            TlsFiles { certificate: folder.path().join("page.crt"), key: folder.path().join("page.key") };
        let first = write(&there);
        let certificate = Certificate::read(&files, folder.path()).unwrap();
        let in_use = || certificate.current.read().unwrap().cert[0].to_vec();
        assert_eq!(in_use(), first);
        let _renewing = AbortOnDropHandle::new(tokio::spawn(certificate.clone().renew()));
        let next = write(&there);
        a_while().await;
        assert_eq!(in_use(), next);
        fs::write(&there.certificate, "half a file").unwrap();
        a_while().await;
        assert_eq!(in_use(), next);
        assert!(Certificate::read(&files, folder.path()).is_err());
    }
}
