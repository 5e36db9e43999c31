//! The address of a database: `postgres://user@host/db?sslmode=verify-full&cluster=prod`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_platform_verifier::Verifier;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::error::{Error, Place};

/// The address of a database with histories, as `postgres://`. Its password may be in a file, which is read at each connection: so it can be
/// rotated.
///
/// Parameters are those of libpq, and `passwordfile` names a file with the password alone. TLS is verified (`sslmode=verify-full`) unless the
/// host is a socket or this machine, or `sslmode=disable` stands there; `sslrootcert` names a file with further certificates.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    config: Box<Config>,
    password_file: Option<PathBuf>,
    root_certificates: Option<PathBuf>,
    /// Without the password.
    place: Place,
}

impl Address {
    /// Whether a text is meant as one of these, and not as the path of a file.
    pub fn is_one(text: &str) -> bool {
        let scheme = text.trim_start().split_once(':').map_or("", |(scheme, _)| scheme);
        ["postgres", "postgresql"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
    }

    /// Reads an address.
    ///
    /// # Errors
    ///
    /// [`Error::Address`] for a text that is none, and for a connection over a network without verified TLS that does not say
    /// `sslmode=disable`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let place = Place::from(shown(text));
        let wrong = |what: &str| Error::Address { place: place.clone(), what: what.to_owned() };
        if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
            return Err(wrong("it begins with `postgres://`"));
        }
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut rest, mut mode, mut password_file, mut root_certificates) = (Vec::new(), None, None, None);
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("passwordfile", value)) => password_file = Some(decoded(value).into()),
                // What it has of other servers must not be sent to this one.
                Some(("passfile", _)) => {
                    let what = "`passfile` names a file with passwords of several servers, which is not read here: name a file with the \
                                password alone by `passwordfile`";
                    return Err(wrong(what));
                }
                Some(("sslrootcert", value)) => root_certificates = Some(decoded(value).into()),
                _ => rest.push(parameter),
            }
        }
        let mut config: Config =
            format!("{base}?{}", rest.join("&")).parse().map_err(|error: tokio_postgres::Error| {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                wrong(&source.unwrap_or_else(|| error.to_string()))
            })?;
        let is_local = config.get_hosts().iter().all(|host| match host {
            Host::Tcp(name) => ["localhost", "127.0.0.1", "::1"].contains(&name.as_str()),
            #[cfg(unix)]
            Host::Unix(_) => true,
        });
        config.ssl_mode(match mode {
            Some("disable") => SslMode::Disable,
            Some("verify-full") => SslMode::Require,
            None if is_local && root_certificates.is_none() => SslMode::Disable,
            None => SslMode::Require,
            Some(_) => {
                return Err(wrong("`sslmode` is `verify-full`, which checks who answers, or `disable`"));
            }
        });
        config.application_name("kubediff");
        config.connect_timeout(Duration::from_secs(10));
        // A network that has gone without a word is noticed within half a minute.
        config
            .keepalives_idle(Duration::from_secs(10))
            .keepalives_interval(Duration::from_secs(5))
            .keepalives_retries(3);
        config.tcp_user_timeout(Duration::from_secs(15));
        Ok(Self { config: Box::new(config), password_file, root_certificates, place })
    }

    /// The address without its password.
    pub(crate) fn place(&self) -> Place {
        self.place.clone()
    }

    /// What a connection needs: the files are read now.
    pub(crate) fn resolve(&self) -> Result<(Config, Option<Arc<ClientConfig>>), Error> {
        let mut config = (*self.config).clone();
        let failed =
            |source: Box<dyn std::error::Error + Send + Sync>| Error::Io { place: self.place(), source };
        let read = |path: &PathBuf| {
            std::fs::read(path).map_err(|error| failed(format!("{}: {error}", path.display()).into()))
        };
        if let Some(file) = &self.password_file {
            config.password(read(file)?.trim_ascii());
        }
        if config.get_ssl_mode() == SslMode::Disable {
            return Ok((config, None));
        }
        let roots = self.root_certificates.as_ref().map(read).transpose()?.unwrap_or_default();
        Ok((config, Some(Arc::new(tls(&roots).map_err(failed)?))))
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Address({})", self.place)
    }
}

/// Trusts what the machine trusts, and these certificates in PEM.
fn tls(roots: &[u8]) -> Result<ClientConfig, Box<dyn std::error::Error + Send + Sync>> {
    let certificates = CertificateDer::pem_slice_iter(roots).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(|_| "`sslrootcert` has no certificates in PEM")?;
    let provider = Arc::new(default_provider());
    let verifier = Verifier::new_with_extra_roots(certificates, provider.clone())?;
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

/// An address without its password and parameters.
fn shown(text: &str) -> String {
    let text = text.split('?').next().unwrap_or_default();
    // Of what is no address, nobody knows what is secret in it.
    let Some((scheme, rest)) = text.split_once("://") else { return "postgres://...".to_owned() };
    let Some((user, host)) = rest.rsplit_once('@') else { return text.to_owned() };
    let user = user.split(':').next().unwrap_or_default();
    format!("{scheme}://{user}@{host}")
}

/// A value of a parameter, in which `%2F` stands for a slash.
fn decoded(value: &str) -> String {
    percent_encoding::percent_decode_str(value).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        assert_eq!(shown("postgres://a:b%40c@host/db?x=1"), "postgres://a@host/db");
        assert_eq!(shown("postgres:///db"), "postgres:///db");
        for wrong in ["postgres:/u:secret@h", " POSTGRES://u:secret@h:99999/d", "host=h password=secret"] {
            let refused = Address::parse(wrong).unwrap_err().to_string();
            assert!(!refused.contains("secret"), "{refused}");
        }
    }

    #[test]
    fn tls_is_verified_but_on_this_machine() {
        let mode = |text: &str| Address::parse(text).map(|address| address.config.get_ssl_mode());
        assert_eq!(mode("postgres://u@db.example/k").unwrap(), SslMode::Require);
        assert_eq!(mode("postgres://u@localhost/k").unwrap(), SslMode::Disable);
        assert_eq!(mode("postgres://u@/k?host=/run/pg").unwrap(), SslMode::Disable);
        for mode_of in ["require", "prefer"] {
            let refused =
                mode(&format!("postgres://u:secret@db.example/k?sslmode={mode_of}")).unwrap_err().to_string();
            assert!(refused.contains("verify-full") && !refused.contains("secret"), "{refused}");
        }
        let refused = Address::parse("postgres://u@localhost/k?passfile=/secret").unwrap_err().to_string();
        assert!(refused.contains("`passwordfile`"), "{refused}");
    }
}
