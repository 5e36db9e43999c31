//! Which values of Secrets are searched for in other objects: not what configurations have everywhere, and each that was made at
//! random.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD};
use fastrand::Rng;
use kubediff::{Gvk, Profile, Tally};
use serde_json::json;

use crate::support::{change_with, deployment, profile, seeded};

/// Words that people keep in Secrets beside the secrets, one a line.
const ORDINARY: &str = "\
postgres
admin
readonly
read-only
replication
JAVA_OPTS
CATALINA_OPTS
GIN_MODE
VAULT_ADDR
id_rsa.pub
ALTER TABLE
kubernetes-admin
system:masters
system:serviceaccount:kube-system:default
production
pre-production
staging
eu-central-1
eu-central-1a
c6gd.16xlarge
db.r6g.large
p4d.24xlarge
cache.m7g.xlarge
us-east-1b
europe-west1-b
asia-southeast1-a
northeurope
northeurope-1
S3v4-signature
utf-8-sig
Asia/Ho_Chi_Minh
arm64-v8a
info
debug
Europe/Berlin
America/New_York
en_US.UTF-8
true
8080
10.0.0.12:5432
10.96.0.0/12
2001:db8::1
0.0.0.0:8443
application/json
application/vnd.api+json
text/plain; charset=utf-8
multipart/form-data
max-age=3600
no-cache, no-store
SCRAM-SHA-256
TLSv1.3
TLS_AES_256_GCM_SHA384
RollingUpdate
Recreate
IfNotPresent
LoadBalancer
ClusterIP
NodePort
ExternalName
ReadWriteOnce
ReadOnlyMany
ReadWriteOncePod
ClusterFirst
ClusterFirstWithHostNet
FallbackToLogsOnError
allocateLoadBalancerNodePorts
imagePullPolicy
terminationGracePeriodSeconds
WaitForFirstConsumer
OrderedReady
PreferNoSchedule
ScheduleAnyway
DoNotSchedule
kubernetes.io/dockerconfigjson
kubernetes.io/tls
x-request-id
X-Forwarded-For
x-amzn-trace-id
Content-Type
Cache-Control
Strict-Transport-Security
my-database
my-app-user
orders_db
order-service
checkout_user
app_readonly
db-primary.internal
redis-master-0
kafka-0.kafka-headless:9092
kafka-0:9092,kafka-1:9092
https://api.example.com/v1
http://localhost:3000/callback
jdbc:postgresql://db:5432/orders
postgres://app@db.shop.svc:5432/orders?sslmode=verify-full
mongodb://mongo-0.mongo:27017/admin?replicaSet=rs0
redis://cache:6379/0
amqp://rabbitmq:5672
smtp.example.com:587
noreply@example.com
billing@example.com
s3://backup-bucket/daily
t3.medium
m5.2xlarge
r6g.xlarge
n2-standard-4
e2-highmem-8
Standard_D4s_v3
gp3-encrypted
-Xmx512m
-Xms1g -Xmx2g
-XX:MaxRAMPercentage=75.0
-XX:+UseG1GC
--log-level=debug
--max-old-space-size=4096
--leader-elect=true
utf8mb4_general_ci
utf8mb4_unicode_ci
en_US.utf8
2026-03-01T14:03:22Z
2026-03-01T14:03:22.123456+01:00
2026-03-01
1h30m0s
0 3 * * *
*/15 * * * *
v1.27.3
1.2.3-alpine
postgres:15.4-alpine
registry.example.com/shop/cart:v1.2.3
READ COMMITTED
read_committed
at-least-once
round-robin
least_conn
client_credentials
authorization_code
openid profile email
offline_access
repo:read,repo:write
SELECT 1
org.postgresql.Driver
com.example.shop.Application
spring.datasource.url
SPRING_PROFILES_ACTIVE
LOG_LEVEL=info
POSTGRES_PASSWORD
GOMAXPROCS=2
NODE_ENV=production
/var/lib/postgresql/data
/etc/ssl/certs/ca-certificates.crt
/run/secrets/kubernetes.io/serviceaccount/token
tls.crt
ca-bundle.pem
verify-full
ssl-mode-required
appendonly yes
allkeys-lru
us-docker.pkg.dev
bookworm-slim
linux/amd64
app.kubernetes.io/name=cart
team-a
tenant-42
cart-v2
web-01
blue-green
feature-flag-new-checkout
";

/// The programs of the cluster: it has a Service for each.
const APPS: &[&str] = &["cart", "checkout", "payment", "billing", "catalog", "search", "gateway", "orders"];

/// One of them, or one with a program's name.
fn ordinary(rng: &mut Rng) -> String {
    let words: Vec<&str> = ORDINARY.lines().collect();
    let (app, n) = (rng.choice(APPS).unwrap(), rng.u32(1..40));
    match rng.u32(0..8) {
        0 => format!("{app}-service"),
        1 => format!("{app}-db-{n}.shop.svc.cluster.local"),
        2 => format!("{app}-redis-master:6379"),
        3 => format!("--{app}-timeout={n}s"),
        4 => format!("https://{app}.example.com/api/v{}", n % 3 + 1),
        5 => format!("{app}_user"),
        _ => (*rng.choice(&words).unwrap()).to_owned(),
    }
}

fn learn(profile: &Profile, namespace: &str, name: &str, values: impl IntoIterator<Item = String>) {
    let values = values.into_iter().enumerate();
    let data: BTreeMap<String, String> =
        values.map(|(at, value)| (format!("k{at}"), BASE64.encode(value))).collect();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": data,
        "metadata": {"name": name, "namespace": namespace, "uid": name, "resourceVersion": "1"}});
    profile.secrets.learn(&Gvk::new("v1", "Secret"), &secret);
}

/// The `values` of a Secret that are hidden in another object.
fn hidden(profile: &Profile, values: &[String]) -> Vec<String> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"},
        "data": {"list": values}});
    let shown = profile.secrets.redact(&Gvk::new("v1", "ConfigMap"), map);
    let shown = shown["data"]["list"].as_array().unwrap().iter();
    values
        .iter()
        .zip(shown)
        .filter(|(value, shown)| **shown != value.as_str())
        .map(|(value, _)| value.clone())
        .collect()
}

/// The names of all fields of the API, and the values of its enumerations.
fn words_of_the_api() -> Vec<String> {
    let table = include_str!("../../../testapi/schema/types.txt");
    let mut words = Vec::new();
    for field in table.lines().filter_map(|line| line.strip_prefix(' ')) {
        words.extend(field.split(' ').next().map(str::to_owned));
        let enumerations = field.split(' ').filter_map(|word| word.strip_prefix("enum="));
        words.extend(enumerations.flat_map(|values| values.split('|')).map(str::to_owned));
    }
    words.sort_unstable();
    words.dedup();
    words
}

/// The second attack: words of configurations and of Kubernetes in one Secret.
#[test]
fn k4_words_of_configurations_and_of_the_api_hide_nothing() {
    assert!(include_str!("../../src/hide/secret/words.txt").len() <= 20 << 10);
    let api = words_of_the_api();
    assert!(api.len() > 1_000, "{} words", api.len());
    let all: Vec<String> = ORDINARY.lines().map(str::to_owned).chain(api).collect();
    let profile = profile();
    for (at, some) in all.chunks(200).enumerate() {
        learn(&profile, "evil", &format!("words-{at}"), some.to_vec());
    }
    assert_eq!(hidden(&profile, &all), [""; 0], "of {}", all.len());
    let mut object = deployment();
    object["spec"]["strategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}});
    object["spec"]["template"]["spec"]["dnsPolicy"] = "ClusterFirst".into();
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "shop"},
        "spec": {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": true}});
    for object in [object, service] {
        let gvk = Gvk::new(object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        assert_eq!(*profile.secrets.redact(&gvk, object.clone()), object);
    }
}

/// Weak passwords of people: a word with digits or signs.
#[test]
fn k3_passwords_of_people_are_searched_for() {
    let passwords = [
        "admin123",
        "Admin@1234",
        "postgres15",
        "Summer2024!",
        "P@ssw0rd!",
        "passw0rd-prod",
        "hunter2hunter2",
        "s3cr3t-db-pass",
        "correct horse battery staple",
        "tr0ub4dor&3",
        "letmein!!",
        "Welcome#1",
        "changeme1",
        "qwertz-9431x",
        "Pa55word.prod",
    ];
    let passwords: Vec<String> = passwords.map(str::to_owned).to_vec();
    let profile = profile();
    learn(&profile, "shop", "people", passwords.clone());
    assert_eq!(hidden(&profile, &passwords), passwords);
}

/// A program that makes secrets.
type Generator = (&'static str, fn(&mut Rng) -> String);

const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const SIGNS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&*+-./:;=?@^_~";
const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn text(rng: &mut Rng, letters: &str, length: usize) -> String {
    (0..length).map(|_| char::from(*rng.choice(letters.as_bytes()).unwrap())).collect()
}

fn bytes(rng: &mut Rng, length: usize) -> Vec<u8> {
    std::iter::repeat_with(|| rng.u8(..)).take(length).collect()
}

fn hex(rng: &mut Rng, length: usize) -> String {
    text(rng, "0123456789abcdef", length)
}

/// As `pwgen` does: syllables, with a capital and a digit somewhere.
fn pronounceable(rng: &mut Rng) -> String {
    let mut password: Vec<u8> = Vec::new();
    while password.len() < 8 {
        password.push(*rng.choice(b"bcdfghjklmnpqrstvwxyz").unwrap());
        password.push(*rng.choice(b"aeiou").unwrap());
    }
    let (capital, digit) = (2 * rng.usize(0..4), 2 * rng.usize(0..4) + 1);
    password[capital] = password[capital].to_ascii_uppercase();
    password[digit] = b'0' + rng.u8(0..10);
    String::from_utf8(password).unwrap()
}

const GENERATORS: &[Generator] = &[
    ("pwgen", pronounceable),
    ("8 letters and digits", |rng| text(rng, LETTERS, 8)),
    ("8 small letters and digits", |rng| text(rng, LOWER, 8)),
    ("12 of all signs", |rng| text(rng, SIGNS, 12)),
    ("openssl rand -base64 12", |rng| BASE64.encode(bytes(rng, 12))),
    ("openssl rand -base64 32", |rng| BASE64.encode(bytes(rng, 32))),
    ("for URLs", |rng| URL_SAFE_NO_PAD.encode(bytes(rng, 18))),
    ("openssl rand -hex 8", |rng| hex(rng, 16)),
    ("openssl rand -hex 16", |rng| hex(rng, 32)),
    ("a UUID", |rng| [8, 4, 4, 4, 12].map(|length| hex(rng, length)).join("-")),
    ("a bootstrap token", |rng| format!("{}.{}", text(rng, LOWER, 6), text(rng, LOWER, 16))),
    ("an access key of AWS", |rng| format!("AKIA{}", text(rng, BASE32, 16))),
    ("a secret key of AWS", |rng| BASE64.encode(bytes(rng, 30))),
    ("a token of GitHub", |rng| format!("ghp_{}", text(rng, LETTERS, 36))),
    ("a token of Slack", |rng| format!("xoxb-{}-{}", text(rng, "0123456789", 12), text(rng, LETTERS, 24))),
    ("a token of GitLab", |rng| format!("glpat-{}", text(rng, LETTERS, 20))),
    ("a JWT", |rng| {
        let parts = [r#"{"alg":"HS256"}"#.to_owned(), format!(r#"{{"sub":"{}"}}"#, hex(rng, 8))];
        let [head, body] = parts.map(|part| URL_SAFE_NO_PAD.encode(part));
        format!("{head}.{body}.{}", URL_SAFE_NO_PAD.encode(bytes(rng, 32)))
    }),
    ("a recovery code", |rng| [(); 4].map(|()| text(rng, BASE32, 4)).join("-")),
    ("a password with its program", |rng| format!("{}-{}", rng.choice(APPS).unwrap(), text(rng, LETTERS, 8))),
];

/// Of 100,000 values that programs made, at most one in 10,000 of each is taken for words.
#[test]
fn k3_random_values_are_searched_for() {
    const EACH: usize = 5_400;
    let mut rng = seeded("random values");
    let mut missed = BTreeMap::new();
    for (name, make) in GENERATORS {
        let profile = profile();
        let values: Vec<String> =
            (0..EACH).map(|_| make(&mut rng)).filter(|value| has_two_classes(value)).collect();
        assert!(values.len() * 100 >= EACH * 90, "{name}");
        for (at, some) in values.chunks(250).enumerate() {
            learn(&profile, "shop", &format!("s{at}"), some.to_vec());
        }
        let found = hidden(&profile, &values);
        // By chance, one of so few may be the one in ten thousand.
        if values.len() - found.len() > 1 {
            let shown: Vec<&String> = values.iter().filter(|value| !found.contains(value)).take(5).collect();
            missed.insert(name, format!("{} of {}: {shown:?}", values.len() - found.len(), values.len()));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// SECURITY.md: values of one class of characters are not searched for.
fn has_two_classes(value: &str) -> bool {
    !value.bytes().all(|byte| byte.is_ascii_digit())
        && !value.bytes().all(|byte| byte.is_ascii_lowercase())
        && !value.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// Values of a large cluster. At most one object in 10,000 may have something hidden in it that is no secret.
#[test]
fn k4_a_cluster_of_5000_secrets_with_ordinary_values_hides_nothing_ordinary() {
    let mut rng = seeded("ordinary");
    let profile = profile();
    for app in APPS {
        let service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": app, "namespace": "shop", "uid": app, "resourceVersion": "1"}});
        change_with(&profile, None, Some(&service), &mut Tally::default()).unwrap();
    }
    for number in 0..5_000 {
        let password: String = (0..20).map(|_| rng.alphanumeric()).collect();
        let [a, b, c, d] = [(); 4].map(|()| ordinary(&mut rng));
        learn(&profile, &format!("ns-{}", number % 50), &format!("s{number}"), [password, a, b, c, d]);
    }
    let mut wrong = Vec::new();
    for number in 0..10_000 {
        let [a, b, c, d] = [(); 4].map(|()| ordinary(&mut rng));
        let (kind, spec) = match number % 3 {
            0 => (
                "ConfigMap",
                json!({"app.yaml": format!("db:\n  user: {a}\n  host: {b}\n"), "flags": format!("{c} {d}")}),
            ),
            1 => (
                "Pod",
                json!({"containers": [{"name": "web", "image": "registry.example.com/web:1.2.3", "args": [a, b],
                "env": [{"name": "HOST", "value": c}, {"name": "URL", "value": d}]}]}),
            ),
            _ => ("Event", json!({"note": format!("connecting to {a} as {b} failed: {c} {d}")})),
        };
        let object = json!({"apiVersion": "v1", "kind": kind, "spec": spec,
            "metadata": {"name": format!("o{number}"), "namespace": format!("ns-{}", number % 50), "uid": "1"}});
        let shown = profile.secrets.redact(&Gvk::new("v1", kind), object).to_string();
        if shown.contains("<hmac:") {
            wrong.push(shown);
        }
    }
    assert!(wrong.len() <= 1, "{} of 10,000: {:#?}", wrong.len(), wrong.iter().take(20).collect::<Vec<_>>());
}
