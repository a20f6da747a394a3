/* Calls everything that the headers offer, so that compilers can warn about it. */
#include "quell_metrics_read.h"

int main(void)
{
	struct quell_metrics metrics;
	struct quell_reading reading;
	unsigned long long ns[QUELL_KINDS];
	int code = quell_metrics_open(&metrics);

	if (!code) {
		const struct quell_slot *slot = quell_metrics_thread(&metrics);

		if (!slot)
			slot = quell_metrics_find(&metrics, 1);
		if (slot)
			code = quell_metrics_read_some(slot, QUELL_ONLY(QUELL_TASK), ns);
		if (slot && !code)
			code = quell_metrics_read(slot, &reading);
		quell_metrics_close(&metrics);
	}
	return quell_metrics_reason(code) == NULL;
}
