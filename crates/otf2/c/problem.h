/* What goes wrong in the OTF2 library, kept instead of printed. */
#ifndef QUELL_OTF2_PROBLEM_H
#define QUELL_OTF2_PROBLEM_H

/* From now on complaints are kept for quell_otf2_problem(). */
void problem_listen(void);

#endif
