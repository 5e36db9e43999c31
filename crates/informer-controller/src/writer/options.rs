//! The options of a writer's requests.

use std::fmt;
use std::sync::Arc;

use informer::kube::core::params::ValidationDirective;
use informer::path_segment;

use super::Writer;
use super::form::Form;

/// How a writer writes.
#[derive(Clone)]
pub(super) struct Options {
    /// Whether writes carry the resourceVersion.
    pub(super) locked: bool,
    /// Whether applications take over fields of other managers.
    pub(super) forced: bool,
    pub(super) dry_run: bool,
    /// The field manager.
    pub(super) manager: Arc<str>,
    /// The server's choice, without one.
    pub(super) validation: Option<ValidationDirective>,
}

impl Options {
    pub(super) fn new(manager: Arc<str>) -> Self {
        Self { locked: true, forced: true, dry_run: false, manager, validation: None }
    }

    /// The query of a request. A deletion has its options in its body.
    pub(super) fn query(&self, form: Form) -> String {
        if form == Form::Deletion {
            return String::new();
        }
        let mut query = format!("fieldManager={}", path_segment(&self.manager));
        if let Some(validation) = &self.validation {
            query.push_str("&fieldValidation=");
            query.push_str(validation.as_str());
        }
        if self.dry_run {
            query.push_str("&dryRun=All");
        }
        if self.forced && form == Form::Apply {
            query.push_str("&force=true");
        }
        query
    }
}

impl Writer {
    /// The same writer, whose writes carry the uid but no resourceVersion: they also succeed when somebody else has written
    /// the object since.
    #[must_use]
    pub fn unlocked(&self) -> Self {
        self.with(|options| options.locked = false)
    }

    /// The same writer, whose applications take over no field that another manager has set to another value: the server refuses
    /// them with a conflict, which names both managers ([`WriteError::is_conflict`](super::WriteError::is_conflict)). Kubernetes
    /// tells controllers to force, as writers do without this.
    #[must_use]
    pub fn without_force(&self) -> Self {
        self.with(|options| options.forced = false)
    }

    /// The same writer, whose writes are checked and answered by the server, and not carried out. The next reconciliation waits for
    /// none of them, and the preconditions of later writes do not know of them.
    /// ([Dry run](https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run))
    ///
    /// ```no_run
    /// # use informer_controller::{WriteError, Writer};
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # async fn example(writer: &Writer, wanted: &Deployment) -> Result<(), WriteError> {
    /// // With the defaults that the server fills in.
    /// let complete = writer.dry_run().apply(wanted).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn dry_run(&self) -> Self {
        self.with(|options| options.dry_run = true)
    }

    /// The same writer, with another field manager than the controller's name: fields that it applies belong to that one.
    #[must_use]
    pub fn field_manager(&self, name: &str) -> Self {
        self.with(|options| options.manager = name.into())
    }

    /// The same writer, with the server's treatment of fields that the type of an object does not have: with
    /// [`ValidationDirective::Strict`] it refuses them ([`WriteError::is_invalid`](super::WriteError::is_invalid)). Without a
    /// choice it drops them and warns.
    #[must_use]
    pub fn field_validation(&self, validation: ValidationDirective) -> Self {
        self.with(|options| options.validation = Some(validation))
    }

    /// The same writer, whose writes carry the resourceVersion also after [`Writer::unlocked`].
    pub(crate) fn locked(&self) -> Self {
        self.with(|options| options.locked = true)
    }

    fn with(&self, change: impl FnOnce(&mut Options)) -> Self {
        let mut this = self.clone();
        change(&mut this.options);
        this
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("name", &self.options.manager)
            .field("locked", &self.options.locked)
            .field("dry_run", &self.options.dry_run)
            .finish_non_exhaustive()
    }
}
