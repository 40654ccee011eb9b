/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ocs_config.h"
#include "src/node/node.h"
#include "src/util/error.h"
#include "src/util/options.h"
#include "src/util/text.h"

#define SAID_MAX 65536

static const char usage[] =
	"Usage: ocs-node prepare --fabric FILE --dir DIR --job ID --epoch E --node NAME\n"
	"                        [--nodes HOSTLIST] [--section NAME] [--shape SHAPE]\n"
	"                        [--conn CONN] [--phases MODE] [--moe OPTIONS] [--placement COMPACT]\n"
	"                        [--reply FILE] [--uid UID] [--gid GID]\n"
	"       ocs-node links --fabric FILE --dir DIR --node NAME [--timeout SECONDS]\n"
	"                        [--nodes HOSTLIST --shape SHAPE [--phases MODE]]\n"
	"       ocs-node remove --dir DIR\n"
	"       ocs-node forward --fabric FILE --dir DIR --job ID --epoch E --node NAME\n"
	"                        [--ocsd ADDRESS] [--key FILE] [--ocsd-user USER]\n"
	"                        [--timeout SECONDS]\n"
	"       ocs-node unforward --dir DIR --job ID --epoch E\n"
	"       ocs-node sweep --fabric FILE --dir BASE --node NAME [--ocsd ADDRESS]\n"
	"                        [--key FILE] [--ocsd-user USER]\n"
	"       ocs-node present --fabric FILE --node NAME [--ocsd ADDRESS] [--key FILE]\n"
	"                        [--ocsd-user USER] [--timeout SECONDS]\n"
	"\n"
	"Writes or removes the directory of files that a job with circuits finds on this\n"
	"node, and has this node forward for the job's others where ocs.yaml says so; tells\n"
	"ocsd that the node is there.  Run by the prolog and the epilog, and when slurmd\n"
	"starts; see ocs-node(8).\n"
	"\n"
	"  --fabric FILE        ocs.yaml\n"
	"  --dir DIR            the job's directory, SLURM_OCS_DIR; sweep: the folder of all\n"
	"                       jobs' directories\n"
	"  --job ID             number of the job\n"
	"  --epoch E            epoch of its allocation\n"
	"  --node NAME          this node\n"
	"  --nodes HOSTLIST     all nodes of the job, servers in rank order\n"
	"  --section NAME       section of ocs.yaml that serves the job\n"
	"  --shape SHAPE        shape, such as 4x8x2\n"
	"  --conn CONN          torus, mesh, or one per dimension\n"
	"  --moe OPTIONS        how circuits follow the job's experts\n"
	"  --phases MODE        provisioned or on-demand: how circuits follow the job's phases\n"
	"  --placement COMPACT  placement as the job carries it (jobs on cubes)\n"
	"  --reply FILE         the reply of ocsd to apply (jobs on direct fabrics)\n"
	"  --uid UID --gid GID  of the job: warn if it could not read its files\n"
	"  --ocsd ADDRESS       unix:/path or host:port; default: as ocs.yaml says\n"
	"  --key FILE           key of remote clients instead of MUNGE; default: the same\n"
	"  --ocsd-user USER     account of ocsd, a name or a uid; default: the same\n"
	"  --timeout SECONDS    for circuits and the other hosts, or for links, default 60;\n"
	"                       present: to reach ocsd\n"
	"  -h, --help           this text\n"
	"  -V, --version        the version\n";

static int error_print(const struct ocs_error *err)
{
	fprintf(stderr, "ocs-node: %s\n", err->text);
	return err->code ? err->code : OCS_ERROR;
}

static int usage_error(const char *what)
{
	fprintf(stderr, "ocs-node: %s; see ocs-node --help\n", what);
	return OCS_USAGE;
}

/* A whole number of any width up to 63 bits. */
static int number_parse(const char *text, long max, long *value, const char *option)
{
	if (ocs_number_parse(text, 0, max, value) == 0)
		return 0;
	fprintf(stderr, "ocs-node: %s: '%.40s' is not a whole number from 0 to %ld\n", option, text,
		max);
	return -1;
}

enum {
	FABRIC = 256,
	DIRECTORY,
	JOB,
	EPOCH,
	NODE,
	NODES,
	SECTION,
	SHAPE,
	CONN,
	PHASES,
	MOE,
	PLACEMENT,
	REPLY,
	UID,
	GID,
	OCSD,
	KEY,
	OCSD_USER,
	TIMEOUT
};

static const struct option options[] = {
	{ "fabric", required_argument, NULL, FABRIC },
	{ "dir", required_argument, NULL, DIRECTORY },
	{ "job", required_argument, NULL, JOB },
	{ "epoch", required_argument, NULL, EPOCH },
	{ "node", required_argument, NULL, NODE },
	{ "nodes", required_argument, NULL, NODES },
	{ "section", required_argument, NULL, SECTION },
	{ "shape", required_argument, NULL, SHAPE },
	{ "conn", required_argument, NULL, CONN },
	{ "phases", required_argument, NULL, PHASES },
	{ "moe", required_argument, NULL, MOE },
	{ "placement", required_argument, NULL, PLACEMENT },
	{ "reply", required_argument, NULL, REPLY },
	{ "uid", required_argument, NULL, UID },
	{ "gid", required_argument, NULL, GID },
	{ "ocsd", required_argument, NULL, OCSD },
	{ "key", required_argument, NULL, KEY },
	{ "ocsd-user", required_argument, NULL, OCSD_USER },
	{ "timeout", required_argument, NULL, TIMEOUT },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

/* Where the text of OPTION goes, or NULL: it is a number. */
static const char **text_of(int option, struct ocs_node_request *request)
{
	switch (option) {
	case FABRIC:
		return &request->fabric;
	case DIRECTORY:
		return &request->dir;
	case NODE:
		return &request->node;
	case NODES:
		return &request->nodes;
	case SECTION:
		return &request->section;
	case SHAPE:
		return &request->shape;
	case CONN:
		return &request->conn;
	case PHASES:
		return &request->phases;
	case MOE:
		return &request->moe;
	case PLACEMENT:
		return &request->placement;
	case REPLY:
		return &request->reply;
	case OCSD:
		return &request->ocsd;
	case KEY:
		return &request->key;
	case OCSD_USER:
		return &request->user;
	default:
		return NULL;
	}
}

/* One option.  0, or -1 after a message. */
static int option_take(int option, char *value, struct ocs_node_request *request, long *timeout)
{
	const char **text = text_of(option, request);
	long n = 0;

	if (text) {
		*text = value;
		return 0;
	}
	switch (option) {
	case JOB:
		if (number_parse(value, UINT_MAX, &n, "--job") < 0)
			return -1;
		request->job = (unsigned long)n;
		return 0;
	case EPOCH:
		if (number_parse(value, LONG_MAX, &n, "--epoch") < 0)
			return -1;
		request->epoch = (uint64_t)n;
		return 0;
	case TIMEOUT:
		return number_parse(value, 86400, timeout, "--timeout");
	case UID:
		if (number_parse(value, UINT_MAX - 1, &n, "--uid") < 0)
			return -1;
		request->uid = (uid_t)n;
		request->has_uid = true;
		return 0;
	case GID:
		if (number_parse(value, UINT_MAX - 1, &n, "--gid") < 0)
			return -1;
		request->gid = (gid_t)n;
		request->has_gid = true;
		return 0;
	default:
		return -1;
	}
}

/* The file of what was said last, in the folder that the jobs' directories lie in: what a
 * machine lacks, it lacks for every job.  The caller frees it. */
static char *said_path(const char *folder, size_t length)
{
	return ocs_asprintf("%.*s/.warned", (int)length, folder);
}

/* Lines of WARNINGS (may be NULL) that were not said for the job before; all of them are in
 * the job's directory. */
static void warnings_say(const struct ocs_node_request *request, const char *warnings)
{
	const char *slash = strrchr(request->dir, '/');
	char *path = said_path(request->dir, (size_t)(slash - request->dir));
	char *before = ocs_file_read(path, SAID_MAX, NULL, NULL);
	bool news = false;

	for (const char *line = warnings; line && *line; line += strcspn(line, "\n") + 1) {
		char *whole = ocs_asprintf("%.*s\n", (int)strcspn(line, "\n"), line);
		bool note = strncmp(line, OCS_NODE_NOTE ": ", sizeof(OCS_NODE_NOTE) + 1) == 0;

		if (note) {
			free(whole);
			continue;
		}
		if (!before || !strstr(before, whole)) {
			fprintf(stderr, "ocs-node: job %lu: %s", request->job, whole);
			news = true;
		}
		free(whole);
	}
	if (news)
		ocs_file_write(path, warnings, strlen(warnings), 0600, NULL);
	free(before);
	free(path);
}

static int job_prepare(const struct ocs_node_request *request)
{
	struct ocs_node_contents contents;
	struct ocs_error err = { 0 };
	int rc;

	if (!request->fabric || !request->dir || !request->job || !request->epoch || !request->node)
		return usage_error("prepare needs --fabric, --dir, --job, --epoch and --node");
	rc = ocs_node_contents(request, &contents, &err);
	if (rc == 0)
		rc = ocs_node_directory_write(request->dir, request->epoch, &contents, &err);
	if (rc == 0)
		rc = ocs_node_subnets_apply(&contents, &err);
	if (rc == 0)
		warnings_say(request, contents.text[OCS_NODE_WARNINGS]);
	if (rc == 0 && request->has_uid && request->has_gid &&
	    !ocs_node_readable(request->dir, ocs_node_names[OCS_NODE_ENV], request->uid,
			       request->gid))
		fprintf(stderr,
			"ocs-node: job %lu: user %u cannot read %s; check the modes of the "
			"folders above it\n",
			request->job, (unsigned)request->uid, request->dir);
	ocs_node_contents_free(&contents);
	return rc < 0 ? error_print(&err) : OCS_OK;
}

static int links_wait(const struct ocs_node_request *request, long timeout)
{
	struct ocs_error err = { 0 };

	if (!request->fabric || !request->dir || !request->node)
		return usage_error("links needs --fabric, --dir and --node");
	return ocs_node_links(request, (int)timeout, &err) < 0 ? error_print(&err) : OCS_OK;
}

static int job_forward(const struct ocs_node_request *request, long timeout)
{
	if (!request->fabric || !request->dir || !request->job || !request->epoch || !request->node)
		return usage_error("forward needs --fabric, --dir, --job, --epoch and --node");
	return ocs_node_forward(request, (int)timeout);
}

static int job_unforward(const struct ocs_node_request *request)
{
	struct ocs_error err = { 0 };

	if (!request->dir || !request->job || !request->epoch)
		return usage_error("unforward needs --dir, --job and --epoch");
	return ocs_node_unforward(request, &err) < 0 ? error_print(&err) : OCS_OK;
}

static int jobs_sweep(const struct ocs_node_request *request)
{
	char *path;

	if (!request->fabric || !request->dir || !request->node)
		return usage_error("sweep needs --fabric, --dir and --node");
	/* slurmd starts: what is missing is said anew. */
	path = said_path(request->dir, strlen(request->dir));
	unlink(path);
	free(path);
	return ocs_node_sweep(request);
}

static int node_present(const struct ocs_node_request *request, long timeout)
{
	if (!request->fabric || !request->node)
		return usage_error("present needs --fabric and --node");
	return ocs_node_present(request, (int)timeout);
}

static int job_discard(const struct ocs_node_request *request)
{
	struct ocs_error err = { 0 };

	if (!request->dir)
		return usage_error("remove needs --dir");
	ocs_node_subnets_remove(request->dir);
	return ocs_node_directory_remove(request->dir, &err) < 0 ? error_print(&err) : OCS_OK;
}

int main(int argc, char **argv)
{
	static const struct ocs_options line = { "ocs-node", "", options, usage };
	struct ocs_node_request request = { 0 };
	struct ocs_error err;
	long timeout = 60;
	int option;

	umask(022);
	while ((option = ocs_options_next(&line, argc, argv, &err)) > 0)
		if (option_take(option, optarg, &request, &timeout) < 0)
			return OCS_USAGE;
	if (option)
		return option == OCS_OPTIONS_SAID ? OCS_OK : error_print(&err);
	if (optind != argc - 1)
		return usage_error(
			"say prepare, links, remove, forward, unforward, sweep or present, once");
	if (request.dir && request.dir[0] != '/')
		return usage_error("--dir must start with /");
	if (strcmp(argv[optind], "prepare") == 0)
		return job_prepare(&request);
	if (strcmp(argv[optind], "links") == 0)
		return links_wait(&request, timeout);
	if (strcmp(argv[optind], "forward") == 0)
		return job_forward(&request, timeout);
	if (strcmp(argv[optind], "unforward") == 0)
		return job_unforward(&request);
	if (strcmp(argv[optind], "sweep") == 0)
		return jobs_sweep(&request);
	if (strcmp(argv[optind], "present") == 0)
		return node_present(&request, timeout);
	if (strcmp(argv[optind], "remove") != 0)
		return usage_error(
			"say prepare, links, remove, forward, unforward, sweep or present");
	return job_discard(&request);
}
