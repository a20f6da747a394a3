use super::*;

#[test]
fn a_source_fills_the_width_that_it_is_given() {
    let softirq = Source::Softirq("RCU".into());
    assert_eq!(
        format!("{softirq}|{softirq:14}|{softirq:>14}|{softirq:.9}"),
        "softirq:RCU|softirq:RCU   |   softirq:RCU|softirq:R"
    );
    assert_eq!(format!("{}|{:6}|{:.2}", Source::Tick, Source::Tick, Source::Tick), "tick|tick  |ti");
}
