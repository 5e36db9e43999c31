//! The command line.

use kube::core::ApiResource;

pub(crate) struct Arguments {
    pub(crate) kubeconfig: Option<String>,
    pub(crate) view: ViewName,
    pub(crate) resources: Vec<ApiResource>,
    pub(crate) subscriptions: usize,
    pub(crate) drop_managed_fields: bool,
    pub(crate) streaming: bool,
    /// A whole controller in place of handlers.
    pub(crate) controller: Option<Work>,
    pub(crate) workers: u16,
}

/// The work of a whole controller.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    Children,
    Storm,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ViewName {
    Typed,
    Dynamic,
    Metadata,
}

impl Arguments {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self {
            kubeconfig: None,
            view: ViewName::Typed,
            resources: Vec::new(),
            subscriptions: 0,
            drop_managed_fields: false,
            streaming: false,
            controller: None,
            workers: 1,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} wants a value"));
            match word.as_str() {
                "--kubeconfig" => arguments.kubeconfig = Some(value()?),
                "--view" => {
                    arguments.view = match value()?.as_str() {
                        "typed" => ViewName::Typed,
                        "dynamic" => ViewName::Dynamic,
                        "metadata" => ViewName::Metadata,
                        other => return Err(format!("there is no view {other:?}")),
                    }
                }
                "--controller" => {
                    arguments.controller = Some(match value()?.as_str() {
                        "children" => Work::Children,
                        "storm" => Work::Storm,
                        other => return Err(format!("there is no controller {other:?}")),
                    });
                }
                "--workers" => {
                    arguments.workers = value()?.parse().map_err(|_| "--workers wants a number")?;
                }
                "--resource" => arguments.resources.push(resource(&value()?)?),
                "--subscriptions" => {
                    arguments.subscriptions =
                        value()?.parse().map_err(|_| "--subscriptions wants a number")?;
                }
                "--drop-managed-fields" => arguments.drop_managed_fields = true,
                "--streaming" => arguments.streaming = true,
                // kube-rs has no indexes; the other lookups can be measured all the same.
                "--index" => {}
                other => return Err(format!("there is no argument {other:?}")),
            }
        }
        if arguments.resources.is_empty() {
            arguments.resources.push(resource("core/v1/pods/Pod")?);
        }
        if arguments.view == ViewName::Typed && !arguments.is_of_pods() {
            return Err("the typed view is for pods only".to_owned());
        }
        Ok(arguments)
    }

    pub(crate) fn is_of_pods(&self) -> bool {
        self.resources.len() == 1 && self.resources.iter().all(is_pods)
    }
}

pub(crate) fn is_pods(resource: &ApiResource) -> bool {
    resource.group.is_empty() && resource.plural == "pods"
}

fn resource(text: &str) -> Result<ApiResource, String> {
    let parts: Vec<&str> = text.split('/').collect();
    let [group, version, plural, kind] = parts[..] else {
        return Err(format!("{text:?} is not GROUP/VERSION/PLURAL/KIND"));
    };
    let group = if group == "core" { "" } else { group };
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Ok(ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version,
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    })
}
