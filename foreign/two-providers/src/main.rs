//! Makes a factory for an HTTPS server over each version of HTTP, where rustls could not choose between its providers.

use std::error::Error;

use informer::{Http2, HttpVersion, SharedInformerFactory};
use kube_client::Config;

fn main() -> Result<(), Box<dyn Error>> {
    assert!(rustls::crypto::CryptoProvider::get_default().is_none(), "somebody has installed a provider");
    for version in [HttpVersion::Http1, HttpVersion::Http2(Http2::default())] {
        let config = Config::new("https://server.example".parse()?);
        SharedInformerFactory::builder(config).http_version(version).build()?;
    }
    println!("both are made");
    Ok(())
}
