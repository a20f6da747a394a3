//! Keys of sysctl.d, and the files below `/proc/sys` that they set.

pub const PROC_SYS: &str = "/proc/sys/";

/// The key of sysctl.d for a path below `/proc/sys`: with dots, or with slashes if a part of it contains a dot.
pub fn sysctl_key(path: &str) -> Option<String> {
    let key = path.strip_prefix(PROC_SYS)?;
    Some(if key.contains('.') { key.to_owned() } else { key.replace('/', ".") })
}

/// The path below `/proc/sys` for a key of sysctl.d: the first separator decides which of the two it is.
pub fn sysctl_path(key: &str) -> String {
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    match key.find(['.', '/']).map(|at| key.as_bytes()[at]) {
        Some(b'.') => format!("{PROC_SYS}{}", key.chars().map(swap).collect::<String>()),
        _ => format!("{PROC_SYS}{key}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_and_read_by_sysctls_rule() {
        for (path, key) in [
            ("/proc/sys/vm/stat_interval", "vm.stat_interval"),
            ("/proc/sys/net/ipv4/conf/eth0.7/arp_filter", "net/ipv4/conf/eth0.7/arp_filter"),
        ] {
            assert_eq!(sysctl_key(path).as_deref(), Some(key));
            assert_eq!(sysctl_path(key), path);
        }
        assert_eq!(sysctl_path("net.ipv4.conf.eth0/7.x"), "/proc/sys/net/ipv4/conf/eth0.7/x");
        assert_eq!(sysctl_key("/sys/x"), None);
    }
}
