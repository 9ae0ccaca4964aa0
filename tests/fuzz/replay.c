/* replay.c - runs a fuzz target over files, for compilers without libFuzzer and for regression:
 *   replay file ... */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define INPUT_MAX ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data;
	size_t n;

	if (!f) {
		perror(path);
		return -1;
	}
	data = malloc(INPUT_MAX);
	if (!data) {
		(void)fclose(f); /* nothing was written */
		return -1;
	}
	n = fread(data, 1, INPUT_MAX, f);
	(void)fclose(f); /* nothing was written */
	(void)LLVMFuzzerTestOneInput(data, n);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	int failed = 0;

	for (int i = 1; i < argc; i++)
		failed |= run(argv[i]) != 0;
	(void)printf("%d inputs\n", argc - 1);
	return failed;
}
