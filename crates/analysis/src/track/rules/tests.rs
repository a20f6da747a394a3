use super::class;

#[test]
fn a_class_of_sizes_ends_before_each_power_of_two() {
    for (bytes, expected) in [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (u64::MAX, 64)] {
        assert_eq!(class(bytes), expected, "{bytes}");
    }
}
