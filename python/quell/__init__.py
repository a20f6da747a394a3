"""quell: operating-system noise, measured and named."""
