/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The addresses of a job's circuits on this host's interfaces. */

#include "src/node/node.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/util/error.h"
#include "src/util/program.h"
#include "src/util/text.h"

#define FILE_MAX (1 << 16)

/* Runs ip with the commands of BATCH.  With FORCE every command is tried and none may
 * fail the whole.  0, or -1 with what ip says in ERR. */
static int ip_run(const struct ocs_text *batch, bool force, struct ocs_error *err)
{
	char *const words[] = { "ip", force ? "-force" : "-batch", force ? "-batch" : "-",
				force ? "-" : NULL, NULL };
	const struct ocs_program ip = { .words = words,
					.path = OCS_PROGRAM_PATH,
					.input = batch->data,
					.length = batch->length };
	char *said;
	int status = ocs_program_run(&ip, &said, NULL), rc = 0;

	said[strcspn(said, "\n")] = '\0';
	if (status < 0 || (status && !force))
		rc = ocs_error_set(err, OCS_ERROR,
				   "the addresses of the circuits cannot be set: ip says: %.300s",
				   *said ? said : "nothing");
	free(said);
	return rc;
}

/* The next line "DEVICE ADDRESS/31" at *TEXT: 1, 0 at the end, or -1 if it is none that
 * this program wrote.  *TEXT moves on. */
static int line_take(const char **text, char device[IF_NAMESIZE], char address[20])
{
	int length = (int)strcspn(*text, "\n");

	if (!length)
		return 0;
	if (sscanf(*text, "%15[A-Za-z0-9._-] %19[0-9./]", device, address) != 2)
		return -1;
	*text += length + ((*text)[length] == '\n');
	return 1;
}

/* Does TEXT hold the line "DEVICE ADDRESS"? */
static bool address_listed(const char *text, const char *device, const char *address)
{
	char one[IF_NAMESIZE], other[20];

	while (text && line_take(&text, one, other) == 1)
		if (strcmp(one, device) == 0 && strcmp(other, address) == 0)
			return true;
	return false;
}

/* The /31 addresses of this host in the range of CONTENTS, in the form of file
 * `subnets`: they are ours, whatever job has left them. */
static char *present_list(const struct ocs_node_contents *contents)
{
	uint32_t rest = UINT32_MAX >> contents->subnets_prefix;
	struct ocs_text text = { 0 };
	struct ifaddrs *all = NULL;

	if (getifaddrs(&all) < 0)
		all = NULL;
	for (const struct ifaddrs *one = all; one; one = one->ifa_next) {
		const struct sockaddr_in *address = (const void *)one->ifa_addr;
		const struct sockaddr_in *mask = (const void *)one->ifa_netmask;
		uint32_t value;

		if (!address || !mask || address->sin_family != AF_INET ||
		    ntohl(mask->sin_addr.s_addr) != UINT32_MAX << 1)
			continue;
		value = ntohl(address->sin_addr.s_addr);
		if ((value & ~rest) == contents->subnets)
			ocs_text_add(&text, "%s %u.%u.%u.%u/31\n", one->ifa_name, value >> 24,
				     value >> 16 & 0xff, value >> 8 & 0xff, value & 0xff);
	}
	freeifaddrs(all);
	return ocs_text_take(&text);
}

/* An address that stays is not touched: connections over its circuit live on. */
int ocs_node_subnets_apply(const struct ocs_node_contents *contents, struct ocs_error *err)
{
	const char *wanted = contents->text[OCS_NODE_SUBNETS], *line;
	struct ocs_text stale = { 0 }, batch = { 0 };
	char device[IF_NAMESIZE], address[20], *present;
	int rc = 0;

	if (!contents->subnets_prefix)
		return 0;
	present = present_list(contents);
	for (line = present; line_take(&line, device, address) == 1;)
		if (!address_listed(wanted, device, address))
			ocs_text_add(&stale, "address delete %s dev %s\n", address, device);
	for (line = wanted; rc == 0 && line && line_take(&line, device, address) == 1;) {
		if (!if_nametoindex(device))
			rc = ocs_error_set(err, OCS_ERROR,
					   "there is no interface %s, which ocs.yaml "
					   "names",
					   device);
		else if (!address_listed(present, device, address))
			ocs_text_add(&batch, "address add %s dev %s\n", address, device);
	}
	if (rc == 0 && stale.length)
		rc = ip_run(&stale, true, err);
	if (rc == 0 && batch.length)
		rc = ip_run(&batch, false, err);
	ocs_text_free(&stale);
	ocs_text_free(&batch);
	free(present);
	return rc;
}

void ocs_node_subnets_remove(const char *path)
{
	char *file = ocs_asprintf("%s/%s", path, ocs_node_names[OCS_NODE_SUBNETS]);
	char device[IF_NAMESIZE], address[20];
	struct ocs_text batch = { 0 };
	char *text = NULL;
	const char *line;
	struct stat info;

	/* a directory of ours only, as with the files in it */
	if (lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
	    lstat(file, &info) == 0 && S_ISREG(info.st_mode))
		text = ocs_file_read(file, FILE_MAX, NULL, NULL);
	line = text;
	while (line && line_take(&line, device, address) == 1)
		ocs_text_add(&batch, "address delete %s dev %s\n", address, device);
	if (batch.length)
		ip_run(&batch, true, NULL);
	ocs_text_free(&batch);
	free(text);
	free(file);
}
