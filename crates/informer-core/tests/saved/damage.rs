//! Files that were changed, cut, or made by others.

use std::io::{self, BufReader, Read, Write};

use informer_core::saved::{self, LoadError};
use informer_core::{PlainStorage, Scope};

use super::{LONGEST, bytes, description, load, object, store};

fn small() -> Vec<u8> {
    let objects = [object("a/x", 3, "one"), object("a/y", 4, "two"), object("b/z", 5, "three")];
    bytes(&store(&[(Scope::All, 7)], &objects))
}

#[test]
fn p1_a_file_cut_short_anywhere_is_refused() {
    let whole = small();
    for length in 0..whole.len() {
        let error = load(&whole[..length]).expect_err("it is cut short");
        let told = if length < 12 { error.is_foreign() } else { error.is_damaged() };
        assert!(told, "cut to {length}: {error}");
    }
}

#[test]
fn p1_a_file_with_more_behind_it_is_refused() {
    let mut longer = small();
    longer.push(0);
    assert!(load(&longer).unwrap_err().is_damaged());
    let mut twice = small();
    twice.extend(small());
    assert!(load(&twice).unwrap_err().is_damaged());
}

#[test]
fn p1_a_file_changed_in_any_bit_is_refused() {
    let whole = small();
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut changed = whole.clone();
            changed[at] ^= 1 << bit;
            let error = load(&changed).map(|_| ()).expect_err("it is changed");
            let told = if at < 12 { error.is_foreign() } else { error.is_damaged() };
            assert!(told, "byte {at}, bit {bit}: {error}");
        }
    }
}

#[test]
fn p1_a_bigger_file_changed_anywhere_is_refused() {
    let mut random = fastrand::Rng::with_seed(1);
    let objects: Vec<_> = (0..300)
        .map(|number| {
            let content: String = (0..2_000).map(|_| random.alphanumeric()).collect();
            object(&format!("a/p{number}"), 5, &content)
        })
        .collect();
    let whole = bytes(&store(&[(Scope::All, 7)], &objects));
    for seed in 0..100 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut changed = whole.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(12..changed.len());
            changed[at] = changed[at].wrapping_add(random.u8(1..));
        }
        if random.bool() {
            changed.truncate(random.usize(12..changed.len()));
        }
        if changed != whole {
            assert!(load(&changed).is_err_and(|error| error.is_damaged()), "seed {seed}");
        }
    }
}

#[test]
fn p1_any_bytes_are_refused() {
    for seed in 0..500 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut any: Vec<u8> = (0..random.usize(..200)).map(|_| random.u8(..)).collect();
        if random.bool() {
            any.splice(0..0, small()[..12].iter().copied());
        }
        assert!(load(&any).is_err(), "seed {seed}");
    }
}

/// A file whose sum is right, whatever is in it.
fn forged(frame: &[u8]) -> Vec<u8> {
    let mut bytes = b"informer\x03\0\0\0".to_vec();
    bytes.extend(zstd::encode_all(frame, 1).unwrap());
    let sum = crc32fast::hash(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// The content of such a file, put together by hand.
struct Frame(Vec<u8>);

impl Frame {
    fn new() -> Self {
        let mut frame = Self(Vec::new()).number(2);
        for (name, text) in description() {
            frame = frame.text(name).text(&text);
        }
        // A note; a key; one source: all, at 7, and all of it was read.
        frame.text("").number(9).number(1).byte(0).text("7").byte(0)
    }

    fn number(mut self, number: u64) -> Self {
        self.0.extend(number.to_le_bytes());
        self
    }

    fn byte(mut self, byte: u8) -> Self {
        self.0.push(byte);
        self
    }

    fn text(mut self, text: &str) -> Self {
        self.0.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
        self.0.extend(text.as_bytes());
        self
    }

    fn object(self, encoding: &str, json: &str) -> Self {
        self.byte(1).text(encoding).number(0).text(json)
    }

    fn loaded(self) -> Result<usize, LoadError> {
        load(&forged(&self.0)).map(|saved| saved.objects.len())
    }
}

const CART: &str = r#"{"metadata":{"name":"cart","resourceVersion":"3"}}"#;

#[test]
fn p1_what_only_claims_to_be_right_is_refused() {
    assert_eq!(Frame::new().object("json", CART).byte(0).number(1).loaded().unwrap(), 1);
    let says = |frame: Frame| frame.loaded().unwrap_err().to_string();
    let twice = Frame::new().object("json", CART).object("json", CART).byte(0).number(2);
    assert_eq!(says(twice), "the saved cache is damaged: an object occurs twice");
    let missing = Frame::new().object("json", CART).byte(0).number(2);
    assert_eq!(says(missing), "the saved cache is damaged: objects are missing");
    let endless = Frame::new().object("json", CART);
    assert_eq!(says(endless), "the saved cache is damaged: it ends early");
    let behind = Frame::new().byte(0).number(0).byte(0);
    assert_eq!(says(behind), "the saved cache is damaged: bytes follow its end");
    let nameless = Frame::new().object("json", r#"{"metadata":{}}"#).byte(0).number(1);
    assert_eq!(says(nameless), "the saved cache is damaged: an object in it is undecodable");
    let unknown = Frame::new().object("cbor", "?").byte(0).number(1);
    assert!(unknown.loaded().unwrap_err().is_foreign());
    assert_eq!(
        says(Frame::new().object("cbor", "?").byte(0).number(1)),
        "the saved cache has objects as `cbor`, which this program does not support"
    );
}

#[test]
fn p1_no_length_is_believed() {
    for claimed in [LONGEST as u32 + 1, u32::MAX] {
        let mut frame = Frame::new().byte(1).text("json").number(0);
        frame.0.extend(claimed.to_le_bytes());
        assert!(frame.loaded().is_err_and(|error| error.is_damaged()), "{claimed}");
    }
    // As many sources as there are numbers, none of which follows.
    let mut frame = Frame(Vec::new()).number(2);
    for (name, text) in description() {
        frame = frame.text(name).text(&text);
    }
    assert!(frame.text("").number(9).number(u64::MAX).loaded().is_err_and(|error| error.is_damaged()));
}

#[test]
fn p1_a_window_that_asks_for_more_memory_is_refused() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(27).unwrap();
    // More than the window that is allowed, or the frame would ask for no more than its content.
    let padding = format!(r#"{{"metadata":{{"name":"cart"}},"spec":"{}"}}"#, "x".repeat(500_000));
    for number in 0..20 {
        let json = padding.replace("cart", &format!("cart{number}"));
        encoder.write_all(&Frame(Vec::new()).object("json", &json).0).unwrap();
    }
    let mut bytes = b"informer\x03\0\0\0".to_vec();
    bytes.extend(encoder.finish().unwrap());
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    let error = load(&bytes).unwrap_err();
    assert!(error.is_damaged(), "{error:?}");
}

#[test]
fn p1_another_format_is_refused_by_its_number() {
    let mut later = small();
    later[8] = 4;
    let error = load(&later).unwrap_err();
    assert!(error.is_foreign());
    assert_eq!(error.to_string(), "the saved cache has format 4, which this program does not support");
    assert_eq!(load(b"{\"kind\":\"PodList\"}").unwrap_err().to_string(), "this is not a saved cache");
}

/// Fails after so many bytes.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.0.read(bytes)? {
            0 => Err(io::Error::other("the disk is gone")),
            read => Ok(read),
        }
    }
}

impl Write for Failing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = bytes.len().min(self.0.len());
        self.0 = &self.0[room..];
        if room == 0 { Err(io::Error::other("the disk is full")) } else { Ok(room) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn p1_a_disk_that_fails_is_no_damage() {
    let whole = small();
    for length in 0..whole.len() {
        let input = BufReader::with_capacity(16, Failing(&whole[..length]));
        let error = saved::load(input, &description(), LONGEST, &PlainStorage).unwrap_err();
        assert!(error.is_io(), "after {length}: {error}");
        let checkpoint = store(&[(Scope::All, 7)], &[object("a/x", 3, "one")]).checkpoint();
        let room = vec![0; length.min(60)];
        assert!(saved::save(Failing(&room), &description(), &checkpoint).is_err(), "room for {length}");
    }
}
