//! An embedded Kubernetes API server for tests and demos, with faults by script.
