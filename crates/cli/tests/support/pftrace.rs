//! Reads Perfetto timelines field by field, without the schema that they were written with.

use std::collections::BTreeMap;
use std::path::Path;

/// Parses a Protocol Buffers message: its fields in order, as number and value.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)),
            1 => Value::Number(u64::from_le_bytes(bytes.split_off(..8).unwrap().try_into().unwrap())),
            2 => {
                let length = varint(&mut bytes) as usize;
                Value::Bytes(bytes.split_off(..length).unwrap())
            }
            kind => panic!("wire type {kind}"),
        };
        found.push((key >> 3, value));
    }
    found
}

#[derive(Clone, Copy)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    fn number(self) -> u64 {
        let Self::Number(number) = self else { panic!("bytes in place of a number") };
        number
    }

    fn bytes(self) -> &'a [u8] {
        let Self::Bytes(bytes) = self else { panic!("a number in place of bytes") };
        bytes
    }

    fn text(self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let byte = *bytes.split_off_first().unwrap();
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}

fn all<'a>(fields: &[(u64, Value<'a>)], number: u64) -> Vec<Value<'a>> {
    fields.iter().filter(|field| field.0 == number).map(|field| field.1).collect()
}

/// The content of a timeline: its tracks, and the starts and ends of their slices. Arrows are `>n` and `n>`. Values are in ns.
pub fn shown(path: &Path) -> Vec<String> {
    let file = fs_err::read(path).unwrap();
    let mut names = BTreeMap::new();
    let mut lines = Vec::new();
    for packet in all(&fields(&file), 1) {
        let packet = fields(packet.bytes());
        for track in all(&packet, 60) {
            let track = fields(track.bytes());
            let parent = all(&track, 5)
                .first()
                .map_or(String::new(), |parent| format!("{}/", names[&parent.number()]));
            let name = format!("{parent}{}", all(&track, 2)[0].text());
            let printed: Vec<_> = all(&track, 14).into_iter().map(Value::text).collect();
            lines.push(format!("track {name} {}", printed.concat()).trim_end().to_owned());
            names.insert(all(&track, 1)[0].number(), name);
        }
        for event in all(&packet, 11) {
            let (at, event) = (all(&packet, 8)[0].number(), fields(event.bytes()));
            lines.push(format!("{at:>6} {} {}", names[&all(&event, 11)[0].number()], happened(&event)));
        }
    }
    lines
}

fn happened(event: &[(u64, Value<'_>)]) -> String {
    match all(event, 9)[0].number() {
        2 => return "ends".to_owned(),
        4 => return format!("is {}", all(event, 30)[0].number()),
        _ => {}
    }
    let mut words = vec!["begins".to_owned(), all(event, 23)[0].text()];
    words.extend(all(event, 4).into_iter().map(|note| {
        let note = fields(note.bytes());
        format!("{}={}", all(&note, 10)[0].text(), all(&note, 3)[0].number())
    }));
    words.extend(all(event, 47).into_iter().map(|arrow| format!("{}>", arrow.number())));
    words.extend(all(event, 48).into_iter().map(|arrow| format!(">{}", arrow.number())));
    words.join(" ")
}
