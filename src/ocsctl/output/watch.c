/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsctl/output/watch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/what_if.h"
#include "src/util/error.h"
#include "src/util/text.h"

/* The alternate screen without a cursor, and back. */
#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[0m\033[?1049l"

struct watch {
	long seconds;
	bool screen; /* pictures for people */
	bool terminal;
	char *picture; /* the last one, or NULL */
	char *fault;   /* why there is no newer one, or NULL */
	char seen[16]; /* when it was drawn */
};

static void terminal_say(const char *text)
{
	/* A terminal that is gone needs no tidying up. */
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		return;
}

static void signal_end(int number)
{
	terminal_say(LEAVE);
	if (number == SIGINT)
		_exit(0);
	signal(number, SIG_DFL);
	raise(number);
}

/* Ctrl-Z: the shell gets its screen back meanwhile. */
static void pause_here(int number)
{
	int old = errno;

	(void)number;
	terminal_say(LEAVE);
	raise(SIGSTOP);
	terminal_say(ENTER);
	/* Where this came between a picture and the rest after it, nothing else would draw. */
	raise(SIGWINCH);
	errno = old;
}

static void signals_set(void)
{
	struct sigaction action = { .sa_handler = signal_end };
	sigset_t resized;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	sigaction(SIGQUIT, &action, NULL);
	action.sa_handler = pause_here;
	action.sa_flags = SA_RESTART;
	sigaction(SIGTSTP, &action, NULL);
	/* waited for, so that it cannot disturb a call to ocsd */
	sigemptyset(&resized);
	sigaddset(&resized, SIGWINCH);
	sigprocmask(SIG_BLOCK, &resized, NULL);
}

/* Until it is time for the next picture, or the screen has another size. */
static void watch_rest(const struct watch *w)
{
	struct timespec left = { .tv_sec = w->seconds };
	sigset_t resized;

	if (!w->terminal) {
		sleep((unsigned int)w->seconds);
		return;
	}
	sigemptyset(&resized);
	sigaddset(&resized, SIGWINCH);
	sigtimedwait(&resized, NULL, &left);
}

static int terminal_rows(void)
{
	struct winsize size;

	return !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row >= 4 ? size.ws_row : 24;
}

/* The line that begins at LINE, as far as the right edge; colours take no room. */
static void line_add(struct ocs_text *t, const char *line)
{
	int room = ocs_ctl_columns() - 1;
	const char *p = line;

	while (*p && *p != '\n') {
		if (*p == '\033') {
			p += strcspn(p, "m\n");
			p += *p == 'm';
			continue;
		}
		if (!room--)
			break;
		for (p++; ((unsigned char)*p & 0xc0) == 0x80; p++)
			; /* the rest of a UTF-8 character */
	}
	ocs_text_add(t, "%.*s%s\033[K", (int)(p - line), line,
		     memchr(line, '\033', (size_t)(p - line)) ? "\033[0m" : "");
}

/* Over the old picture, line by line: an emptied screen would flicker. */
static void screen_draw(const struct watch *w)
{
	const char *line = w->picture ? w->picture : "";
	const char *on = !ocs_ctl_colour() ? "" : w->fault ? "\033[1;31m" : "\033[2m";
	struct ocs_text t = { 0 };
	int room = terminal_rows() - 1, more = 0;
	char *head;

	head = w->fault ? ocs_asprintf("%s%s%s%s", on, w->seen, *w->seen ? ": " : "", w->fault) :
			  ocs_asprintf("%s%s, every %ld s; Ctrl-C ends", on, w->seen, w->seconds);
	ocs_text_add(&t, "\033[H");
	line_add(&t, head);
	ocs_text_add(&t, "\n");
	for (const char *p = line; *p; p += strcspn(p, "\n"), p += *p == '\n')
		more++;
	more = more > room ? more - room + 1 : 0;
	room -= more ? 1 : 0;
	for (; *line && room; room--) {
		line_add(&t, line);
		line += strcspn(line, "\n");
		line += *line == '\n';
		if (room > 1 || more)
			ocs_text_add(&t, "\n");
	}
	free(head);
	head = more ? ocs_asprintf("... %d more lines; the screen is too low", more) : NULL;
	if (more)
		line_add(&t, head);
	ocs_text_add(&t, "\033[J");
	fwrite(t.data, 1, t.length, stdout);
	ocs_text_free(&t);
	free(head);
}

/* Returns -1 with ERR if there is nothing to wait for. */
static int picture_take(struct watch *w, ocs_ctl_draw *draw, void *arg, struct ocs_error *err)
{
	time_t now = time(NULL);
	size_t length = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &length);
	int rc;

	if (!out)
		return ocs_error_set(err, OCS_ERROR, "there is no memory for the picture");
	rc = draw(arg, out, err);
	fclose(out);
	free(w->fault);
	w->fault = NULL;
	if (rc) {
		free(text);
		/* A daemon that restarts is no reason to stop. */
		if (err->code != OCS_UNREACHABLE)
			return -1;
		w->fault = ocs_strdup(err->text);
		return 0;
	}
	free(w->picture);
	w->picture = text;
	strftime(w->seen, sizeof(w->seen), "%H:%M:%S", localtime(&now));
	return 0;
}

int ocs_ctl_watch(ocs_ctl_draw *draw, void *arg, long seconds, bool screen, struct ocs_error *err)
{
	struct watch w = { .seconds = seconds,
			   .screen = screen,
			   .terminal = screen && isatty(STDOUT_FILENO) };
	bool entered = false;
	int rc;

	for (;;) {
		rc = picture_take(&w, draw, arg, err);
		if (rc)
			break;
		if (w.terminal && !entered) {
			signals_set();
			terminal_say(ENTER);
			entered = true;
		}
		if (w.terminal)
			screen_draw(&w);
		else if (w.fault)
			fprintf(stderr, "ocsctl: %s\n", w.fault);
		else
			printf("%s%s", w.picture, w.screen ? "\n" : "");
		if (fflush(stdout))
			break;
		watch_rest(&w);
	}
	if (entered)
		terminal_say(LEAVE);
	free(w.picture);
	free(w.fault);
	return rc;
}
