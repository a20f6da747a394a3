/* The recorder of a host on which `quell trace` itself does not run: its ranks start one, and share it. */
#ifndef QUELL_TRACE_NODE_H
#define QUELL_TRACE_NODE_H

/* For a process that found no metric container (quell_metrics_open gave an error). If QUELL_TRACE_NODE names a quell program,
 * the first process on this host starts it as `quell trace-node $QUELL_TRACE`, and all wait until it hands out the container
 * under the name in QUELL_METRICS, for 10 s at most. Then, and without the variable at once, it returns: the caller opens the
 * container once more. Says nothing; a recorder that could not begin leaves its reason in the folder. Linux, 64 bits. */
void quell_trace_node(void);

#endif
