use super::{Change, MOST, Paths, ROOT};

#[test]
fn a_region_has_a_place_for_each_region_around_it() {
    let mut paths = Paths::new(2);
    let main = paths.enter(ROOT, 0);
    let below = paths.enter(main, 1);
    let alone = paths.enter(ROOT, 1);
    assert_eq!(paths.enter(main, 1), below);
    assert_ne!(below, alone);
    assert_eq!([ROOT, main, below, alone].map(|place| paths.all[place as usize].calls), [0, 1, 2, 1]);
    assert_eq!((paths.all[below as usize].parent, paths.all[below as usize].region), (main, 1));
}

#[test]
fn noise_is_counted_where_it_struck() {
    let mut paths = Paths::new(3);
    let main = paths.enter(ROOT, 0);
    paths.struck(main, 0, 5);
    paths.struck(main, 1, 7);
    paths.changed(main, 2, Change { amplified: 3, absorbed: 4 });
    paths.changed(main, 2, Change { amplified: 10, absorbed: 20 });
    let path = &paths.all[main as usize];
    assert_eq!(path.local, [12, 5, 7]);
    assert_eq!((path.amplified.as_slice(), path.absorbed.as_slice()), (&[0, 0, 13][..], &[0, 0, 24][..]));
}

#[test]
fn beyond_the_most_places_a_region_counts_as_the_one_around_it() {
    let mut paths = Paths::new(1);
    for region in 1..MOST as u32 {
        assert_eq!(paths.enter(ROOT, region), region);
    }
    assert_eq!(paths.all.len(), MOST);
    assert_eq!(paths.enter(5, 7), 5);
    assert_eq!((paths.all.len(), paths.all[5].calls), (MOST, 2));
    assert_eq!(paths.enter(ROOT, 6), 6, "a known place stays one");
}
