//! A custom resource, from its definition to its end.

use super::{Kubectl, has};

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: boats.harbour.example.com }
spec:
  group: harbour.example.com
  scope: Namespaced
  names: { plural: boats, singular: boat, kind: Boat, shortNames: [bt] }
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{ name: Length, type: integer, jsonPath: .spec.length }]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: { length: { type: integer } }
";

const BOAT: &str =
    "{ apiVersion: harbour.example.com/v1, kind: Boat, metadata: { name: anna }, spec: { length: 12 } }";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_custom_resource_is_defined_and_used() {
    let Some(kubectl) = Kubectl::start("kubectl_defines").await else { return };
    has(&kubectl.says_of("apply -f -", DEFINITION), &["customresourcedefinition", "created"]);
    has(&kubectl.says("wait --for=condition=Established crd/boats.harbour.example.com"), &["condition met"]);
    has(&kubectl.says("get crd"), &["NAME", "CREATED AT", "boats.harbour.example.com"]);
    let described = kubectl.says("describe crd boats.harbour.example.com");
    has(&described, &["Group:", "harbour.example.com", "Kind:", "Boat", "Reason:", "NoConflicts"]);

    has(&kubectl.says_of("apply -f -", BOAT), &["boat.harbour.example.com/anna created"]);
    has(&kubectl.says_of("apply -f -", BOAT), &["anna unchanged"]);
    has(&kubectl.says_of("apply -f -", &BOAT.replace("12", "13")), &["anna configured"]);
    has(
        &kubectl.says_of("apply --server-side -f -", &BOAT.replace("12", "14")),
        &["anna serverside-applied"],
    );
    has(&kubectl.says("get bt"), &["NAME", "LENGTH", "anna", "14"]);
    has(&kubectl.says("get boats -A"), &["NAMESPACE", "default", "anna"]);
    has(&kubectl.says("describe boat anna"), &["Kind:", "Boat", "Length:", "14"]);
    has(&kubectl.says(r#"patch bt anna --type=merge -p {"spec":{"length":15}}"#), &["anna patched"]);
    has(&kubectl.says("explain boat.spec"), &["GROUP:", "harbour.example.com", "length", "<integer>"]);
    let all = kubectl.says("explain boat --recursive");
    has(&all, &["apiVersion", "metadata", "<ObjectMeta>", "labels", "<map[string]string>", "spec", "length"]);

    has(
        &kubectl.refuses_of("apply -f -", &BOAT.replace("12", "long")),
        &["spec.length", "must be of type integer"],
    );
    let unknown = kubectl.refuses_of("apply -f -", &BOAT.replace("length", "lengt"));
    has(&unknown, &["unknown field \"spec.lengt\""]);
    has(&kubectl.refuses("scale bt/anna --replicas=3"), &["boats.harbour.example.com \"anna\" not found"]);
    has(
        &kubectl.refuses(r#"patch bt anna -p {"spec":{}}"#),
        &["strategic-merge-patch+json is not supported"],
    );

    has(&kubectl.says_of("delete -f -", BOAT), &["\"anna\" deleted"]);
    kubectl.says("delete crd boats.harbour.example.com");
    // kubectl remembers the resource.
    has(&kubectl.refuses("get boats"), &["NotFound", "the server could not find the requested resource"]);
}
