//! Faults of every day: reconcilers of a few lines, as they are written in a hurry, beside those that are right.

use std::sync::Arc;

use informer::kube::client::{self, Api};
use informer::kube::core::params::{Patch, PatchParams, PostParams};
use informer_controller::{Context, Failure, Outcome};
use informer_controller_test::{Rehearsal, Rule, World};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;

use crate::support::{NAMESPACE, State, child, control, finds, map, passes_few};

async fn script(world: World) {
    world.create(map("b")).await;
    world.patch("ConfigMap", "shop/a", json!({ "data": { "of": "one" } })).await;
    world.delete("ConfigMap", "shop/b").await;
    world.create(map("b")).await;
    world.patch("ConfigMap", "shop/b", json!({ "data": { "of": "two" } })).await;
}

fn rehearsal(rehearsal: Rehearsal) -> Rehearsal {
    rehearsal.objects([map("a")]).script(script)
}

/// A password is drawn whenever the cache has none, and applied: that of a running database is replaced.
mod password {
    use super::*;

    fn secret(context: &Context<ConfigMap>, map: &ConfigMap) -> Secret {
        let password = format!("{:x}", context.random().u64(..));
        let data = [("password".to_owned(), ByteString(password.into_bytes()))];
        Secret { data: Some(data.into()), ..child(map, Some(context.key().name().to_owned())) }
    }

    async fn faulty(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
        let Some(map) = context.object() else { return Ok(Outcome::Done) };
        if context.get(&state.secrets, map.key())?.is_none() {
            context.writer().apply(&secret(&context, map)).await?;
        }
        Ok(Outcome::Done)
    }

    async fn corrected(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
        let Some(map) = context.object() else { return Ok(Outcome::Done) };
        if context.get(&state.secrets, map.key())?.is_none() {
            match context.writer().create(&secret(&context, map)).await {
                Err(error) if error.is_already_exists() => {}
                created => drop(created?),
            }
        }
        Ok(Outcome::Done)
    }

    fn ruled(program: Rehearsal) -> Rehearsal {
        rehearsal(program).rule(Rule::after_each_change("a password stays", |change, _| {
            match (change.kind(), change.before(), change.after()) {
                ("Secret", Some(before), Some(after)) if before["data"] != after["data"] => Err(change.key()),
                _ => Ok(()),
            }
        }))
    }

    #[test]
    fn the_faulty_one_is_found() {
        finds(ruled(Rehearsal::new(|env| control(env, faulty))), "a password stays");
    }

    #[test]
    fn the_corrected_one_passes() {
        passes_few(ruled(Rehearsal::new(|env| control(env, corrected))));
    }
}

/// The status says that the work is done, and then the work begins.
mod done_first {
    use super::*;

    async fn mark(context: &Context<ConfigMap>) -> Result<(), Failure> {
        let Some(map) = context.object().filter(|map| map.labels().value("ready").is_none()) else {
            return Ok(());
        };
        context.writer().patch(map, json!({ "metadata": { "labels": { "ready": "yes" } } })).await?;
        Ok(())
    }

    async fn work(context: &Context<ConfigMap>) -> Result<(), Failure> {
        let Some(map) = context.object() else { return Ok(()) };
        match context.writer().create(&child(map, Some(map.key().name().to_owned()))).await {
            Err(error) if error.is_already_exists() => {}
            created => drop(created?),
        }
        Ok(())
    }

    async fn faulty(_: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
        if context.object().is_some_and(|map| map.labels().value("ready").is_none()) {
            mark(&context).await?;
            work(&context).await?;
        }
        Ok(Outcome::Done)
    }

    async fn corrected(_: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
        if context.object().is_some_and(|map| map.labels().value("ready").is_none()) {
            work(&context).await?;
            mark(&context).await?;
        }
        Ok(Outcome::Done)
    }

    #[test]
    fn the_faulty_one_is_found() {
        finds(rehearsal(Rehearsal::new(|env| control(env, faulty))), "Secret shop/");
    }

    #[test]
    fn the_corrected_one_passes() {
        passes_few(rehearsal(Rehearsal::new(|env| control(env, corrected))));
    }
}

/// A conflict is taken for success: somebody else has written, so all must be well.
mod conflict {
    use super::*;

    async fn label(state: &State, context: &Context<ConfigMap>, swallows: bool) -> Result<Outcome, Failure> {
        let Some(map) = context.object() else { return Ok(Outcome::Done) };
        let of = map.data.as_ref().and_then(|data| data.get("of")).map(String::as_str);
        if of.is_none() || map.labels().value("of") == of {
            return Ok(Outcome::Done);
        }
        let maps: Api<ConfigMap> = Api::namespaced(state.client.clone(), NAMESPACE);
        let mut labelled = ConfigMap::clone(map);
        labelled
            .metadata
            .labels
            .get_or_insert_default()
            .extend(of.map(|of| ("of".to_owned(), of.to_owned())));
        match maps.replace(map.key().name(), &PostParams::default(), &labelled).await {
            Err(client::Error::Api(status)) if status.code == 409 && swallows => {}
            replaced => drop(replaced?),
        }
        Ok(Outcome::Done)
    }

    async fn faulty(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
        label(&state, &context, true).await
    }

    async fn corrected(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
        label(&state, &context, false).await
    }

    #[test]
    fn the_faulty_one_is_found() {
        finds(rehearsal(Rehearsal::new(|env| control(env, faulty))), "/metadata/labels/of");
    }

    #[test]
    fn the_corrected_one_passes() {
        passes_few(rehearsal(Rehearsal::new(|env| control(env, corrected))));
    }
}

/// A count of what exists is kept by adding: each step is right, and their sum is not.
mod counted {
    use super::*;

    /// The secrets `N` of the map that is named by `of`, counted in the secret `count`.
    async fn count(state: &State, number: usize) -> Result<(), client::Error> {
        let secrets: Api<Secret> = Api::namespaced(state.client.clone(), NAMESPACE);
        let text = json!({ "stringData": { "count": number.to_string() } });
        match secrets.patch("count", &PatchParams::default(), &Patch::Merge(&text)).await {
            Err(client::Error::Api(status)) if status.code == 404 => {
                let metadata = json!({ "namespace": NAMESPACE, "name": "count" });
                let secret = json!({ "metadata": metadata, "stringData": text["stringData"] });
                let secret: Secret = serde_json::from_value(secret).map_err(client::Error::SerdeError)?;
                secrets.create(&PostParams::default(), &secret).await?;
            }
            patched => drop(patched?),
        }
        Ok(())
    }

    async fn faulty(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
        let secrets: Api<Secret> = Api::namespaced(state.client.clone(), NAMESPACE);
        let Some(map) = context.object().filter(|map| map.labels().value("counted").is_none()) else {
            return Ok(Outcome::Done);
        };
        let former = secrets.get_opt("count").await?.and_then(|secret| {
            let data = secret.data?.remove("count")?;
            String::from_utf8(data.0).ok()?.parse().ok()
        });
        count(&state, former.unwrap_or(0) + 1).await?;
        context.writer().patch(map, json!({ "metadata": { "labels": { "counted": "yes" } } })).await?;
        Ok(Outcome::Done)
    }

    #[test]
    fn the_faulty_one_is_found() {
        finds(rehearsal(Rehearsal::new(|env| control(env, faulty))), "Secret shop/count");
    }
}
