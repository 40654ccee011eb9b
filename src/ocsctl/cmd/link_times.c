/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsctl/cmd/link_times.h"

#include <json-c/json.h>
#include <math.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/ocsctl/output/table.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define LINK_MS 20000
#define PAUSE_US 100
#define MILLION 1e6
#define KEY_MAX 128

int ocs_ctl_job_key(const char *file, long *job, int64_t *epoch, char **key)
{
	const char *dir = getenv("SLURM_OCS_DIR"), *number = getenv("SLURM_JOB_ID");
	char *path, *text;

	*key = NULL;
	if (!dir || !number || ocs_number_parse(number, 1, UINT32_MAX, job))
		return -1;
	path = ocs_asprintf("%s/%s", dir, file);
	*key = ocs_file_read(path, KEY_MAX, NULL, NULL);
	free(path);
	path = ocs_asprintf("%s/epoch", dir);
	text = ocs_file_read(path, KEY_MAX, NULL, NULL);
	free(path);
	if (*key)
		(*key)[strcspn(*key, "\n")] = '\0';
	*epoch = text ? strtoll(text, NULL, 10) : 0;
	free(text);
	return *key && *epoch ? 0 : -1;
}

static bool device_runs(const char *device)
{
	struct ifreq request = { 0 };
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool runs;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device);
	runs = sock >= 0 && ioctl(sock, SIOCGIFFLAGS, &request) == 0 &&
	       (request.ifr_flags & IFF_RUNNING);
	if (sock >= 0)
		close(sock);
	return runs;
}

void ocs_ctl_links_time(struct ocs_ctl_times *times, const char *const *devices, int count)
{
	int64_t begin = ocs_now_ns();

	for (int i = 0; i < count; i++)
		while (devices[i] && !device_runs(devices[i])) {
			if ((double)(ocs_now_ns() - begin) / MILLION > LINK_MS) {
				times->late = devices[i];
				break;
			}
			usleep(PAUSE_US);
		}
	times->link[times->nlinks++] = (double)(ocs_now_ns() - begin) / MILLION;
}

static int number_compare(const void *left, const void *right)
{
	const double *one = left, *other = right;

	return (*one > *other) - (*one < *other);
}

static double times_median(double *list, int count)
{
	qsort(list, (size_t)count, sizeof(*list), number_compare);
	return count ? list[count / 2] : 0;
}

double ocs_ctl_times_whole(struct ocs_ctl_times *times)
{
	return times_median(times->change, times->nchanges) +
	       times_median(times->link, times->nlinks);
}

static void cell_add(struct ocs_text_table *table, bool known, double ms)
{
	char text[32];

	snprintf(text, sizeof(text), known ? "%.2f" : "-", ms);
	ocs_text_table_add(table, text);
}

void ocs_ctl_times_row(struct ocs_ctl_times *times, struct ocs_text_table *table)
{
	double change = times_median(times->change, times->nchanges);
	double link = times_median(times->link, times->nlinks);
	int changes = times->nchanges, links = times->nlinks;
	char text[64];

	cell_add(table, changes, change);
	cell_add(table, changes, changes ? times->change[changes - 1] : 0);
	cell_add(table, links, link);
	cell_add(table, links, links ? times->link[links - 1] : 0);
	snprintf(text, sizeof(text), "%.20s has no carrier", times->late ? times->late : "");
	ocs_text_table_add(table, times->late ? text : NULL);
}

struct json_object *ocs_ctl_times_number(double ms)
{
	return json_object_new_double(round(ms * 1000) / 1000);
}

static void range_add(struct json_object *row, const char *name, const char *longest, double *list,
		      int count)
{
	if (!count)
		return;
	json_object_object_add(row, name, ocs_ctl_times_number(times_median(list, count)));
	json_object_object_add(row, longest, ocs_ctl_times_number(list[count - 1]));
}

void ocs_ctl_times_json(struct ocs_ctl_times *times, struct json_object *row)
{
	range_add(row, "change_ms", "change_max_ms", times->change, times->nchanges);
	range_add(row, "link_ms", "link_max_ms", times->link, times->nlinks);
	if (times->late)
		json_object_object_add(row, "no_carrier", json_object_new_string(times->late));
}

int ocs_ctl_times_late(const struct ocs_ctl_times *times, const char *command,
		       struct ocs_error *err)
{
	return ocs_error_set(err, OCS_ERROR, "%s: %s has had no carrier for %d s", command,
			     times->late, LINK_MS / 1000);
}
