//! Secrets that became known after something was stored, taken out of it.

use std::path::Path;
use std::sync::Arc;

use kubediff_history::{Details, Error, Mask, ObjectId, Reader};
use serde_json::Value;

use crate::changes::headline::headline;
use crate::history::notes;
use crate::model::diff::Difference;
use crate::model::path::Path as FieldPath;
use crate::text::terminal::say;
use crate::{HashKey, Redacted, Secrets};

impl Mask for Secrets {
    fn object(&self, object: &ObjectId, content: &mut Value) {
        *content = self.redact(&object.gvk, content.take()).into_inner();
    }

    fn change(&self, object: &ObjectId, details: Details<'_>) {
        let Details { paths, diff, summary, verb, observed_at, masked } = details;
        let namespace = object.namespace.as_deref();
        let again = |text: &str| self.text_again(namespace, text);
        let of_path = |path: &FieldPath| path.renamed(&again);
        // A summary has the beginnings of values, in which a value is not found.
        let mut words = masked.map(|content| {
            let content = Redacted::vouched(content.clone());
            headline(verb, observed_at, [Some(&content), Some(&content)], &[])
        });
        match serde_json::from_value::<Vec<Difference>>(diff.clone()) {
            Ok(mut differences) => {
                self.hide_differences(&object.gvk, namespace, &mut differences);
                for difference in &mut differences {
                    difference.edit.retext(&again, &|part| self.redact_again(namespace, part));
                    if let Some(renamed) = of_path(&difference.path) {
                        difference.path = renamed;
                    }
                }
                if let Ok(masked) = serde_json::to_value(&differences)
                    && masked != *diff
                {
                    *diff = masked;
                    words = words.or_else(|| Some(headline(verb, observed_at, [None, None], &differences)));
                }
            }
            // There are none, or another version of kubediff has written them.
            Err(_) => self.redact_again(namespace, diff),
        }
        for path in paths {
            let parsed = path.parse::<FieldPath>();
            if let Some(renamed) =
                parsed.map_or_else(|_| again(path), |it| of_path(&it).map(|it| it.to_string()))
            {
                *path = renamed;
            }
        }
        if let Some(masked) = words.or_else(|| again(summary)) {
            *summary = masked;
        }
    }

    fn text(&self, text: &mut String) {
        *text = self.redact_text(text).into_inner();
    }
}

/// Knows the cluster's words from the objects that it sees.
struct Asked(Secrets);

impl Mask for Asked {
    fn object(&self, object: &ObjectId, content: &mut Value) {
        self.0.learn_words(content);
        self.0.object(object, content);
    }

    fn change(&self, object: &ObjectId, details: Details<'_>) {
        self.0.change(object, details);
    }

    fn text(&self, text: &mut String) {
        Mask::text(&self.0, text);
    }
}

/// Why a database shows values that became known later.
pub(crate) const WITHOUT_KEY: &str = "values of Secrets that became known after the history had stored them are shown: their key is in no \
database; ask the daemon instead";

/// From now on, the reader of a history shows no value that the history knows, as far as the key beside it is there.
pub(crate) fn mask_again(reader: &mut Reader, file: Option<&Path>) -> Result<(), Error> {
    let prints = reader.prints()?;
    if prints.is_empty() {
        return Ok(());
    }
    let Some(file) = file else {
        say(WITHOUT_KEY);
        return Ok(());
    };
    let key = match HashKey::beside(file, reader.notes()?.get(notes::KEY).map(String::as_str)) {
        Ok(Some(key)) => key,
        missing => {
            let why = match missing {
                Err(error) => error.to_string(),
                Ok(_) => format!(
                    "its key is not beside it; copy the `keyFile` of its daemon to {}",
                    HashKey::file_beside(file).display()
                ),
            };
            say(&format!(
                "values of Secrets that became known after the history had stored them are shown: {why}"
            ));
            return Ok(());
        }
    };
    let secrets = Secrets::new(key);
    reader.words()?.iter().for_each(|name| secrets.learn_name(name));
    secrets.restore(&prints);
    reader.mask(Arc::new(Asked(secrets)));
    Ok(())
}
