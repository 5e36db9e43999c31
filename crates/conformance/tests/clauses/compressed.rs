//! W16: lists and watches in many gzip members, as servers from 1.37 on send them, and with their borders and those of the
//! pieces anywhere.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use conformance::{Rig, config_map, impatient};
use fastrand::Rng;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, HeaderValue};
use informer::transport::{KubeTransport, Response, Transport, TransportError};
use informer::{Encoding, EncodingChoice, Layout, Object, SharedInformerFactory, StreamingListChoice};
use serde_json::json;

use super::{config_maps, json as value_of, names};
use crate::SERVER;

/// Compresses what a server answers, in members and pieces of any length.
struct Zipping {
    inner: KubeTransport,
    seed: u64,
    members: Arc<AtomicU64>,
}

impl Transport for Zipping {
    fn send(
        &self,
        mut request: http::Request<Vec<u8>>,
    ) -> BoxFuture<'static, Result<Response, TransportError>> {
        let accepted = request.headers_mut().remove(ACCEPT_ENCODING);
        let answer = self.inner.send(request);
        if accepted.is_none_or(|accepted| accepted != "gzip") {
            return answer;
        }
        let (mut random, members) = (Rng::with_seed(self.seed), self.members.clone());
        Box::pin(async move {
            let Response { mut head, body } = answer.await?;
            head.headers.remove(CONTENT_LENGTH);
            head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            let zipped = body.map_ok(move |plain| {
                let (zipped, count) = zipped(&plain, &mut random);
                members.fetch_add(count, Ordering::Relaxed);
                let pieces = cut(&zipped, &mut random).into_iter();
                stream::iter(pieces.map(|piece| Ok(Bytes::copy_from_slice(piece))).collect::<Vec<_>>())
            });
            Ok(Response { head, body: zipped.try_flatten().boxed() })
        })
    }

    fn refresh_credentials(&self) -> BoxFuture<'static, Result<(), TransportError>> {
        self.inner.refresh_credentials()
    }
}

/// Complete members, and how many they are.
fn zipped(plain: &[u8], random: &mut Rng) -> (Vec<u8>, u64) {
    let (mut zipped, mut members) = (Vec::new(), 0);
    for piece in cut(plain, random) {
        let mut member = GzEncoder::new(zipped, Compression::fast());
        member.write_all(piece).expect("memory");
        zipped = member.finish().expect("memory");
        members += 1;
    }
    (zipped, members)
}

/// Pieces of 1 to 8,191 bytes, short ones as often as long ones.
fn cut<'a>(mut bytes: &'a [u8], random: &mut Rng) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    while !bytes.is_empty() {
        let most = 1 << random.u32(1..14);
        let (piece, rest) = bytes.split_at(random.usize(1..most).min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

#[tokio::test]
async fn w16_lists_and_watches_in_many_gzip_members_decode() {
    let Some(rig) = Rig::shared(SERVER, "w16_members").await else { return };
    let strange: String = "\u{0}\u{7f}\"\\/ä€𝄞\u{2028}\r\n\t<>&".chars().cycle().take(50_000).collect();
    rig.create_with(config_map("strange", &strange)).await;
    let small =
        (0..100).map(|number| rig.create_with(config_map(&format!("small-{number:02}"), &strange[..1])));
    rig.at_once(small).await;
    let plain = rig
        .builder()
        .layout(Layout::Bytes)
        .encoding(EncodingChoice::Json)
        .build()
        .unwrap()
        .in_namespace(rig.namespace());
    let plain = rig.synced(&plain).await;
    for (seed, encoding, streaming) in [
        (1, EncodingChoice::Auto, StreamingListChoice::Never),
        (2, EncodingChoice::Auto, StreamingListChoice::Always),
        (3, EncodingChoice::Json, StreamingListChoice::Never),
        (4, EncodingChoice::Json, StreamingListChoice::Always),
    ] {
        let members = Arc::<AtomicU64>::default();
        let inner = KubeTransport::new(rig.config()).unwrap();
        let transport = Zipping { inner, seed, members: members.clone() };
        let builder = SharedInformerFactory::builder_with_transport(transport);
        let builder = impatient(builder)
            .gzip(true)
            .encoding(encoding)
            .reflector(|reflector| reflector.streaming_list = streaming);
        let factory = builder.build().unwrap().in_namespace(rig.namespace());
        let mut reports = factory.informer_of::<Object>(config_maps()).reports();
        let informer = rig.synced(&factory).await;
        let listed = members.load(Ordering::Relaxed);
        assert!(listed >= 50, "seed {seed}: a list of {listed} members");

        // And in the watch.
        rig.patch("strange", json!({ "data": { "value": format!("{seed}{strange}") } })).await;
        let name = |number: usize| format!("small-{number:02}");
        let version =
            rig.at_once((0..50).map(async |number| rig.update(&name(number), &seed.to_string()).await)).await;
        let watching = [&informer, &plain].map(|informer| informer.at_least(&version, conformance::DEADLINE));
        futures_util::future::try_join_all(watching).await.unwrap();
        let watched = members.load(Ordering::Relaxed) - listed;
        assert!(watched >= 50, "seed {seed}: a watch of {watched} members");
        assert_eq!(names(&informer), names(&plain));
        let (ours, theirs) = (informer.snapshot(), plain.snapshot());
        for (ours, theirs) in ours.objects().zip(theirs.objects()) {
            assert_eq!(ours.key(), theirs.key());
            assert!(value_of(ours) == value_of(theirs), "seed {seed}: {} differs", ours.key());
            let in_protobuf = matches!(ours.encoding(), Encoding::Protobuf(_));
            assert_eq!(in_protobuf, encoding == EncodingChoice::Auto);
        }
        assert_eq!(reports.try_recv(), None, "seed {seed}");
        factory.shutdown().await;
    }
}

#[tokio::test]
async fn w16_a_stream_that_the_server_compresses_decodes_and_a_plain_watch_is_not_compressed() {
    const LISTED: usize = 50;
    let Some(rig) = Rig::shared_since(SERVER, 37, "w16_compressed").await else { return };
    let long = |text: &str| text.repeat(20_000);
    let name = |number: usize| format!("long-{number:02}");
    let texts = (0..LISTED).map(|number| rig.create_with(config_map(&name(number), &long("\u{1f600}"))));
    rig.at_once(texts.collect::<Vec<_>>()).await;
    for (round, encoding) in [EncodingChoice::Auto, EncodingChoice::Json].into_iter().enumerate() {
        let builder = rig.builder().gzip(true).encoding(encoding);
        let factory = builder
            .reflector(|reflector| reflector.streaming_list = StreamingListChoice::Always)
            .build()
            .unwrap()
            .in_namespace(rig.namespace());
        let mut reports = factory.informer_of::<Object>(config_maps()).reports();
        let informer = rig.synced(&factory).await;
        // The cluster's certificate authority may be there too.
        assert!(informer.len() >= LISTED);
        let mut seen = informer.metrics().received_bytes;
        // The text alone is 80 KB.
        assert!(seen < LISTED as u64 * 10_000, "{encoding:?}: {seen} bytes of the list");
        let mut update = async |number: usize, text: &str| {
            let value = long(text);
            let version = rig.update(&name(number), &value).await;
            informer.at_least(&version, conformance::DEADLINE).await.unwrap();
            let key = format!("{}/{}", rig.namespace(), name(number));
            let object = informer.lister().get(key).unwrap().unwrap();
            assert!(value_of(&object)["data"]["value"] == value.as_str());
            let now = informer.metrics().received_bytes;
            now - std::mem::replace(&mut seen, now)
        };
        // The same stream goes on.
        for number in 0..5 {
            let bytes = update(number, &format!("{round}")).await;
            assert!(bytes < 10_000, "{encoding:?}: {bytes} bytes of an event in the stream");
        }
        rig.proxy.cut();
        rig.wire
            .until("a plain watch", |asked| asked.last().is_some_and(|last| !last.is_streaming_list()))
            .await;
        let bytes = update(0, "x").await;
        assert!(bytes > 20_000, "{encoding:?}: {bytes} bytes of an event in a plain watch");
        drop(reports.try_recv());
        factory.shutdown().await;
    }
}
