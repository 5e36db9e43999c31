//! Dictionaries that are made, that grow, and that meet frames of other dictionaries.

#![allow(clippy::unwrap_used, reason = "a test may stop at a surprise")]

use zstd_dictionary::{Dictionary, Form, MOST_CONTENT, Packer, Unpacker, finalize};

fn sample(kind: &str, number: usize) -> Vec<u8> {
    let parts = (0..40).map(|at| format!(r#""{kind}-setting-{at}":"{kind}-{}","#, at * at * 7_919 % 1_013));
    format!("{{{}\"number\":{number}}}", parts.collect::<String>()).into_bytes()
}

fn packed(bytes: &[u8], dictionary: Option<&Dictionary>) -> Vec<u8> {
    let packing = dictionary.map(|dictionary| dictionary.packing().unwrap());
    let mut frame = Vec::new();
    Packer::new().unwrap().pack(bytes, packing.as_ref(), &mut frame).unwrap();
    frame
}

fn unpacked(frame: &[u8], dictionary: Option<&Dictionary>, length: usize) -> Option<Vec<u8>> {
    let unpacking = dictionary.map(|dictionary| dictionary.unpacking().unwrap());
    Unpacker::new().unwrap().unpack(frame, unpacking.as_ref(), length).ok()
}

#[test]
fn what_was_packed_can_be_unpacked_after_content_came_before_the_old() {
    let content = [sample("red", 1), sample("red", 2)].concat();
    let samples: Vec<Vec<u8>> = (0..12).map(|number| sample("red", number)).collect();
    let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    let finalized = finalize(&content, &samples).unwrap();
    let header = finalized.len() - content.len();
    for (form, bytes, header) in [(Form::Raw, content, 0), (Form::Finalized, finalized, header)] {
        let first = Dictionary::new(bytes.as_slice().into(), form).unwrap();
        let (red, blue) = (sample("red", 77), sample("blue", 77));
        let frame = packed(&red, Some(&first));
        assert!(frame.len() < 40 && packed(&blue, Some(&first)).len() > 200, "{form:?}");

        let longer = [&bytes[..header], &sample("blue", 1), &bytes[header..]].concat();
        let longer = Dictionary::new(longer.into(), form).unwrap();
        assert_eq!(unpacked(&frame, Some(&longer), red.len()).unwrap(), red);
        let frame = packed(&blue, Some(&longer));
        assert!(frame.len() < 60, "{form:?}: {}", frame.len());
        assert_eq!(unpacked(&frame, Some(&longer), blue.len()).unwrap(), blue);
    }
}

#[test]
fn packing_finds_what_is_within_the_most_content_from_the_end_and_nothing_farther() {
    let text = sample("red", 1);
    let alone = packed(&text, None).len();
    let filler = |length| {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        (0..length).map(|_| next()).collect::<Vec<u8>>()
    };
    for (after, is_found) in [(MOST_CONTENT - text.len(), true), (MOST_CONTENT, false)] {
        let dictionary =
            Dictionary::new([text.as_slice(), &filler(after)].concat().into(), Form::Raw).unwrap();
        let frame = packed(&text, Some(&dictionary));
        assert_eq!(frame.len() * 2 < alone, is_found, "{} of {alone} with {after} after it", frame.len());
        assert_eq!(unpacked(&frame, Some(&dictionary), text.len()).unwrap(), text);
    }
}

/// Like tokens and certificates: no text repeats, and six bits of each byte count.
fn base64(length: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[(state >> 58) as usize]
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn text_that_no_dictionary_knows_shrinks_where_it_is_most_of_an_object() {
    let dictionary = Dictionary::new(sample("red", 1).into(), Form::Raw).unwrap();
    let text = base64(6_000);
    let certificate = [sample("red", 2), text.clone()].concat();
    for with in [None, Some(&dictionary)] {
        let frame = packed(&certificate, with);
        assert!(frame.len() < 5_000 + if with.is_none() { 900 } else { 0 }, "{} bytes", frame.len());
        assert_eq!(unpacked(&frame, with, certificate.len()).unwrap(), certificate);
    }
    // A little of it is faster to unpack uncompressed.
    let token = [sample("red", 2), text[..300].to_vec()].concat();
    let frame = packed(&token, Some(&dictionary));
    assert!((300..400).contains(&frame.len()), "{} of {} bytes", frame.len(), token.len());
    assert_eq!(unpacked(&frame, Some(&dictionary), token.len()).unwrap(), token);
}

#[test]
fn one_packer_takes_one_dictionary_after_the_other() {
    let dictionaries = ["red", "blue"]
        .map(|kind| Dictionary::new(sample(kind, 1).into(), Form::Raw).unwrap().packing().unwrap());
    let (mut packer, mut frame) = (Packer::new().unwrap(), Vec::new());
    let mut lengths = Vec::new();
    for round in 0..3 {
        for dictionary in [Some(&dictionaries[0]), None, Some(&dictionaries[1])] {
            packer.pack(&sample("red", 3), dictionary, &mut frame).unwrap();
            lengths.push(frame.len());
            assert_eq!(lengths[lengths.len() - 1], lengths[(lengths.len() - 1) % 3], "round {round}");
        }
    }
    drop(dictionaries);
    packer.pack(&sample("red", 3), None, &mut frame).unwrap();
    assert_eq!(frame.len(), lengths[1]);
}

#[test]
fn a_length_that_is_not_the_frames_is_an_error() {
    let bytes = sample("red", 1);
    let frame = packed(&bytes, None);
    for length in [0, 1, bytes.len() - 1, bytes.len() + 1, bytes.len() + 100_000] {
        assert_eq!(unpacked(&frame, None, length), None, "{length}");
    }
    assert_eq!(unpacked(&[], None, 10), None);
    assert_eq!(unpacked(&frame[..frame.len() - 1], None, bytes.len()), None);
    assert_eq!(unpacked(&packed(&[], None), None, 0).unwrap(), b"");
}

#[test]
fn what_is_no_dictionary_is_an_error() {
    assert!(Dictionary::new([].as_slice().into(), Form::Raw).is_err());
    let wrong = Dictionary::new(sample("red", 1).into(), Form::Finalized).unwrap();
    assert!(wrong.packing().is_err() && wrong.unpacking().is_err());
}
