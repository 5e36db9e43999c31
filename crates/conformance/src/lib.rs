//! Contract tests against servers.
