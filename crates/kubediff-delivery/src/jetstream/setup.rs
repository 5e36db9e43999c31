//! The stream: whether it exists, and whether it is one for kubediff.

use async_nats::jetstream::context::{CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::{Config, RetentionPolicy, Stream};
use async_nats::jetstream::{Context, ErrorCode};

/// The stream that is wanted.
pub(super) struct Setup {
    pub(super) name: String,
    /// The subjects of all messages: `kubediff.CLUSTER.>`.
    pub(super) subjects: String,
    /// Whether it is created if it does not exist.
    pub(super) create: bool,
}

impl Setup {
    /// Returns the stream as it is now, or why there is none for kubediff.
    pub(super) async fn stream(&self, context: &Context) -> Result<Stream, Box<str>> {
        let Self { name, subjects, create } = self;
        let error = match context.get_stream(name).await {
            Ok(stream) => return self.check(&stream.cached_info().config).map(|()| stream),
            Err(error) => error.kind(),
        };
        let told = match error {
            GetStreamErrorKind::JetStream(told) => told,
            GetStreamErrorKind::Request => {
                return Err(
                    "JetStream does not answer: is it on, and may kubediff use `$JS.API.STREAM.INFO.*` and \
                     `$JS.API.STREAM.MSG.GET.*`?"
                        .into(),
                );
            }
            error => return Err(format!("the stream {name}: {error}").into()),
        };
        match told.error_code() {
            ErrorCode::STREAM_NOT_FOUND if *create => self.create(context).await,
            ErrorCode::STREAM_NOT_FOUND => Err(format!(
                "there is no stream {name}: create it with `nats stream add {name} --subjects '{subjects}'`, or set `create: true`"
            )
            .into()),
            _ => Err(format!("the stream {name}: {told}").into()),
        }
    }

    async fn create(&self, context: &Context) -> Result<Stream, Box<str>> {
        let Self { name, subjects, .. } = self;
        let config = Config {
            name: name.clone(),
            subjects: vec![subjects.clone()],
            description: Some("The changes of a cluster, by kubediff.".to_owned()),
            allow_direct: true,
            ..Config::default()
        };
        context.create_stream(config).await.map_err(|error| match error.kind() {
            CreateStreamErrorKind::JetStream(told) => {
                format!("the stream {name} cannot be created: {told}").into()
            }
            error => format!("the stream {name} cannot be created: {error}").into(),
        })
    }

    /// Whether it keeps all messages of kubediff, in order, until they are too old or too many.
    fn check(&self, config: &Config) -> Result<(), Box<str>> {
        let Self { name, subjects, .. } = self;
        let wrong = if !config.subjects.iter().any(|filter| covers(filter, subjects)) {
            format!(
                "has not the subjects of kubediff: `nats stream edit {name} --subjects '{subjects}'` gives it them"
            )
        } else if config.retention != RetentionPolicy::Limits {
            "removes what was consumed: create one with `--retention limits`".to_owned()
        } else if config.no_ack {
            "acknowledges nothing: create one without `--no-ack`".to_owned()
        } else if config.sealed {
            format!("is sealed: name another one in `stream`, or delete {name}")
        } else {
            return Ok(());
        };
        Err(format!("the stream {name} {wrong}").into())
    }
}

/// Whether a filter of subjects lets all of `ROOT.CLUSTER.>` through, of which each subject has five tokens.
fn covers(filter: &str, subjects: &str) -> bool {
    let wanted = subjects.split('.').take(2).map(Some).chain([None; 3]);
    let mut filter = filter.split('.');
    for token in wanted {
        match (filter.next(), token) {
            (Some(">"), _) => return true,
            (Some("*"), _) => {}
            (Some(one), Some(token)) if one == token => {}
            _ => return false,
        }
    }
    filter.next().is_none()
}
