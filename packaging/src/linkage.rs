//! Whether a program of Linux runs without anything else on the disk.

/// The type of the program header that names a dynamic linker (`man 5 elf`).
const INTERPRETER: u32 = 3;

/// Whether a 64-bit little-endian ELF program names a dynamic linker. Anything else counts as one that does.
pub(crate) fn needs_a_linker(program: &[u8]) -> bool {
    headers(program).is_none_or(|headers| headers.contains(&INTERPRETER))
}

/// The types of the program headers.
fn headers(program: &[u8]) -> Option<Vec<u32>> {
    let is_elf = program.starts_with(b"\x7fELF\x02\x01");
    let bytes = |at: usize, count: usize| program.get(at..at.checked_add(count)?);
    let two = |at| Some(usize::from(u16::from_le_bytes(bytes(at, 2)?.try_into().ok()?)));
    let four = |at| Some(u32::from_le_bytes(bytes(at, 4)?.try_into().ok()?));
    let eight = |at| usize::try_from(u64::from_le_bytes(bytes(at, 8)?.try_into().ok()?)).ok();
    let (first, size, count) = (eight(32)?, two(54)?, two(56)?);
    let places = (0..count).map(|index| first.checked_add(size.checked_mul(index)?));
    let headers: Option<Vec<u32>> = places.map(|place| four(place?)).collect();
    headers.filter(|_| is_elf)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file of nothing but program headers of these types.
    fn program(types: &[u32]) -> Vec<u8> {
        let mut program = vec![0; 64];
        program[..6].copy_from_slice(b"\x7fELF\x02\x01");
        program[32] = 64;
        program[54] = 56;
        program[56] = u8::try_from(types.len()).unwrap();
        for kind in types {
            program.extend(kind.to_le_bytes());
            program.extend([0; 52]);
        }
        program
    }

    #[test]
    fn a_program_that_names_a_linker_is_told_from_one_that_does_not() {
        assert!(!needs_a_linker(&program(&[1, 1, 2])));
        assert!(needs_a_linker(&program(&[6, INTERPRETER, 1])));
    }

    #[test]
    fn what_cannot_be_read_needs_one() {
        let whole = program(&[1, 1]);
        for end in 0..whole.len() - 52 {
            assert!(needs_a_linker(&whole[..end]), "{end}");
        }
        assert!(needs_a_linker(b"MZ and more bytes than the header of a program takes, which is sixty-four"));
    }
}
