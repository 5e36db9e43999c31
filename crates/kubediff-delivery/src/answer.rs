//! The outcome of a batch: a delivery tells five apart.

use std::time::Duration;

/// The outcome of a batch that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The sink has it.
    Accepted,
    /// The sink asks to be left alone for a while: it has too much to do.
    Busy {
        /// How long, if it says so (`Retry-After`).
        wait: Option<Duration>,
    },
    /// The sink did not answer, or failed: whether it has the batch is unknown.
    Unavailable {
        /// For people: "connection refused", "500".
        reason: Box<str>,
    },
    /// The sink takes nothing from this program: its address or the credentials are wrong. No record is to blame.
    Closed {
        /// For people: "401".
        reason: Box<str>,
    },
    /// The sink does not take this batch.
    Refused {
        /// For people: "413".
        reason: Box<str>,
    },
}

impl Answer {
    /// The outcome that an HTTP status stands for ([RFC 9110](https://www.rfc-editor.org/rfc/rfc9110#section-15),
    /// [RFC 6585](https://www.rfc-editor.org/rfc/rfc6585#section-4) for 429).
    ///
    /// ```
    /// use kubediff_delivery::Answer;
    ///
    /// assert_eq!(Answer::of_http(202, None), Answer::Accepted);
    /// assert_eq!(Answer::of_http(429, None), Answer::Busy { wait: None });
    /// assert_eq!(Answer::of_http(400, None), Answer::Refused { reason: "400".into() });
    /// ```
    #[must_use]
    pub fn of_http(status: u16, retry_after: Option<Duration>) -> Self {
        let reason = || status.to_string().into_boxed_str();
        match (status, retry_after) {
            (200..=299, _) => Self::Accepted,
            (429, wait) | (503, wait @ Some(_)) => Self::Busy { wait },
            // Redirects are not followed: they would carry credentials to another host.
            (300..=399 | 401..=405 | 407 | 410 | 421 | 426 | 511, _) => Self::Closed { reason: reason() },
            // The server gave up waiting for the request, or does not dare to replay it.
            (408 | 425, _) => Self::Unavailable { reason: reason() },
            (400..=499, _) => Self::Refused { reason: reason() },
            _ => Self::Unavailable { reason: reason() },
        }
    }
}
