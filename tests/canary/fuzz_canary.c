/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_canary.c - a target with a fault of the kind that its input names; "slow" does not end. */
#include "base/process/canary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char kind[16] = "";
	volatile bool on = true;

	if (size < sizeof(kind))
		memcpy(kind, data, size);
	while (strcmp(kind, "slow") == 0 && on)
		continue;
	(void)canary_fault(kind);
	return 0;
}
