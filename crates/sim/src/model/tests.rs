use super::*;

const TICK_AND_DAEMON: &str = r#"
    name = "tick and a daemon"
    span = "60s"
    cpus = 2
    [[component]]
    name = "tick"
    periodic = { period = "4ms", jitter = "20us", phase = "random" }
    duration = { uniform = { min = "5us", max = "14us" } }
    [[component]]
    poisson = { rate = "0.6/ms" }
    duration = { exponential = { mean = "250us", min = "14us" } }
"#;

fn with_duration(duration: &str) -> Result<Model, ModelError> {
    Model::from_toml(&format!("[[component]]\nname = \"x\"\npoisson.rate = \"1/ms\"\nduration = {duration}"))
}

fn lost(trace: &Trace) -> f64 {
    trace.detours.iter().map(|detour| detour.duration.as_nanos() as f64).sum()
}

#[test]
fn traces_depend_on_seed_cpu_and_span_alone() {
    let model = Model::from_toml(TICK_AND_DAEMON).unwrap();
    let span = Nanos::from_secs(1);
    let node = model.node(span, 1).unwrap();
    assert_eq!(node[1], model.trace(Cpu(1), span, 1).unwrap());
    assert_ne!(node[0].detours, node[1].detours);
    assert_ne!(node, model.node(span, 2).unwrap());
    assert_eq!(
        (model.name(), model.span(), model.cpus()),
        (Some("tick and a daemon"), Some(Nanos::from_secs(60)), 2)
    );
}

#[test]
fn detours_keep_order_span_and_total() {
    let model = Model::from_toml(TICK_AND_DAEMON).unwrap();
    let trace = model.trace(Cpu(0), Nanos::from_secs(20), 3).unwrap();
    assert!(trace.detours.windows(2).all(|pair| pair[0].end() <= pair[1].start));
    assert!(
        trace.detours.iter().all(|detour| detour.end() <= trace.span.end && detour.duration > Nanos::ZERO)
    );
    let expected = 20e9 * (9.5e3 / 4e6 + 250e3 * 0.6e-6);
    assert!((lost(&trace) / expected - 1.0).abs() < 0.03, "{} {expected}", lost(&trace));
    let count = model.expected_detours(trace.span.end);
    assert!((trace.detours.len() as f64 / count - 1.0).abs() < 0.03);
}

#[test]
fn durations_have_the_mean_of_their_law() {
    for (law, mean) in [
        (r#"{ constant = "7us" }"#, 7e3),
        (r#"{ exponential = { mean = "20us" } }"#, 20e3),
        (r#"{ exponential = { mean = "20us", min = "15us" } }"#, 20e3),
        (r#"{ uniform = { min = "1us", max = "3us" } }"#, 2e3),
        (r#"{ pareto = { scale = "1us", shape = 3.0 } }"#, 1.5e3),
        // α = 1 cut at H = e·L has mean L·ln(H/L)/(1 − L/H) = L·e/(e − 1).
        (r#"{ pareto = { scale = "10us", shape = 1.0, max = "27182ns" } }"#, 15_820.0),
        (r#"{ empirical = { values = ["1us", "5us"], weights = [3, 1.0] } }"#, 2e3),
    ] {
        let trace = with_duration(law).unwrap().trace(Cpu(0), Nanos::from_secs(60), 5).unwrap();
        let measured = lost(&trace) / trace.detours.len() as f64;
        assert!((measured / mean - 1.0).abs() < 0.02, "{law}: {measured} for {mean}");
    }
}

#[test]
fn overload_fills_the_span_and_no_more() {
    let trace =
        with_duration(r#"{ constant = "1h" }"#).unwrap().trace(Cpu(0), Nanos::from_secs(1), 0).unwrap();
    assert_eq!(trace.detours.len(), 1);
    assert_eq!(trace.detours[0].end(), trace.span.end);
}

#[test]
fn refuses_a_trace_that_cannot_fit() {
    let model = Model::from_toml(TICK_AND_DAEMON).unwrap();
    assert!(matches!(model.trace(Cpu(0), Nanos::MAX, 0), Err(ModelError::TooMany { .. })));
}

#[test]
fn errors_name_component_and_field() {
    for (duration, field) in [
        (r#"{ constant = "0ns" }"#, "duration.constant"),
        (r#"{ exponential = { mean = "1us", min = "2us" } }"#, "duration.exponential.min"),
        (r#"{ uniform = { min = "2us", max = "1us" } }"#, "duration.uniform.min"),
        (r#"{ pareto = { scale = "1us", shape = 0.0 } }"#, "duration.pareto.shape"),
        (r#"{ pareto = { scale = "1us", shape = nan } }"#, "duration.pareto.shape"),
        (r#"{ empirical = { values = [] } }"#, "duration.empirical.values"),
        (r#"{ empirical = { values = ["1us"], weights = [-1.0] } }"#, "duration.empirical.weights"),
        (r#"{ empirical = { values = ["1us"], weights = [1.0, 1.0] } }"#, "duration.empirical.weights"),
    ] {
        let error = with_duration(duration).unwrap_err().to_string();
        assert!(error.starts_with(&format!("component 1 (\"x\"): {field}: ")), "{error}");
    }
    for (arrival, field) in [
        (r#"periodic = { period = "0s" }"#, "periodic.period"),
        (r#"periodic = { period = "1ms", jitter = "2ms" }"#, "periodic.jitter"),
        (r#"poisson = { rate = "0/ms" }"#, "poisson.rate"),
        (r#"poisson = { rate = "-1/ms" }"#, "poisson.rate"),
        (r#"poisson = { rate = "NaN/ms" }"#, "poisson.rate"),
        (r#"poisson = { rate = "5" }"#, "poisson.rate"),
        ("", "periodic, poisson"),
    ] {
        let text = format!("[[component]]\n{arrival}\nduration = {{ constant = \"1us\" }}");
        let error = Model::from_toml(&text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("component 1: {field}: ")), "{error}");
    }
}

#[test]
fn refuses_unknown_fields_anywhere() {
    for text in [
        "nmae = \"x\"",
        "[[component]]\npoisson = { rate = \"1/s\", phase = \"random\" }\nduration = { constant = \"1us\" }",
        "[[component]]\npoisson = { rate = \"1/s\" }\nduration = { uniform = { min = \"1us\", max = \"2us\", mean = \"1us\" } }",
        "[[component]]\npoisson = { rate = \"1/s\" }\nduration = { gamma = \"1us\" }",
    ] {
        assert!(matches!(Model::from_toml(text), Err(ModelError::Toml(_))), "{text}");
    }
    assert!(Model::from_toml("").unwrap_err().to_string().contains("component"));
}
