//! Translates the kernel's numbers and addresses to names.

use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use foldhash::HashMap;
use quell_recording::Source;
use quell_recording::kernel_names::{IPIS, SOFTIRQS};

/// The kernel's functions by address.
#[derive(Default)]
pub(crate) struct Symbols {
    /// The names, one behind the other.
    text: String,
    /// Address, and position and length of the name in `text`; sorted by address.
    places: Vec<(u64, u32, u16)>,
    known: HashMap<u64, Option<Arc<str>>>,
}

/// The kernel's functions while a thread reads them: the kernel takes up to a tenth of a second to list them.
pub(crate) struct Reading {
    wanted: Receiver<(&'static str, u64)>,
    /// What was read at once, where there is no thread to be had.
    reader: Result<JoinHandle<Symbols>, Symbols>,
}

impl Reading {
    /// Begins to read `/proc/kallsyms`; without the privilege to see addresses (CAP_SYSLOG) no function has a name.
    pub fn begin(wanted: &'static [&'static str]) -> Self {
        let (send, found) = mpsc::channel();
        let read = move |send: Sender<(&'static str, u64)>| {
            let Ok(file) = fs_err::File::open("/proc/kallsyms") else { return Symbols::default() };
            Symbols::parse(BufReader::new(file), |name, address| {
                if let Some(&wanted) = wanted.iter().find(|&&wanted| wanted == name) {
                    // No more are received once there is the one that is preferred.
                    let _ = send.send((wanted, address));
                }
            })
        };
        let own = send.clone();
        let thread = std::thread::Builder::new().spawn(move || read(own));
        Self { wanted: found, reader: thread.map_err(|_| read(send)) }
    }

    /// The address of the wanted function that is preferred, as soon as it is read; if it does not exist, that of another; 0 if there is none.
    pub fn address(&self, preferred: &str) -> u64 {
        choose(self.wanted.iter(), preferred)
    }

    /// All functions.
    pub fn end(self) -> Symbols {
        self.reader.map_or_else(|read| read, |reader| reader.join().unwrap_or_default())
    }
}

fn choose(found: impl Iterator<Item = (&'static str, u64)>, preferred: &str) -> u64 {
    let mut other = 0;
    for (name, address) in found {
        if name == preferred {
            return address;
        }
        other = address;
    }
    other
}

impl Symbols {
    /// Reads functions, and passes each one's name and address on.
    fn parse(mut file: impl BufRead, mut each: impl FnMut(&str, u64)) -> Self {
        let (mut text, mut places, mut line) = (String::new(), Vec::new(), String::new());
        while file.read_line(&mut line).is_ok_and(|length| length > 0) {
            // Address, kind, name, and of a module's function the module.
            if let Some((address, rest)) = line.split_once(' ')
                && let Some(("t" | "T" | "w" | "W", name)) = rest.split_once(' ')
                && let Ok(address @ 1..) = u64::from_str_radix(address, 16)
                && let Some(name) = name.split_ascii_whitespace().next()
            {
                each(name, address);
                places.push((address, text.len() as u32, name.len() as u16));
                text.push_str(name);
            }
            line.clear();
        }
        places.sort_unstable();
        Self { text, places, known: HashMap::default() }
    }

    /// Whether no address is visible.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The name of the function that begins at `address`.
    pub fn name(&mut self, address: u64) -> Option<Arc<str>> {
        if address == 0 {
            return None;
        }
        if let Some(known) = self.known.get(&address) {
            return known.clone();
        }
        let found = self.places.binary_search_by_key(&address, |place| place.0).ok().map(|i| {
            let (_, start, length) = self.places[i];
            Arc::from(&self.text[start as usize..start as usize + length as usize])
        });
        self.known.insert(address, found.clone());
        found
    }
}

/// Maximum number of names that are kept. Processes choose their own names, so a long run could see any number of them.
const MOST_NAMES: usize = 1 << 14;

/// Names of sources, one copy of each.
#[derive(Default)]
pub(crate) struct Sources {
    numbered: HashMap<(u32, u32), Source>,
    named: HashMap<u128, Arc<str>>,
    irqs: HashMap<(u32, Arc<str>), Source>,
}

impl Sources {
    /// The name in a comm, or in a driver's name that was cut to fit. It may contain any byte.
    pub fn name(&mut self, bytes: [u8; 16]) -> Arc<str> {
        let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        // Bytes behind the terminating NUL are leftovers in the ring.
        let key =
            u128::from_le_bytes(bytes) & 1_u128.checked_shl(8 * length as u32).unwrap_or(0).wrapping_sub(1);
        if let Some(known) = self.named.get(&key) {
            return Arc::clone(known);
        }
        if self.named.len() >= MOST_NAMES {
            self.named.clear();
        }
        let name: Arc<str> = String::from_utf8_lossy(&bytes[..length]).into();
        self.named.insert(key, Arc::clone(&name));
        name
    }

    /// A softirq by its vector.
    pub fn softirq(&mut self, vector: u32) -> Source {
        let name = || match SOFTIRQS.get(vector as usize) {
            Some(name) => Source::Softirq((*name).into()),
            None => Source::Softirq(vector.to_string().into()),
        };
        self.numbered.entry((0, vector)).or_insert_with(name).clone()
    }

    /// An IPI by its number in `enum ipi`.
    pub fn ipi(&mut self, kind: u32) -> Source {
        let name = || Source::Ipi(IPIS.get(kind as usize).map_or("unknown", |ipi| ipi.name).into());
        self.numbered.entry((1, kind)).or_insert_with(name).clone()
    }

    /// A device's interrupt. The programs keep 15 bytes of its name; sysfs has all of it while the device exists.
    pub fn irq(&mut self, number: u32, bytes: [u8; 16]) -> Source {
        let name = self.name(bytes);
        let key = (number, Arc::clone(&name));
        let full = || {
            let cut = name.len() >= 15;
            let listed = cut
                .then(|| fs_err::read_to_string(format!("/sys/kernel/irq/{number}/actions")).ok())
                .flatten();
            let whole = listed.as_deref().and_then(|list| {
                list.trim().split(',').find(|action| action.starts_with(&*name)).map(Arc::from)
            });
            Source::Irq(whole.unwrap_or_else(|| {
                if name.is_empty() { number.to_string().into() } else { Arc::clone(&name) }
            }))
        };
        self.irqs.entry(key).or_insert_with(full).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_where_they_begin() {
        let file = "ffffffff81000010 t tick_nohz_handler\nffffffff81000000 T _stext\n0000000000000000 T hidden\nffffffff81000020 D data\nffffffffc0000000 t in_module\t[veth]\nrubbish\n";
        let mut wanted = Vec::new();
        let mut symbols =
            Symbols::parse(file.as_bytes(), |name, address| wanted.push((name.to_owned(), address)));
        assert_eq!(symbols.name(0xffff_ffff_8100_0010).as_deref(), Some("tick_nohz_handler"));
        assert_eq!(symbols.name(0xffff_ffff_c000_0000).as_deref(), Some("in_module"));
        assert_eq!(symbols.name(0xffff_ffff_8100_0011), None);
        assert_eq!(symbols.name(0xffff_ffff_8100_0020), None);
        assert_eq!(wanted.len(), 3, "without what is hidden, data and rubbish");
        assert_eq!(wanted[0], ("tick_nohz_handler".into(), 0xffff_ffff_8100_0010));
        assert!(Symbols::parse(&[0xff, 0xfe][..], |_, _| {}).is_empty());
    }

    #[test]
    fn the_preferred_function_is_chosen_wherever_it_is() {
        let found = [("tick_nohz_handler", 1), ("tick_sched_timer", 2)];
        assert_eq!(choose(found.into_iter(), "tick_sched_timer"), 2);
        assert_eq!(choose(found.into_iter(), "tick_nohz_handler"), 1);
        assert_eq!(choose(found.into_iter().take(1), "tick_sched_timer"), 1, "there is no other");
        assert_eq!(choose([].into_iter(), "tick_sched_timer"), 0);
    }

    #[test]
    fn a_wanted_function_is_known_before_all_are() {
        let reading = Reading::begin(&["no_such_function"]);
        assert_eq!(reading.address("no_such_function"), 0);
        let all = reading.end();
        let Some(&(address, ..)) = all.places.first() else { return };
        let name: &'static str = Box::leak(all.text[..].into());
        let (_, at, length) = all.places[0];
        let wanted = Box::leak(Box::new([&name[at as usize..][..usize::from(length)]]));
        assert_eq!(Reading::begin(wanted).address(wanted[0]), address);
    }

    #[test]
    fn names_may_hold_anything() {
        let mut sources = Sources::default();
        assert_eq!(&*sources.name(*b"a\x1b[31m\n<b>\0\0\0\0\0\0"), "a\u{1b}[31m\n<b>");
        assert_eq!(&*sources.name([b'x'; 16]), "xxxxxxxxxxxxxxxx");
        assert_eq!(sources.softirq(3).to_string(), "softirq:NET_RX");
        assert_eq!(sources.softirq(77).to_string(), "softirq:77");
        assert_eq!(sources.ipi(1).to_string(), "ipi:call_function");
        assert_eq!(sources.irq(9999, [0; 16]).to_string(), "irq:9999");
    }
}
