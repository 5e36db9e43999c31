//! Clients that others wrote find the server by its kubeconfig.

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::ListParams;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Api, Client, Config};
use testapi::faults::{Fault, Refusal};
use testapi::{TestApi, Verb};

use crate::client::create;

/// The client of the kubeconfig.
async fn client(kubeconfig: &str) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// The client of the same configuration in one call.
fn client_in_one_call(config: Config) -> Client {
    Client::try_from(config).unwrap()
}

#[tokio::test]
async fn kube_rs_reads_through_tls_with_the_token_of_the_kubeconfig() {
    let api = TestApi::builder().tls().token("secret \"token\"", "jane").start().await.unwrap();
    create(&api, "a");
    for client in [client(&api.kubeconfig()).await, client_in_one_call(api.config())] {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let list = maps.list(&ListParams::default()).await.unwrap();
        assert_eq!(list.items[0].metadata.name.as_deref(), Some("a"));
        assert_eq!(api.requests().all()[0].call.user, "jane");
    }
    for client in [client(&api.kubeconfig_with(None)).await, client_in_one_call(api.config_with(None))] {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        match maps.list(&ListParams::default()).await.unwrap_err() {
            kube_client::Error::Api(status) => {
                assert_eq!((status.code, &*status.reason), (401, "Unauthorized"));
            }
            other => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn kube_rs_understands_a_fault_as_the_status_it_is() {
    let api = TestApi::builder().start().await.unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(client_in_one_call(api.config()));
    api.faults().on(Verb::List.of("configmaps")).once(Fault::Refuse(Refusal::Forbidden));
    match maps.list(&ListParams::default()).await.unwrap_err() {
        kube_client::Error::Api(status) => assert_eq!((status.code, &*status.reason), (403, "Forbidden")),
        other => panic!("{other}"),
    }
    assert!(maps.list(&ListParams::default()).await.unwrap().items.is_empty());
}
