//! W15: refusals are a status, not the end.

use conformance::{Rig, Told, impatient, status};
use informer::{Cause, Report, Status};

use super::{is_live, names};
use crate::SERVER;

fn is_denied(code: u16) -> impl Fn(&Status) -> bool {
    move |status| matches!(status, Status::Denied { status } if status.code == code)
}

#[tokio::test]
async fn w15_a_denied_informer_goes_on_when_it_is_allowed() {
    let Some(rig) = Rig::shared(SERVER, "w15_forbidden").await else { return };
    rig.create("a").await;
    let factory =
        impatient(rig.builder_of(rig.nobodys_config())).build().unwrap().in_namespace(rig.namespace());
    let informer = factory.informer_of(super::config_maps());
    let mut told = Told::every(&informer);
    factory.start();
    status(&informer, is_denied(403)).await;
    assert!(!informer.is_synced());

    rig.allow_nobody().await;
    assert_eq!(told.next().await, ["initial a", "synced"]);
    status(&informer, is_live).await;

    // Revoked, which counts from the next request on. What is known stays.
    rig.forbid_nobody().await;
    rig.proxy.cut();
    status(&informer, is_denied(403)).await;
    rig.delete("a").await;
    rig.create("b").await;
    assert_eq!(names(&informer), ["a"]);
    assert!(told.is_silent());

    rig.allow_nobody().await;
    let mut changes = told.next::<2>().await;
    changes.sort();
    assert_eq!(changes, ["added b", "missed a"]);
    status(&informer, is_live).await;
}

#[tokio::test]
async fn w15_credentials_are_read_again_before_a_401_counts() {
    let Some(rig) = Rig::shared(SERVER, "w15_rotated_token").await else { return };
    rig.create("a").await;
    let file = std::env::temp_dir().join(format!("informer-conformance-token-{}", std::process::id()));
    std::fs::write(&file, "expired").unwrap();
    let mut config = rig.config();
    config.auth_info.token = None;
    config.auth_info.token_file = Some(file.to_str().unwrap().to_owned());
    // The first client reads the file here.
    let factory = impatient(rig.builder_of(config)).build().unwrap().in_namespace(rig.namespace());
    std::fs::write(&file, rig.token()).unwrap();
    let informer = factory.informer_of::<informer::Object>(super::config_maps());
    let mut reports = informer.reports();
    factory.start();
    let reached = status(&informer, |status| is_live(status) || is_denied(401)(status)).await;
    assert!(is_live(&reached), "{reached}");
    let Some(Report::Disconnected(Cause::Refused(refusal))) = reports.try_recv() else { panic!() };
    assert!(refusal.is_unauthorized(), "{refusal}");
    assert_eq!(names(&informer), ["a"]);

    // Without better credentials it is denied, until there are.
    std::fs::write(&file, "expired again").unwrap();
    let mut config = rig.config();
    config.auth_info.token = None;
    config.auth_info.token_file = Some(file.to_str().unwrap().to_owned());
    let factory = impatient(rig.builder_of(config)).build().unwrap().in_namespace(rig.namespace());
    let informer = factory.informer_of::<informer::Object>(super::config_maps());
    factory.start();
    status(&informer, is_denied(401)).await;
    std::fs::write(&file, rig.token()).unwrap();
    status(&informer, is_live).await;
    std::fs::remove_file(&file).unwrap();
}
