//! Issue 22, TLS: a database over a network is the one that was named, or an error with a remedy.

use kubediff_history::*;
use postgres_server::{Durability, Server};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::faults::{address, batch, database, insist, settings};
use crate::world::cluster;

/// A certificate authority: its certificate in PEM, and what signs.
fn authority(name: &str) -> (String, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    (certificate, Issuer::new(params, key))
}

/// The server gets a certificate for a name.
fn certify(server: &Server, name: &str, by: &Issuer<'_, KeyPair>) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, by).unwrap();
    server.speak_tls(&certificate.pem(), &key.serialize_pem()).unwrap();
}

#[test]
fn a_server_is_the_one_that_its_certificate_names() {
    let server = Server::start(Durability::None).unwrap();
    let name = database(&server);
    let folder = tempfile::tempdir().unwrap();
    let [ours, other] = ["ours.pem", "other.pem"].map(|name| folder.path().join(name));
    let (certificate, authority_of_ours) = authority("ours");
    std::fs::write(&ours, certificate).unwrap();
    let (certificate, _) = authority("other");
    std::fs::write(&other, certificate).unwrap();
    let of = |host: &str, query: &str| format!("postgres://postgres@{host}:{}/{name}?{query}", server.port());
    let trusting = |file: &std::path::Path| format!("sslrootcert={}", file.display());
    let read = |text: &str| Reader::at(&address(text), Some("test"));

    // A server without TLS gets no password.
    let plain = read(&of("localhost", &trusting(&ours))).unwrap_err();
    assert!(matches!(plain, Error::Unreachable { .. }), "{plain:?}");
    certify(&server, "localhost", &authority_of_ours);
    let whole = of("localhost", &format!("{}&sslmode=verify-full", trusting(&ours)));
    let mut history = History::at(&address(&whole), &cluster(), &settings("a")).unwrap();
    history.commit(&batch(1..=9)).unwrap();
    let encrypted = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'kubediff'";
    assert_eq!(server.sql(&name, encrypted).unwrap(), "t");

    for (text, why) in [
        (of("localhost", "sslmode=verify-full"), "UnknownIssuer"),
        (of("localhost", &trusting(&other)), "UnknownIssuer"),
        (of("127.0.0.1", &trusting(&ours)), "not valid for name"),
    ] {
        let refused = read(&text).unwrap_err();
        let is_untrusted = matches!(refused, Error::Untrusted { .. });
        let mut causes = vec![refused.to_string()];
        let mut cause = std::error::Error::source(&refused);
        while let Some(next) = cause {
            causes.push(next.to_string());
            cause = next.source();
        }
        let causes = causes.join(": ");
        assert!(is_untrusted && causes.contains("sslrootcert") && causes.contains(why), "{text}: {causes}");
    }
    let missing = read(&of("localhost", &trusting(&folder.path().join("none.pem")))).unwrap_err();
    assert!(matches!(missing, Error::Io { .. }), "{missing:?}");

    // A writer waits while the certificate is wrong, as it waits for a server that is away.
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'kubediff'";
    certify(&server, "elsewhere", &authority_of_ours);
    server.sql(&name, end).unwrap();
    let failed = [history.commit(&batch(10..=12)), history.commit(&batch(10..=12))].map(Result::unwrap_err);
    assert!(failed.iter().all(Error::is_passing), "{failed:?}");
    assert!(matches!(failed[1], Error::Untrusted { .. }), "{failed:?}");
    certify(&server, "localhost", &authority_of_ours);
    insist(&mut history, &batch(10..=12));
    crate::faults::is_whole(&mut history.reader().unwrap(), 12, "after the certificates");
}
