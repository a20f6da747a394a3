/* The recorder of a host on which `quell trace` itself does not run: the ranks there start one, and share it. */
#ifndef QUELL_TRACE_NODE_H
#define QUELL_TRACE_NODE_H

/* For a process that found no metric container (quell_metrics_open returned an error). If QUELL_TRACE_NODE names a quell program,
 * the first process on this host starts it as `quell trace-node $QUELL_TRACE`, and all wait, at most 10 s, until it serves the
 * container under the name in QUELL_METRICS. Then, or immediately if the variable is not set, this returns, and the caller opens the
 * container again. Prints nothing; a recorder that fails to start leaves its reason in the folder. Linux, 64 bits. */
void quell_trace_node(void);

#endif
