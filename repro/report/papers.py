"""The papers, and each figure and table of them that the table has to have."""

DE = "De, Kothari & Mann, IEEE Cluster 2008"
JONES = "Jones et al., LLNL"
NATARAJ = "Nataraj et al., SC 2007"
IBM = "IBM, OS jitter mitigation techniques, 2013"
HOEFLER = "Hoefler et al., SC 2010 (slides)"

FIGURES = {
    DE: [
        *(f"Fig. {number}" for number in range(1, 5)),
        "section IV-A",
        "Fig. 5",
        "Fig. 6",
        "section V-C, hits",
        "section V-C, drift",
        "Fig. 7",
        "Fig. 8",
    ],
    JONES: [
        "Table 1",
        "Fig. 1",
        "Fig. 2",
        "Table 2",
        "Fig. 3",
        "Fig. 4",
        "Table 3",
        *(f"section {one}" for one in ("4.4", "4.4.1", "4.4.1, range", "4.4.2", "4.5")),
    ],
    NATARAJ: ["Table 1", "Table 2", *(f"Fig. {number}" for number in range(1, 10))],
    IBM: [
        "osjitter table",
        "vpsum output",
        "psnap output",
        "mitigation tables",
        "vpsum, not mitigated",
        "vpsum, mitigated",
        "vpsum, without harness",
        "vpsum, without script",
        "CG table",
    ],
    HOEFLER: [
        "noise: CHiC",
        "noise: Altix",
        "noise: BG/P",
        "noise: XT-4",
        "verification: linear scatter",
        "verification: gather",
        "verification: binomial tree",
        "verification: dissemination",
        "verification: Odin, Big Red",
        "speed",
        "collectives at scale",
    ],
}
