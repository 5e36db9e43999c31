//! `create` of what kubectl has words for, and `run`. It sends protobuf.

use super::{Kubectl, has};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_makes_what_it_has_words_for() {
    let Some(kubectl) = Kubectl::start("kubectl_creates").await else { return };
    for (line, said) in [
        ("ns shop", "namespace/shop created"),
        ("cm settings -n shop --from-literal=color=red", "configmap/settings created"),
        ("secret generic db -n shop --from-literal=password=x", "secret/db created"),
        ("sa robot -n shop", "serviceaccount/robot created"),
        ("deploy web -n shop --image=nginx --replicas=2 --port=80", "deployment.apps/web created"),
        ("svc clusterip web -n shop --tcp=80:8080", "service/web created"),
        ("ingress web -n shop --rule=a.example.com/=web:80", "ingress.networking.k8s.io/web created"),
        ("pdb web -n shop --selector=app=web --min-available=1", "poddisruptionbudget.policy/web created"),
        ("quota few -n shop --hard=pods=3,cpu=500m", "resourcequota/few created"),
        ("job once -n shop --image=busybox -- true", "job.batch/once created"),
        ("cronjob daily -n shop --image=busybox --schedule=@daily -- true", "cronjob.batch/daily created"),
        ("job again -n shop --from=cronjob/daily", "job.batch/again created"),
        ("role reader -n shop --verb=get --resource=pods", "role.rbac.authorization.k8s.io/reader created"),
        (
            "rolebinding jane -n shop --role=reader --user=jane",
            "rolebinding.rbac.authorization.k8s.io/jane created",
        ),
        (
            "clusterrole nodes --verb=list --resource=nodes",
            "clusterrole.rbac.authorization.k8s.io/nodes created",
        ),
        ("priorityclass high --value=5", "priorityclass.scheduling.k8s.io/high created"),
    ] {
        assert_eq!(kubectl.says(&format!("create {line}")), format!("{said}\n"));
    }
    // The server stores the object as it was sent.
    assert_eq!(kubectl.says("get cm settings -n shop -o jsonpath={.data}"), r#"{"color":"red"}"#);
    assert_eq!(kubectl.says("get secret db -n shop -o jsonpath={.data.password}"), "eA==");
    assert_eq!(kubectl.says("get svc web -n shop -o jsonpath={.spec.ports[0].targetPort}"), "8080");
    assert_eq!(kubectl.says("get quota few -n shop -o jsonpath={.spec.hard.cpu}"), "500m");
    assert_eq!(kubectl.says("get pdb web -n shop -o jsonpath={.spec.minAvailable}"), "1");
    has(&kubectl.says("get deploy -n shop -o wide"), &["web", "0/2", "nginx", "app=web"]);
    has(
        &kubectl.says("get job once -n shop -o jsonpath={.spec.template.spec.containers[0].command}"),
        &["true"],
    );
    has(&kubectl.says("get job again -n shop -o jsonpath={.metadata.ownerReferences[0].kind}"), &["CronJob"]);
    has(&kubectl.says("get cronjob -n shop"), &["daily", "@daily", "False"]);
    has(&kubectl.says("get ingress -n shop"), &["web", "a.example.com", "80"]);
    has(&kubectl.says("describe role reader -n shop"), &["Resources", "Verbs", "pods", "[get]"]);
    has(&kubectl.says("describe rolebinding jane -n shop"), &["Role:", "reader", "User", "jane"]);

    has(&kubectl.refuses("create cm settings -n shop"), &["configmaps \"settings\" already exists"]);
    has(&kubectl.refuses("create cm settings -n nowhere"), &["namespaces \"nowhere\" not found"]);
    has(&kubectl.refuses("create deploy Web -n shop --image=nginx"), &["invalid", "metadata.name"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_are_run_and_names_are_generated() {
    let Some(kubectl) = Kubectl::start("kubectl_runs").await else { return };
    has(&kubectl.says("run once --image=busybox --restart=Never --env=A=b -- true"), &["pod/once created"]);
    has(&kubectl.says("get pods"), &["NAME", "READY", "STATUS", "RESTARTS", "once", "0/1", "Pending"]);
    has(&kubectl.says("expose pod once --port=80"), &["service/once exposed"]);
    let map = "{ apiVersion: v1, kind: ConfigMap, metadata: { generateName: map- } }";
    let created = kubectl.says_of("create -f -", map);
    has(&created, &["configmap/map-", " created"]);
    assert_ne!(kubectl.says_of("create -f -", map), created);
    assert_eq!(kubectl.says("get cm -o name").lines().count(), 2);
}
