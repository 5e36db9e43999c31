//! Configurations of clients.

use base64::prelude::{BASE64_STANDARD, Engine as _};

/// The text of a kubeconfig file with one cluster, one user and one context, all named `testapi`.
///
/// JSON strings are valid in YAML, so quoting them as JSON is safe.
pub(crate) fn kubeconfig(url: &str, ca_pem: Option<&str>, token: Option<&str>) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let authority = ca_pem.map_or_else(String::new, |pem| {
        let data = BASE64_STANDARD.encode(pem);
        format!("\n    certificate-authority-data: {}", quoted(&data))
    });
    let user = token.map_or_else(|| " {}".to_owned(), |token| format!("\n    token: {}", quoted(token)));
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: testapi
  cluster:
    server: {}{authority}
users:
- name: testapi
  user:{user}
contexts:
- name: testapi
  context:
    cluster: testapi
    user: testapi
    namespace: default
current-context: testapi
",
        quoted(url)
    )
}

/// The configuration of a client in this process.
#[cfg(feature = "kube")]
pub(crate) fn config(
    address: std::net::SocketAddr,
    ca_pem: Option<&str>,
    token: Option<&str>,
) -> kube_client::Config {
    use rustls::pki_types::{CertificateDer, pem::PemObject as _};

    let scheme = if ca_pem.is_some() { "https" } else { "http" };
    let url = http::Uri::builder().scheme(scheme).authority(address.to_string()).path_and_query("/").build();
    #[expect(clippy::expect_used, reason = "every address of a socket can stand in a URL")]
    let mut config = kube_client::Config::new(url.expect("an address"));
    let authority = ca_pem.and_then(|pem| CertificateDer::from_pem_slice(pem.as_bytes()).ok());
    config.root_cert = authority.map(|certificate| vec![certificate.to_vec()]);
    config.auth_info.token = token.map(|token| token.to_owned().into());
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_in_their_places() {
        let text = kubeconfig("http://127.0.0.1:1", None, Some("a\"\nusers: []"));
        assert_eq!(text.lines().filter(|line| line.starts_with("users:")).count(), 1);
        assert!(text.contains(r#"token: "a\"\nusers: []""#), "{text}");
        assert!(!text.contains("certificate-authority"));
    }

    #[test]
    fn the_authority_goes_with_it() {
        let text = kubeconfig("https://127.0.0.1:1", Some("PEM"), None);
        assert!(text.contains("certificate-authority-data: \"UEVN\""), "{text}");
        assert!(text.contains("user: {}"), "{text}");
    }
}
