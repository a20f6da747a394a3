//! Inputs of real applications, small enough for a test.

/// A Lennard-Jones melt, a small version of LAMMPS's own benchmark.
pub const MELT: &str = "units lj\natom_style atomic\nlattice fcc 0.8442\nregion box block 0 6 0 6 0 6\ncreate_box 1 box\ncreate_atoms 1 box\n\
                    mass 1 1.0\nvelocity all create 1.44 87287 loop geom\npair_style lj/cut 2.5\npair_coeff 1 1 1.0 1.0 2.5\n\
                    neighbor 0.3 bin\nneigh_modify delay 0 every 20 check no\nfix 1 all nve\nthermo 200\nrun 600\n";

/// HPCC's input for two ranks and small matrices, line by line as its parser expects.
pub const HPCC: &str = "HPL input\n-\nHPL.out\n8 device\n1 sizes\n200 N\n1 blocks\n40 NB\n0 mapping\n1 grids\n1 P\n2 Q\n16.0 threshold\n1 fact\n2 PFACT\n\
                    1 min\n4 NBMIN\n1 panels\n2 NDIV\n1 recursive\n1 RFACT\n1 broadcast\n1 BCAST\n1 depth\n1 DEPTH\n2 swap\n64 swapping\n\
                    0 L1\n0 U\n1 equilibration\n8 alignment\n-\n0 sizes\n1200 N\n0 blocks\n40 NB\n";
