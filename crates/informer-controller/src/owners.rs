//! Owner references: which object a controller makes for which other one.
//!
//! ```
//! use informer::{Item, ObjectRef, Uid};
//! use informer_controller::owners;
//! use k8s_openapi::api::apps::v1::Deployment;
//! use k8s_openapi::api::core::v1::ConfigMap;
//!
//! # fn example(owner: &ObjectRef<ConfigMap>) -> Result<(), owners::OwnerError> {
//! let mut deployment = Deployment::default();
//! deployment.metadata.namespace = Some("shop".to_owned());
//! deployment.metadata.name = Some("cart".to_owned());
//! owners::set_controller(&mut deployment, owner)?; // an `&Item<ConfigMap>` does as well
//! # assert!(deployment.metadata.owner_references.is_some_and(|owners| owners[0].controller == Some(true)));
//! # Ok(())
//! # }
//! # let owner = ObjectRef::<ConfigMap>::new(informer::ResourceType::of::<ConfigMap>(), "shop/prices".parse().unwrap());
//! # example(&owner.with_uid(Uid::new("1"))).unwrap();
//! ```
//!
//! A new object with such a reference is deleted with its owner, wakes the owner's controller
//! ([`Controller::owns`](crate::Controller::owns)), and is in [`Context::owned`](crate::Context::owned).
//! An object that exists without an owner may be adopted: [`claim`] finds these objects.

use informer::kube::core::params::GetParams;
use informer::kube::{Client, Resource, client};
use informer::{DecodeError, Item, ObjectKey, ResourceType, path_segment};
use serde_json::Value;

use crate::owned::Owned;
use crate::request::collection;
use crate::writer::Target;

/// An object cannot have this owner as its controller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// The owner has no name: it was not read from the server.
    #[error("the owner has no name")]
    Unnamed,
    /// The owner has no uid: it was not read from the server.
    #[error("{owner} has no uid")]
    NoUid {
        /// The owner.
        owner: ObjectKey,
    },
    /// Another object controls the object, perhaps an earlier incarnation of the owner.
    #[error("{kind} {name} controls the object already, with uid {uid}")]
    Controlled {
        /// The kind of the present controller.
        kind: String,
        /// Its name.
        name: String,
        /// Its uid.
        uid: String,
    },
    /// An object of the cluster cannot have an owner in a namespace.
    #[error("an object of the cluster cannot have the owner {owner}, which is in a namespace")]
    OwnerInNamespace {
        /// The owner.
        owner: ObjectKey,
    },
    /// The owner is in another namespace than the object. The garbage collector would delete the object.
    #[error("the owner {owner} is in another namespace than the object ({})", namespace.as_deref().unwrap_or("none"))]
    OtherNamespace {
        /// The owner.
        owner: ObjectKey,
        /// The object's namespace, if it has one yet.
        namespace: Option<String>,
    },
}

/// Makes `owner` the controller of an object that is about to be created or applied: adds an owner reference with `controller`
/// and `blockOwnerDeletion`, or completes the one that the object has. Other owners stay.
///
/// `owner` is an `&Item<O>` of a cache, or an `&ObjectRef<O>` with a uid. Where the admission plugin
/// `OwnerReferencesPermissionEnforcement` is on, the program needs the permission to `update` the `finalizers` subresource of
/// the owner.
///
/// # Errors
///
/// See [`OwnerError`]. The object is then unchanged.
pub fn set_controller<K, O>(object: &mut K, owner: impl Target<O>) -> Result<(), OwnerError>
where
    K: Resource<DynamicType = (), Scope: 'static>,
{
    let (resource, seen) = (owner.resource(), owner.seen());
    let key = owner.key().ok_or(OwnerError::Unnamed)?;
    let uid = seen.uid.ok_or_else(|| OwnerError::NoUid { owner: key.clone() })?.to_string();
    if let Some(namespace) = key.namespace() {
        if !ResourceType::of::<K>().namespaced {
            return Err(OwnerError::OwnerInNamespace { owner: key });
        }
        if object.meta().namespace.as_deref() != Some(namespace) {
            return Err(OwnerError::OtherNamespace {
                namespace: object.meta().namespace.clone(),
                owner: key,
            });
        }
    }
    let references = object.meta_mut().owner_references.get_or_insert_default();
    let present = references.iter().find(|one| one.controller == Some(true));
    if let Some(other) = present.filter(|present| present.uid != uid) {
        let (kind, name, uid) = (other.kind.clone(), other.name.clone(), other.uid.clone());
        return Err(OwnerError::Controlled { kind, name, uid });
    }
    let position = references.iter().position(|one| one.uid == uid).unwrap_or_else(|| {
        references.push(Default::default());
        references.len() - 1
    });
    let reference = &mut references[position];
    reference.api_version = resource.api_version();
    reference.kind = resource.kind.clone();
    reference.name = key.name().to_owned();
    reference.uid = uid;
    reference.controller = Some(true);
    reference.block_owner_deletion = Some(true);
    Ok(())
}

/// To whom an object belongs, seen from an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The owner controls it.
    Ours,
    /// Nobody controls it: it may be adopted if it matches what the owner looks for, and if [`may_adopt`] agrees.
    Orphan,
    /// Another object controls it: hands off.
    Foreign,
    /// It is being deleted, and nobody controls it: too late to adopt.
    Deleted,
}

/// To whom an object of a cache belongs, seen from an owner: compares uids, so an owner that was created anew is another one.
///
/// # Errors
///
/// When the object's metadata does not decode.
pub fn claim<K, O>(object: &Item<K>, owner: impl Target<O>) -> Result<Claim, DecodeError> {
    let owned = object.object().decode::<Owned>()?;
    Ok(match owned.controller() {
        Some(controller) if Some(&controller) == owner.seen().uid.as_ref() => Claim::Ours,
        Some(_) => Claim::Foreign,
        None if owned.is_being_deleted() => Claim::Deleted,
        None => Claim::Orphan,
    })
}

/// Whether an owner may adopt objects: the server still has this incarnation of it, and it is not being deleted. The cache may
/// not know of its deletion yet, and an object adopted then would be deleted with it. client-go's `CanAdoptFunc` asks the same,
/// once per reconciliation and only if there is something to adopt.
///
/// # Errors
///
/// When the server refuses the request, or does not answer.
pub async fn may_adopt<O>(client: &Client, owner: impl Target<O>) -> Result<bool, client::Error> {
    let (resource, seen) = (owner.resource(), owner.seen());
    let Some(key) = owner.key() else { return Ok(false) };
    let request =
        collection(&resource, key.namespace()).get(&path_segment(key.name()), &GetParams::default());
    let object = match client.request::<Value>(request.map_err(client::Error::BuildRequest)?).await {
        Ok(object) => object,
        Err(client::Error::Api(status)) if status.code == 404 => return Ok(false),
        Err(error) => return Err(error),
    };
    let metadata = &object["metadata"];
    let is_same = seen.uid.is_some_and(|uid| metadata["uid"].as_str() == Some(&uid.to_string()));
    Ok(is_same && metadata["deletionTimestamp"].is_null())
}

#[cfg(test)]
mod tests {
    use informer::{ObjectRef, Uid};
    use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};

    use super::*;

    fn owner(key: &str, uid: &str) -> ObjectRef<ConfigMap> {
        ObjectRef::new(ResourceType::of::<ConfigMap>(), key.parse().unwrap()).with_uid(Uid::new(uid))
    }

    fn secret(namespace: Option<&str>) -> Secret {
        let mut secret = Secret::default();
        secret.metadata.namespace = namespace.map(str::to_owned);
        secret
    }

    #[test]
    fn an_owner_becomes_the_controller_once() {
        let mut secret = secret(Some("shop"));
        set_controller(&mut secret, &owner("shop/a", "1")).unwrap();
        set_controller(&mut secret, &owner("shop/a", "1")).unwrap();
        let references = secret.metadata.owner_references.unwrap();
        let [one] = &references[..] else { panic!("{references:?}") };
        assert_eq!(
            (one.api_version.as_str(), one.kind.as_str(), one.name.as_str()),
            ("v1", "ConfigMap", "a")
        );
        assert_eq!(
            (one.uid.as_str(), one.controller, one.block_owner_deletion),
            ("1", Some(true), Some(true))
        );
    }

    #[test]
    fn a_second_controller_is_refused_and_other_owners_stay() {
        let mut secret = secret(Some("shop"));
        set_controller(&mut secret, &owner("shop/a", "1")).unwrap();
        let before = secret.clone();
        // The same name, created anew, is another object.
        let error = set_controller(&mut secret, &owner("shop/a", "2")).unwrap_err();
        let (kind, name, uid) = ("ConfigMap".into(), "a".into(), "1".into());
        assert_eq!(error, OwnerError::Controlled { kind, name, uid });
        assert_eq!(secret, before);

        secret.metadata.owner_references.as_mut().unwrap()[0].controller = None;
        set_controller(&mut secret, &owner("shop/b", "2")).unwrap();
        let references = secret.metadata.owner_references.unwrap();
        let controls: Vec<_> = references.iter().map(|one| (one.uid.as_str(), one.controller)).collect();
        assert_eq!(controls, [("1", None), ("2", Some(true))]);
    }

    #[test]
    fn an_owner_in_another_namespace_is_refused() {
        for namespace in [None, Some("other")] {
            let error = set_controller(&mut secret(namespace), &owner("shop/a", "1")).unwrap_err();
            let namespace = namespace.map(str::to_owned);
            assert_eq!(error, OwnerError::OtherNamespace { owner: "shop/a".parse().unwrap(), namespace });
        }
        let error = set_controller(&mut Node::default(), &owner("shop/a", "1")).unwrap_err();
        assert_eq!(error, OwnerError::OwnerInNamespace { owner: "shop/a".parse().unwrap() });
    }

    #[test]
    fn an_owner_of_the_cluster_may_own_everything_and_one_without_a_uid_nothing() {
        let node = ObjectRef::<Node>::new(ResourceType::of::<Node>(), "one".parse().unwrap());
        let error = set_controller(&mut secret(Some("shop")), &node).unwrap_err();
        assert_eq!(error, OwnerError::NoUid { owner: "one".parse().unwrap() });
        let node = node.with_uid(Uid::new("1"));
        set_controller(&mut secret(Some("shop")), &node).unwrap();
        set_controller(&mut Node::default(), &node).unwrap();
    }
}
