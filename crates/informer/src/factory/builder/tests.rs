//! The effects of options, in whatever order they are set.

#![allow(clippy::unwrap_used, reason = "a test may stop at a surprise, in its helpers too")]

use std::sync::Mutex;

use informer_core::PlainStorage;
use kube_client::Config;

use super::*;
use crate::options::resource::ResourceType;

const PERIOD: Duration = Duration::from_secs(7);

fn builder(url: &str) -> FactoryBuilder {
    FactoryBuilder::new(Connection::Config(Box::new(Config::new(url.parse().unwrap()))))
}

fn settings(builder: FactoryBuilder) -> Settings {
    builder.build().unwrap().inner.options.settings.clone()
}

fn server_name(builder: FactoryBuilder) -> Option<String> {
    builder.build().unwrap().inner.server.name().map(str::to_owned)
}

#[test]
fn a_storage_of_ones_own_is_taken_before_and_after_a_layout() {
    let asked = Arc::new(Mutex::new(0));
    let storage = || {
        let asked = asked.clone();
        move |_: &ResourceType| -> Arc<dyn Storage> {
            *asked.lock().unwrap() += 1;
            Arc::new(PlainStorage)
        }
    };
    let before = settings(builder("http://localhost").storage(storage()).layout(Layout::Decoded));
    let after = settings(builder("http://localhost").layout(Layout::Decoded).storage(storage()));
    let pods = ResourceType::of::<k8s_openapi::api::core::v1::Pod>();
    (before.storage)(&pods);
    assert_eq!(*asked.lock().unwrap(), 1);
    (after.storage)(&pods);
    assert_eq!(*asked.lock().unwrap(), 2);
}

#[test]
fn how_often_is_saved_may_be_said_before_and_after_where() {
    let period = |builder| settings(builder).saving.map(|saving| saving.period);
    assert_eq!(period(builder("http://localhost").save_every(PERIOD).saved_in("a")), Some(PERIOD));
    assert_eq!(period(builder("http://localhost").saved_in("a").save_every(PERIOD)), Some(PERIOD));
    assert_eq!(period(builder("http://localhost").saved_in("a")), Some(saved::SAVE_EVERY));
    assert_eq!(period(builder("http://localhost").save_every(PERIOD)), None);
}

#[test]
fn the_name_and_password_of_a_url_are_in_no_name() {
    let name = |url: &str| server_name(builder(url)).unwrap();
    let plain = name("http://shop.example:6443/proxy");
    assert!(plain.starts_with("http://shop.example:6443/proxy (authority "), "{plain}");
    assert_eq!(name("http://user:password@shop.example:6443/proxy"), plain);
    assert!(name("http://user:password@[::1]").starts_with("http://[::1]/ (authority "));
}

#[test]
fn p1_what_is_tweaked_has_no_name_but_ones_own() {
    let tweaked = || builder("http://localhost").tweak_list_options(|_, _| ());
    assert_eq!(server_name(tweaked()), None);
    assert_eq!(server_name(tweaked().server_name("its own")).as_deref(), Some("its own"));
}
