//! Base64 inside of a text: the texts that its runs of characters may stand for.

use std::ops::Range;

/// A shorter run has no value of 8 bytes in it.
pub(super) const MIN_RUN: usize = 11;

/// Where the characters of base64 are, in both alphabets, at least [`MIN_RUN`] of them.
pub(super) fn runs(text: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + text.get(at..)?.iter().position(|byte| sextet(*byte) < 64)?;
            let rest = text.get(start..).unwrap_or_default();
            at = start + rest.iter().position(|byte| sextet(*byte) >= 64).unwrap_or(rest.len());
            if at - start >= MIN_RUN {
                return Some(start..at);
            }
        }
    })
}

/// Decodes a run as if its first characters, `skipped` of them, were none of it.
pub(super) fn decode(run: &[u8], skipped: usize, bytes: &mut Vec<u8>) {
    bytes.clear();
    let mut chunks = run.get(skipped..).unwrap_or_default().chunks_exact(4);
    for chunk in &mut chunks {
        let bits = chunk.iter().fold(0, |bits: u32, byte| bits << 6 | u32::from(sextet(*byte)));
        bytes.extend(bits.to_be_bytes().iter().skip(1));
    }
    let rest = chunks.remainder();
    let bits = rest.iter().fold(0, |bits: u32, byte| bits << 6 | u32::from(sextet(*byte)));
    let whole = rest.len() * 6 / 8;
    let bits = bits << (24 - 6 * rest.len());
    bytes.extend(bits.to_be_bytes().iter().skip(1).take(whole));
}

/// The characters that have a part of these decoded bytes, with the padding behind them.
pub(super) fn characters(
    text: &[u8],
    run: &Range<usize>,
    skipped: usize,
    bytes: Range<usize>,
) -> Range<usize> {
    let first = run.start + skipped;
    let end = (first + (8 * bytes.end).div_ceil(6)).min(run.end);
    let padding = match end == run.end {
        true => text.get(end..).unwrap_or_default().iter().take(2).take_while(|byte| **byte == b'=').count(),
        false => 0,
    };
    first + 8 * bytes.start / 6..end + padding
}

/// The six bits of a character; 64 or more for any other.
#[inline]
fn sextet(byte: u8) -> u8 {
    const TABLE: [u8; 256] = {
        let mut table = [64; 256];
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut at: u8 = 0;
        while at < 64 {
            table[alphabet[at as usize] as usize] = at;
            at += 1;
        }
        table[b'-' as usize] = 62;
        table[b'_' as usize] = 63;
        table
    };
    TABLE.get(usize::from(byte)).copied().unwrap_or(64)
}
