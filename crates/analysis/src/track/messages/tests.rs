use super::Messages;
use crate::track::event_reader::{Channel, MessageKey};

fn key(tag: u32, number: u64) -> MessageKey {
    MessageKey { channel: Channel { comm: 0, from: 0, to: 1, tag }, number }
}

#[test]
fn a_message_has_the_noise_free_times_of_both_ends() {
    let mut messages = Messages::new(2);
    let (other, _) = messages.send(key(9, 0), 1, (0, 500), &[1, 2], false);
    let (id, _) = messages.send(key(1, 0), 8, (3, 1000), &[10, 20], false);
    assert_eq!(messages.receive(key(1, 0), 900, &[3, 4]), (id, None));
    assert_eq!((messages.quiet_send(id), messages.quiet_begin(id)), (&[990, 980][..], &[897, 896][..]));
    assert_eq!((messages.quiet_send(other), messages.quiet_begin(other)), (&[499, 498][..], &[0, 0][..]));
    let message = messages.get(id);
    assert_eq!((message.sent, message.begun, message.bytes), (Some((3, 1000)), Some(900), 8));
}

#[test]
fn a_send_returns_those_that_wait_for_it() {
    let mut messages = Messages::new(1);
    let (id, _) = messages.receive(key(1, 0), 900, &[0]);
    messages.get_mut(id).receiver_waits = Some(7);
    messages.get_mut(id).prober_waits = Some(8);
    assert_eq!(messages.send(key(1, 0), 8, (3, 1000), &[0], false), (id, [Some(7), Some(8)]));
    let message = messages.get(id);
    assert_eq!((message.receiver_waits, message.prober_waits), (None, None));
}

#[test]
fn a_message_that_is_probed_stays_for_both_of_its_ends() {
    for send_first in [true, false] {
        let mut messages = Messages::new(1);
        let send = |messages: &mut Messages| messages.send(key(1, 0), 8, (3, 1000), &[0], false).0;
        let id = if send_first { send(&mut messages) } else { messages.probe(key(1, 0)) };
        assert_eq!(messages.probe(key(1, 0)), id);
        if !send_first {
            assert_eq!(messages.get(id).sent, None);
            assert_eq!(send(&mut messages), id);
        }
        assert_eq!(messages.receive(key(1, 0), 1010, &[0]).0, id);
        // Its receive has ended, and a probe of another thread has not.
        messages.release(id);
        assert_ne!(messages.probe(key(2, 0)), id);
        (0..2 - u32::from(send_first)).for_each(|_| messages.release(id));
        assert_eq!(messages.probe(key(3, 0)), id);
    }
}

#[test]
fn a_message_that_was_only_probed_leaves_nothing() {
    let mut messages = Messages::new(1);
    let id = messages.probe(key(1, 0));
    messages.release(id);
    assert_eq!(messages.probe(key(2, 0)), id);
    assert_ne!(messages.send(key(1, 0), 8, (3, 1000), &[0], false).0, id);
}

#[test]
fn a_cancelled_receive_leaves_a_message_to_who_probes_it() {
    let mut messages = Messages::new(1);
    let (id, _) = messages.receive(key(1, 0), 900, &[0]);
    assert_eq!(messages.probe(key(1, 0)), id);
    messages.give_back(id);
    assert_eq!(messages.send(key(1, 0), 8, (3, 1000), &[0], false).0, id);
}

#[test]
fn a_receive_returns_the_sender_that_waits_for_it() {
    let mut messages = Messages::new(1);
    let (id, _) = messages.send(key(1, 0), 8, (3, 1000), &[0], true);
    messages.get_mut(id).sender_waits = Some(3);
    assert_eq!(messages.receive(key(1, 0), 900, &[0]), (id, Some(3)));
}

#[test]
fn the_place_of_a_message_is_used_again_once_no_call_needs_it() {
    for (held, releases) in [(false, 1), (true, 2)] {
        let mut messages = Messages::new(1);
        let (id, _) = messages.send(key(1, 0), 8, (0, 10), &[0], held);
        messages.receive(key(1, 0), 5, &[0]);
        for _ in 1..releases {
            messages.release(id);
        }
        let (second, _) = messages.send(key(1, 1), 8, (0, 20), &[0], false);
        assert_ne!(second, id, "a call needs it");
        messages.release(id);
        let (third, _) = messages.send(key(1, 2), 8, (0, 30), &[0], false);
        assert_eq!(third, id);
        assert_eq!(messages.get(third).begun, None);
    }
}

#[test]
fn a_message_with_one_end_is_kept() {
    let mut messages = Messages::new(1);
    let (id, _) = messages.send(key(1, 0), 8, (0, 10), &[0], false);
    messages.release(id);
    assert_ne!(messages.receive(key(2, 0), 10, &[0]).0, id);
    assert_eq!(messages.receive(key(1, 0), 10, &[0]).0, id);
}

#[test]
fn a_lost_message_is_no_longer_looked_for() {
    let mut messages = Messages::new(1);
    let (id, _) = messages.receive(key(1, 0), 10, &[0]);
    messages.lose(id);
    assert!(messages.get(id).lost);
    messages.release(id);
    let (other, _) = messages.send(key(1, 0), 8, (0, 20), &[0], false);
    assert_eq!((other, messages.get(other).lost, messages.get(other).begun), (id, false, None));
}

#[test]
fn the_message_of_a_cancelled_receive_is_left_to_the_next() {
    let mut messages = Messages::new(1);
    let (id, _) = messages.send(key(1, 0), 8, (0, 10), &[0], false);
    messages.receive(key(1, 0), 5, &[0]);
    messages.give_back(id);
    assert_eq!(messages.probe(key(1, 0)), id);
    assert_eq!(messages.receive(key(1, 0), 15, &[0]).0, id);
    assert_eq!(messages.get(id).begun, Some(15));

    // Nothing was sent yet, so nothing is left of it.
    let (unsent, _) = messages.receive(key(1, 1), 20, &[0]);
    messages.give_back(unsent);
    assert_eq!(messages.receive(key(2, 0), 20, &[0]).0, unsent);
    let (again, _) = messages.send(key(1, 1), 8, (0, 30), &[0], false);
    assert_ne!(again, unsent);
}

#[test]
fn messages_that_were_sent_and_not_received_are_left_the_earliest_first() {
    let mut messages = Messages::new(1);
    for (tag, at) in [(3, 30), (1, 10), (2, 20)] {
        messages.send(key(tag, 0), 8, (0, at), &[0], false);
    }
    messages.receive(key(4, 0), 5, &[0]);
    messages.receive(key(1, 0), 15, &[0]);
    let tags = |most: usize| {
        let (count, left) = messages.left(most);
        (count, left.iter().map(|message| message.key.channel.tag).collect::<Vec<_>>())
    };
    assert_eq!(tags(5), (2, vec![2, 3]));
    assert_eq!(tags(1), (2, vec![2]));
}
