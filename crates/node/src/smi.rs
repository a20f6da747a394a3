//! The processor's own count of system management interrupts, which stop all CPUs and which no kernel sees.

use std::os::unix::fs::FileExt as _;
use std::path::Path;

use quell_recording::Cpu;

/// MSR_SMI_COUNT: in its low 32 bits, the number since the last reset (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 4).
const MSR_SMI_COUNT: u64 = 0x34;

/// The count of a CPU. `None` where there is none (processors other than Intel's) and where it cannot be read (it takes the kernel's `msr` module
/// and CAP_SYS_RAWIO). On a virtual machine it says nothing of the host's. Reading it interrupts the CPU.
pub(crate) fn count(cpu: Cpu) -> Option<u32> {
    read(Path::new(&format!("/dev/cpu/{cpu}/msr")))
}

fn read(registers: &Path) -> Option<u32> {
    let mut count = [0; 8];
    fs_err::File::open(registers).ok()?.file().read_exact_at(&mut count, MSR_SMI_COUNT).ok()?;
    Some(u64::from_le_bytes(count) as u32)
}

/// How many there were between two counts.
pub(crate) fn between(before: Option<u32>, after: Option<u32>) -> Option<u64> {
    Some(u64::from(after?.wrapping_sub(before?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_the_low_half_of_the_register() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("msr");
        let mut registers = vec![0xff; 0x34];
        registers.extend([7, 1, 0, 0, 0xaa, 0, 0, 0]);
        fs_err::write(&file, &registers).unwrap();
        assert_eq!(read(&file), Some(0x107));
        fs_err::write(&file, &registers[..0x38]).unwrap();
        assert_eq!(read(&file), None);
        assert_eq!(read(&folder.path().join("none")), None);
    }

    #[test]
    fn a_count_may_wrap_or_be_missing() {
        assert_eq!(between(Some(3), Some(5)), Some(2));
        assert_eq!(between(Some(u32::MAX), Some(1)), Some(2));
        assert_eq!(between(None, Some(1)), None);
        assert_eq!(between(Some(1), None), None);
    }
}
