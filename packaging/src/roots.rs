//! The certificates that the image trusts, because an image of nothing but a program has none: a sink at an address with
//! `https` would be refused.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use webpki_root_certs::TLS_SERVER_ROOT_CERTS;

use crate::Error;
use crate::archive::Archive;

/// Where programs on Linux look first.
const PATH: &str = "etc/ssl/certs/ca-certificates.crt";
/// Its licence wants its text beside the list.
const LICENSE: &str = include_str!("../licenses/CDLA-Permissive-2.0.md");
const LICENSE_PATH: &str = "etc/ssl/certs/LICENSE";

/// The width of a line of PEM.
const WIDTH: usize = 64;

/// Adds Mozilla's list, of the version in Cargo.lock.
pub(crate) fn add(root: &mut Archive) -> Result<(), Error> {
    root.file(PATH, 0o644, pem().as_bytes())?;
    root.file(LICENSE_PATH, 0o644, LICENSE.as_bytes())
}

fn pem() -> String {
    let mut text = String::new();
    for certificate in TLS_SERVER_ROOT_CERTS {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let mut rest = &*STANDARD.encode(certificate);
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(WIDTH));
            text.push_str(line);
            text.push('\n');
            rest = after;
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    use super::*;

    #[test]
    fn each_certificate_is_read_back() {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem().as_bytes()).collect();
        let read = read.unwrap();
        assert!(read.len() > 100, "{}", read.len());
        assert_eq!(read, TLS_SERVER_ROOT_CERTS);
    }
}
