//! Resolves the resources of the configuration among those of the server.

use std::collections::BTreeSet;

use informer::Catalog;

use super::place::FieldPath;
use super::warning::Note;
use super::{Config, ResourceName, Watch};
use crate::model::targets::{Target, Wanted};

/// The resources to watch. A resource that the server has in another version only is watched in that one.
pub(super) fn of(watch: &Watch, catalog: &Catalog) -> Vec<Target> {
    let cluster_wide = watch.namespaces.is_empty();
    let mut targets: Vec<Target> = Vec::new();
    let everything = ["*".to_owned()];
    let names = if watch.resources.is_empty() { everything.as_slice() } else { &watch.resources };
    for name in names {
        let Some(wanted) = wanted(name, catalog) else { continue };
        let found = wanted.among(catalog, cluster_wide).unwrap_or_default();
        targets.extend(found.into_iter().filter(|target| !watch.excludes(&target.resource)));
    }
    // Each once, and no object of a resource that is watched as a whole.
    let distinct: BTreeSet<Target> = targets.iter().cloned().collect();
    let whole = |target: &Target| Target { resource: target.resource.clone(), name: None };
    let mut left = distinct.clone();
    targets.retain(|target| {
        left.remove(target) && (target.name.is_none() || !distinct.contains(&whole(target)))
    });
    targets
}

/// The resource of a name; `None` if the server does not have it in any version.
fn wanted(name: &str, catalog: &Catalog) -> Option<Wanted> {
    let parse = |text: &str| Wanted::parse(&[text.to_owned()]).ok();
    if name == "*" {
        return Wanted::parse(&[]).ok();
    }
    let as_it_is = parse(name)?;
    if as_it_is.among(catalog, true).is_ok() {
        return Some(as_it_is);
    }
    let wanted = parse(&unversioned(name)?)?;
    wanted.among(catalog, true).is_ok().then_some(wanted)
}

fn unversioned(name: &str) -> Option<String> {
    name.parse::<ResourceName>().ok()?.in_any_version()
}

/// The names that the server does not know.
pub(super) fn unserved(config: &Config, is_arriqaaq: bool, catalog: &Catalog) -> Vec<(FieldPath, Note)> {
    let mut found = Vec::new();
    let root = FieldPath::default();
    let resources = if is_arriqaaq { root.clone() } else { root.field("watch") }.field("resources");
    for (at, name) in config.watch.resources.iter().enumerate().filter(|(_, name)| *name != "*") {
        let is_known = |text: &str| {
            Wanted::parse(&[text.to_owned()]).is_ok_and(|wanted| wanted.among(catalog, true).is_ok())
        };
        if !is_known(name) {
            let field = resources.element(at);
            let field = if is_arriqaaq { field.field("kind") } else { field };
            let other = unversioned(name).and_then(|name| catalog.resource(&name).ok().map(api_name));
            found.push((field, Note::NotServed { name: name.clone(), watched_as: other }));
        }
    }
    let mut check = |field: FieldPath, name: &ResourceName| {
        if !name.clone().resolve(catalog) {
            let other = name.in_any_version();
            let other = other.and_then(|name| catalog.resource(&name).ok().map(api_name));
            found.push((field, Note::NotServed { name: name.to_string(), watched_as: other }));
        }
    };
    for (at, name) in config.watch.exclude.resources.iter().enumerate() {
        check(root.field("watch").field("exclude").field("resources").element(at), name);
    }
    for (at, ignore) in config.noise.ignore.iter().enumerate() {
        if let Some(name) = &ignore.resource {
            check(root.field("noise").field("ignore").element(at).field("resource"), name);
        }
    }
    for (at, hide) in config.hide.iter().enumerate() {
        if let Some(name) = &hide.resource {
            check(root.field("hide").element(at).field("resource"), name);
        }
    }
    for (route, settings) in config.routes.iter().flatten().enumerate() {
        for (at, name) in settings.matches.resources.iter().enumerate() {
            let field = root.field("routes").element(route).field("match").field("resources");
            check(field.element(at), name);
        }
    }
    found
}

/// `networking.k8s.io/v1/ingresses`
fn api_name(resource: &informer::ResourceType) -> String {
    format!("{}/{}", resource.api_version(), resource.plural)
}
