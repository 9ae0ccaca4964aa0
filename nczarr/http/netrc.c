/* SPDX-License-Identifier: BSD-3-Clause */
/* netrc.c - the netrc file: "machine HOST login NAME password SECRET", separated by white space.
 * libcurl's own reader is not used: it would send the `default` entry to the target of any
 * redirect. */
#include "nczarr/http/http_int.h"

#include "base/core/str.h"

enum { WORD_MAX = 1024 };

/* netrc_word - the next word, which may be quoted; false: the end, or too long. */
static bool netrc_word(const char **text, char out[WORD_MAX])
{
	const char *p = *text;
	size_t n = 0;
	bool quoted;

	for (;;) {
		p += strspn(p, " \t\r\n");
		if (*p != '#')
			break;
		p += strcspn(p, "\n");
	}
	quoted = *p == '"';
	if (quoted)
		p++;
	while (*p && (quoted ? *p != '"' : !strchr(" \t\r\n", *p))) {
		if (quoted && *p == '\\' && p[1])
			p++;
		if (n + 1 >= WORD_MAX)
			return false;
		out[n++] = *p++;
	}
	if (quoted && *p)
		p++;
	out[n] = '\0';
	*text = p;
	return n > 0 || quoted;
}

char *http_netrc_find(const char *text, const char *host, bool defaults)
{
	char key[WORD_MAX], value[WORD_MAX] = "", name[WORD_MAX] = "", secret[WORD_MAX] = "";
	bool ours = false, found = false;
	const char *end;
	char *ret = NULL;

	while (netrc_word(&text, key)) {
		bool machine = strcasecmp(key, "machine") == 0;

		if (machine || strcasecmp(key, "default") == 0) {
			if (found)
				break;
			ours = machine ? netrc_word(&text, value) &&
						 strcasecmp(value, host) == 0
				       : defaults;
			name[0] = secret[0] = '\0';
		} else if (strcasecmp(key, "macdef") == 0) {
			end = strstr(text, "\n\n"); /* an empty line */
			text = end ? end + 2 : text + strlen(text);
		} else if (netrc_word(&text, value) && ours) {
			if (strcasecmp(key, "login") == 0)
				memcpy(name, value, sizeof(name));
			else if (strcasecmp(key, "password") == 0)
				memcpy(secret, value, sizeof(secret));
			found = true;
		}
	}
	/* the name must not contain the separator ":" */
	if (found && name[0] && !strchr(name, ':'))
		ret = str_printf("%s:%s", name, secret);
	explicit_bzero(secret, sizeof(secret));
	explicit_bzero(value, sizeof(value));
	return ret;
}
