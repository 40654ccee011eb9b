/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <errno.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ocs_config.h"
#include "src/config/config.h"
#include "src/emulator/emulator.h"
#include "src/emulator/ssh.h"
#include "src/switch/driver.h"
#include "src/util/error.h"
#include "src/util/options.h"

#define MS_MAX 3600000

static const char usage[] =
	"Usage: ocs-emulator [--fabric FILE] [--switch NAME=ADDRESS,SIZE[,PROTOCOL]]... [OPTION]...\n"
	"       ocs-emulator --control ADDRESS COMMAND...\n"
	"       ocs-emulator --check-log FILE\n"
	"\n"
	"Emulates a bank of optical circuit switches.\n"
	"\n"
	"  --fabric FILE           every switch of an ocs.yaml, at its address\n"
	"  --switch NAME=ADDRESS,SIZE[,PROTOCOL[:DIALECT]]\n"
	"                          one switch; ADDRESS is host:port (port 0: any) or\n"
	"                          unix:/path, SIZE the ports on one side; PROTOCOL and\n"
	"                          DIALECT as driver and dialect in ocs.yaml [tl1]\n"
	"  --login FILE            user=... and password=... that --switch switches ask for\n"
	"  --host-key FILE         SSH host key of all switches, made if it is not there\n"
	"  --known-hosts FILE      write the host keys there, as clients want them\n"
	"  --delay MS|published    time that one command takes [published]\n"
	"  --replace               a new patch silently takes a taken port [refused]\n"
	"  --notices MS            period of autonomous messages [none]\n"
	"  --page LINES            lines in a page of an answer, 0: all [200]\n"
	"  --line-limit BYTES      longest command line [4096]\n"
	"  --nil-sid               answers carry ( nil ) instead of the switch's name\n"
	"  --seed N                of the random delays\n"
	"  --log FILE              append one line of JSON for each event\n"
	"  --state DIR             keep the patches over a restart\n"
	"  --data-plane FILE       lines SWITCH PORT INTERFACE [duplex|bidi]: circuits carry\n"
	"                          the frames of these interfaces (root, ip and tc)\n"
	"  --control ADDRESS       listen for control commands\n"
	"  --check-log FILE        judge a log: 1 if a port ever had two peers\n"
	"  -h, --help              this text\n"
	"  -V, --version           the version\n"
	"\n"
	"Control commands: table [SWITCH], status [SWITCH],\n"
	"  fault SWITCH silent|drop|deny|partial|lost|duplicate|late MS|slow MS|refuse|login|none\n"
	"    [count N], port SWITCH PORT refuse|fail|lossy DB|good,\n"
	"  patch SWITCH IN OUT, unpatch SWITCH IN, reboot SWITCH dark|restore [MS],\n"
	"  delay [SWITCH] MS|published, notice SWITCH TEXT, say SWITCH [TEXT], quit\n";

enum {
	OPT_FABRIC = 256,
	OPT_SWITCH,
	OPT_LOGIN,
	OPT_DELAY,
	OPT_REPLACE,
	OPT_NOTICES,
	OPT_PAGE,
	OPT_LINE_LIMIT,
	OPT_NIL_SID,
	OPT_SEED,
	OPT_LOG,
	OPT_STATE,
	OPT_CONTROL,
	OPT_DATA_PLANE,
	OPT_HOST_KEY,
	OPT_KNOWN_HOSTS,
	OPT_CHECK_LOG,
};

static const struct option options[] = {
	{ "fabric", required_argument, NULL, OPT_FABRIC },
	{ "switch", required_argument, NULL, OPT_SWITCH },
	{ "login", required_argument, NULL, OPT_LOGIN },
	{ "host-key", required_argument, NULL, OPT_HOST_KEY },
	{ "known-hosts", required_argument, NULL, OPT_KNOWN_HOSTS },
	{ "delay", required_argument, NULL, OPT_DELAY },
	{ "replace", no_argument, NULL, OPT_REPLACE },
	{ "notices", required_argument, NULL, OPT_NOTICES },
	{ "page", required_argument, NULL, OPT_PAGE },
	{ "line-limit", required_argument, NULL, OPT_LINE_LIMIT },
	{ "nil-sid", no_argument, NULL, OPT_NIL_SID },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "log", required_argument, NULL, OPT_LOG },
	{ "state", required_argument, NULL, OPT_STATE },
	{ "data-plane", required_argument, NULL, OPT_DATA_PLANE },
	{ "control", required_argument, NULL, OPT_CONTROL },
	{ "check-log", required_argument, NULL, OPT_CHECK_LOG },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

struct settings {
	const char *fabric, *login, *host_key, *known_hosts, *log, *control, *check_log,
		*data_plane;
	char **switches;
	size_t nswitches;
};

static int number_parse(const char *option, const char *text, long min, long max, long *value,
			struct ocs_error *err)
{
	if (ocs_number_parse(text, min, max, value))
		return ocs_error_set(err, OCS_USAGE, "--%s: '%s' is no number from %ld to %ld",
				     option, text, min, max);
	return 0;
}

static int parse_delay(struct ocs_emu *emu, const char *text, struct ocs_error *err)
{
	char *end;

	if (!strcmp(text, "published")) {
		emu->delay_ms = OCS_EMU_PUBLISHED;
		return 0;
	}
	emu->delay_ms = strtod(text, &end);
	if (end == text || *end || !(emu->delay_ms >= 0 && emu->delay_ms <= MS_MAX))
		return ocs_error_set(err, OCS_USAGE,
				     "--delay: '%s' is no number of milliseconds (or 'published')",
				     text);
	return 0;
}

static int take_number(struct ocs_emu *emu, int option, struct ocs_error *err)
{
	long value = 0;
	int rc = 0;

	switch (option) {
	case OPT_NOTICES:
		rc = number_parse("notices", optarg, 1, MS_MAX, &value, err);
		emu->notice_ms = (int)value;
		break;
	case OPT_PAGE:
		rc = number_parse("page", optarg, 0, 1000000, &value, err);
		emu->page = (int)value;
		break;
	case OPT_LINE_LIMIT:
		rc = number_parse("line-limit", optarg, 64, 1 << 20, &value, err);
		emu->line_limit = (size_t)value;
		break;
	default:
		rc = number_parse("seed", optarg, 0, 2000000000, &value, err);
		emu->random = (uint64_t)value * 2 + 1;
	}
	return rc;
}

/* Returns 0, -1 with ERR, or 1: done already. */
static int take_option(struct ocs_emu *emu, struct settings *settings, int option,
		       struct ocs_error *err)
{
	switch (option) {
	case OPT_FABRIC:
		settings->fabric = optarg;
		return 0;
	case OPT_SWITCH:
		settings->switches =
			ocs_realloc(settings->switches, (settings->nswitches + 1) * sizeof(char *));
		settings->switches[settings->nswitches++] = optarg;
		return 0;
	case OPT_LOGIN:
		settings->login = optarg;
		return 0;
	case OPT_HOST_KEY:
		settings->host_key = optarg;
		return 0;
	case OPT_KNOWN_HOSTS:
		settings->known_hosts = optarg;
		return 0;
	case OPT_DELAY:
		return parse_delay(emu, optarg, err);
	case OPT_REPLACE:
		emu->replace = true;
		return 0;
	case OPT_NIL_SID:
		emu->nil_sid = true;
		return 0;
	case OPT_LOG:
		settings->log = optarg;
		return 0;
	case OPT_STATE:
		emu->state = ocs_strdup(optarg);
		return 0;
	case OPT_CONTROL:
		settings->control = optarg;
		return 0;
	case OPT_DATA_PLANE:
		settings->data_plane = optarg;
		return 0;
	case OPT_CHECK_LOG:
		settings->check_log = optarg;
		return 0;
	default:
		return take_number(emu, option, err);
	}
}

static int add_checked(struct ocs_emu *emu, const char *name, const char *address, int size,
		       const char *protocol, const char *dialect, const char *login,
		       struct ocs_error *err)
{
	const struct ocs_emu_protocol *known = ocs_emu_protocol_find(protocol);
	struct ocs_credentials credentials = { 0 };
	struct ocs_emu_switch *sw;

	/* The name becomes a SID and a file name. */
	if (!*name || *name == '.' || strpbrk(name, "/:;, \"\\"))
		return ocs_error_set(err, OCS_USAGE, "'%s' cannot be the name of a switch", name);
	if (ocs_emu_find(emu, name))
		return ocs_error_set(err, OCS_USAGE, "switch %s is given twice", name);
	if (!known)
		return ocs_error_set(err, OCS_USAGE,
				     "switch %s: the emulator does not speak %s; it speaks %s",
				     name, protocol, ocs_emu_protocol_names());
	if (login && (known->secure ? ocs_credentials_read_ssh(login, &credentials, err) :
				      ocs_credentials_read(login, &credentials, err)))
		return ocs_error_prefix(err, "switch %s", name);
	if (login && !credentials.password[0])
		return ocs_error_set(err, OCS_USAGE,
				     "switch %s: the emulator knows no keys; %s needs password=...",
				     name, login);
	sw = ocs_emu_add(emu, name, address, size, known, dialect);
	if (dialect && (!known->speaks || !known->speaks(sw))) {
		ocs_credentials_wipe(&credentials);
		return ocs_error_set(err, OCS_USAGE,
				     "switch %s: the emulator's %s has no dialect %s", name,
				     protocol, dialect);
	}
	if (login) {
		sw->user = ocs_strdup(credentials.user);
		sw->password = ocs_strdup(credentials.password);
	}
	ocs_credentials_wipe(&credentials);
	return 0;
}

/* NAME=ADDRESS,SIZE[,PROTOCOL[:DIALECT]]; an address has no comma. */
static int add_argument(struct ocs_emu *emu, const char *argument, const char *login,
			struct ocs_error *err)
{
	char *copy = ocs_strdup(argument), *rest = copy;
	char *name = strsep(&rest, "="), *address = strsep(&rest, ",");
	char *size = strsep(&rest, ","), *protocol = strsep(&rest, ":");
	long ports;
	int rc;

	if (size && ocs_number_parse(size, 1, 4096, &ports) == 0)
		rc = add_checked(emu, name, address, (int)ports, protocol ? protocol : "tl1", rest,
				 login, err);
	else
		rc = ocs_error_set(
			err, OCS_USAGE,
			"--switch: '%s' is not NAME=ADDRESS,SIZE[,PROTOCOL[:DIALECT]] with a size from 1 to 4096",
			argument);
	free(copy);
	return rc;
}

static int add_switches(struct ocs_emu *emu, const struct settings *settings, struct ocs_error *err)
{
	struct ocs_fabric *fabric = NULL;
	int rc = 0;

	if (settings->fabric) {
		fabric = ocs_config_take_fabric(ocs_config_open(settings->fabric, err));
		if (!fabric)
			return -1;
	}
	for (int i = 0; fabric && !rc && i < fabric->nswitches; i++) {
		const struct ocs_switch *sw = &fabric->switches[i];

		rc = add_checked(emu, sw->name, sw->address, sw->size, sw->driver, sw->dialect,
				 sw->credentials, err);
		if (!rc)
			emu->switches[emu->nswitches - 1].moves = sw->moves || sw->replace;
	}
	ocs_fabric_destroy(fabric);
	for (size_t i = 0; !rc && i < settings->nswitches; i++)
		rc = add_argument(emu, settings->switches[i], settings->login, err);
	if (!rc && !emu->nswitches)
		rc = ocs_error_set(
			err, OCS_USAGE,
			"no switch to emulate; give --fabric FILE or --switch NAME=ADDRESS,SIZE");
	return rc;
}

static int open_files(struct ocs_emu *emu, const struct settings *settings, struct ocs_error *err)
{
	if (emu->state && mkdir(emu->state, 0755) != 0 && errno != EEXIST)
		return ocs_error_set(err, OCS_ERROR, "%s: %s", emu->state, strerror(errno));
	if (!settings->log)
		return 0;
	emu->log = open(settings->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (emu->log < 0)
		return ocs_error_set(err, OCS_ERROR, "%s: %s", settings->log, strerror(errno));
	return 0;
}

/* Switches on the bank.  Addresses go to standard output, "ready" last: from then
 * on everything answers. */
static int switches_start(struct ocs_emu *emu, const struct settings *settings,
			  struct ocs_error *err)
{
	if (settings->data_plane && ocs_emu_plane_open(emu, settings->data_plane, err))
		return -1;
	if (ocs_emu_ssh_open(emu, settings->host_key, err))
		return -1;
	for (int i = 0; i < emu->nswitches; i++) {
		struct ocs_emu_switch *sw = &emu->switches[i];
		char *text = ocs_asprintf("%dx%d", sw->size, sw->size);
		int rc = ocs_emu_listen(sw, err);

		if (!rc)
			ocs_emu_log(emu, sw->name, "start", 0, 0, NULL, text);
		free(text);
		if (rc || ocs_emu_load(sw, err))
			return -1;
	}
	if (settings->known_hosts && ocs_emu_ssh_known_hosts(emu, settings->known_hosts, err))
		return -1;
	if (settings->control && ocs_emu_control_listen(emu, settings->control, err))
		return -1;
	for (int i = 0; i < emu->nswitches; i++)
		printf("%s %s\n", emu->switches[i].name, emu->switches[i].address);
	puts("ready");
	fflush(stdout);
	return 0;
}

static void on_signal(evutil_socket_t number_, short what, void *context)
{
	(void)number_;
	(void)what;
	event_base_loopbreak(context);
}

static void on_notice(evutil_socket_t fd, short what, void *context)
{
	struct ocs_emu *emu = context;

	(void)fd;
	(void)what;
	for (int i = 0; i < emu->nswitches; i++)
		ocs_emu_notice(&emu->switches[i], OCS_EMU_EVENT, "SYSTEM:TEMPERATURE=31");
}

static void switches_stop(struct ocs_emu *emu)
{
	for (int i = 0; i < emu->nswitches; i++) {
		struct ocs_emu_switch *sw = &emu->switches[i];

		ocs_emu_unlisten(sw);
		ocs_emu_disconnect(sw);
		if (sw->timer)
			event_free(sw->timer);
		if (sw->boot)
			event_free(sw->boot);
	}
	ocs_emu_ssh_close(emu);
	if (emu->control) {
		evconnlistener_free(emu->control);
		if (!strncmp(emu->control_address, "unix:", 5))
			unlink(emu->control_address + 5);
	}
}

static int emulator_run(struct ocs_emu *emu, const struct settings *settings, struct ocs_error *err)
{
	struct event *term, *interrupt, *notices;
	struct timeval period = { emu->notice_ms / 1000, emu->notice_ms % 1000 * 1000 };
	int rc;

	if (add_switches(emu, settings, err) || open_files(emu, settings, err))
		return -1;
	signal(SIGPIPE, SIG_IGN);
	emu->base = event_base_new();
	term = evsignal_new(emu->base, SIGTERM, on_signal, emu->base);
	interrupt = evsignal_new(emu->base, SIGINT, on_signal, emu->base);
	notices = event_new(emu->base, -1, EV_PERSIST, on_notice, emu);
	evsignal_add(term, NULL);
	evsignal_add(interrupt, NULL);
	if (emu->notice_ms)
		event_add(notices, &period);
	rc = switches_start(emu, settings, err);
	if (!rc)
		event_base_dispatch(emu->base);
	switches_stop(emu);
	ocs_emu_plane_close(emu);
	event_free(term);
	event_free(interrupt);
	event_free(notices);
	event_base_free(emu->base);
	return rc;
}

int main(int argc, char **argv)
{
	struct ocs_emu emu = { .log = -1,
			       .delay_ms = OCS_EMU_PUBLISHED,
			       .page = 200,
			       .line_limit = 4096,
			       .random = 0x9E3779B97F4A7C15ULL };
	/* '+': the words of a control command are not ours. */
	static const struct ocs_options line = { "ocs-emulator", "+", options, usage };
	struct settings settings = { 0 };
	struct ocs_error err = { .code = OCS_ERROR };
	int option = 0, rc = 0;

	while (!rc && (option = ocs_options_next(&line, argc, argv, &err)) > 0)
		rc = take_option(&emu, &settings, option, &err);
	if (option < 0)
		rc = option == OCS_OPTIONS_SAID ? 1 : -1;
	if (rc == 0 && settings.check_log) {
		rc = ocs_emu_check_log(settings.check_log);
	} else if (rc == 0 && optind < argc && settings.control) {
		rc = ocs_emu_control_client(settings.control, argv + optind, argc - optind);
	} else {
		if (rc == 0 && optind < argc)
			rc = ocs_error_set(
				&err, OCS_USAGE,
				"'%s': only a control command may follow, with --control",
				argv[optind]);
		if (rc == 0)
			rc = emulator_run(&emu, &settings, &err);
		if (rc < 0)
			fprintf(stderr, "ocs-emulator: %s\n", err.text);
		rc = rc < 0 ? err.code : 0;
	}
	if (emu.log >= 0)
		close(emu.log);
	ocs_emu_free(&emu);
	free(settings.switches);
	return rc;
}
