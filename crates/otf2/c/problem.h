/* Error messages of the OTF2 library, kept instead of printed. */
#ifndef QUELL_OTF2_PROBLEM_H
#define QUELL_OTF2_PROBLEM_H

/* Keeps messages for quell_otf2_problem() from now on. */
void problem_listen(void);

#endif
