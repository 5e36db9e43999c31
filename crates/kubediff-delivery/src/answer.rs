//! The outcome of a batch.

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
    /// The sink did not answer, or failed, or its address or the credentials are wrong: a record is to blame only if the sink takes others.
    Unavailable {
        /// For people: "connection refused", "401", "500".
        reason: Box<str>,
    },
    /// The sink does not take this batch.
    Refused {
        /// For people: "413".
        reason: Box<str>,
    },
    /// The sink has the first records of the batch. Another answer is about the rest.
    Partly {
        /// How many it has.
        accepted: usize,
        /// The answer about the rest.
        rest: Box<Answer>,
    },
}

impl Answer {
    /// How many records of a batch of so many the sink has, counted from the front.
    #[must_use]
    pub fn accepted(&self, of: usize) -> usize {
        match self {
            Self::Accepted => of,
            Self::Partly { accepted, rest } => {
                let accepted = of.min(*accepted);
                accepted + rest.accepted(of - accepted)
            }
            Self::Busy { .. } | Self::Unavailable { .. } | Self::Refused { .. } => 0,
        }
    }

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
            // The address or the credentials are wrong, or the server gave up waiting for the request (408), or does not dare to replay it (425).
            (401..=405 | 407 | 408 | 410 | 421 | 425 | 426, _) => Self::Unavailable { reason: reason() },
            (400..=499, _) => Self::Refused { reason: reason() },
            // Redirects are not followed: they would carry credentials to another host.
            _ => Self::Unavailable { reason: reason() },
        }
    }
}
