//! Where a server listens.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// Where a server listens: `:8080` on all addresses, `127.0.0.1:8080` on one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listen {
    address: Option<IpAddr>,
    port: u16,
}

/// A text that is no such place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected an address and a port, as in :8080, 127.0.0.1:8080 or \"[::1]:8080\"")]
pub struct InvalidListen;

impl Listen {
    /// The addresses to try, one after the other: on all of them, IPv6 takes IPv4 along where the machine has both.
    pub fn addresses(self) -> Vec<SocketAddr> {
        let addresses = match self.address {
            Some(address) => vec![address],
            None => vec![Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()],
        };
        addresses.into_iter().map(|address| SocketAddr::new(address, self.port)).collect()
    }
}

impl Listen {
    /// Whether nobody but this machine reaches it.
    pub fn is_loopback(self) -> bool {
        self.address.is_some_and(|address| address.is_loopback())
    }
}

impl Default for Listen {
    fn default() -> Self {
        Self { address: None, port: 8080 }
    }
}

impl FromStr for Listen {
    type Err = InvalidListen;

    fn from_str(text: &str) -> Result<Self, InvalidListen> {
        let on_all = text.strip_prefix('*').unwrap_or(text).strip_prefix(':');
        if let Some(port) = on_all {
            return Ok(Self { address: None, port: port.parse().map_err(|_| InvalidListen)? });
        }
        let text = text.replacen("localhost:", "127.0.0.1:", 1);
        let address: SocketAddr = text.parse().map_err(|_| InvalidListen)?;
        Ok(Self { address: Some(address.ip()), port: address.port() })
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => SocketAddr::new(address, self.port).fmt(f),
            None => write!(f, ":{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Listen;

    #[test]
    fn what_is_read_is_printed() {
        for text in [":8080", "127.0.0.1:8080", "[::1]:9090"] {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), text);
        }
        assert_eq!("localhost:80".parse::<Listen>().unwrap().to_string(), "127.0.0.1:80");
        assert_eq!(Listen::default().addresses().len(), 2);
        for text in ["", "8080", ":", ":x", ":70000", "example.com:80", "::1:80", "http://:80"] {
            assert!(text.parse::<Listen>().is_err(), "{text}");
        }
    }
}
