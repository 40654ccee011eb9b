/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "ocs_config.h"

#include "src/ocsd/metrics/http.h"
#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/metrics/exporter.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/protocol/pending_reply.h"
#include "src/ocsd/state/ocsd.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/net.h"
#include "src/util/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const double bounds[OCSD_NBOUNDS] = OCSD_BOUNDS;

/* ---- the text ---- */

static void metric_head(struct ocs_text *text, const char *name, const char *type, const char *help)
{
	ocs_text_add(text, "# HELP ocsd_%s %s\n# TYPE ocsd_%s %s\n", name, help, name, type);
}

static void metric_number(struct ocs_text *text, const char *name, const char *type,
			  const char *help, uint64_t value)
{
	metric_head(text, name, type, help);
	ocs_text_add(text, "ocsd_%s %llu\n", name, (unsigned long long)value);
}

/* A value of a label: names come from ocs.yaml. */
static void add_label(struct ocs_text *text, const char *value)
{
	for (; *value; value++) {
		if (*value == '\n')
			ocs_text_add(text, "\\n");
		else
			ocs_text_add(text, "%s%c", strchr("\"\\", *value) ? "\\" : "", *value);
	}
}

/* The labels of a series: of SECTION (NULL: of all), and LABEL, which is whole, or NULL. */
static void add_labels(struct ocs_text *text, const char *section, const char *label)
{
	if (!section && !label)
		return;
	ocs_text_add(text, "{");
	if (section) {
		ocs_text_add(text, "section=\"");
		add_label(text, section);
		ocs_text_add(text, "\"%s", label ? "," : "");
	}
	ocs_text_add(text, "%s}", label ? label : "");
}

static void add_series(struct ocs_text *text, const char *name, const char *section,
		       const struct ocsd_histogram *histogram)
{
	char le[32];

	for (size_t i = 0; i <= COUNT(bounds); i++) {
		bool all = i == COUNT(bounds);

		if (all)
			strcpy(le, "le=\"+Inf\"");
		else
			snprintf(le, sizeof(le), "le=\"%g\"", bounds[i]);
		ocs_text_add(text, "ocsd_%s_bucket", name);
		add_labels(text, section, le);
		ocs_text_add(text, " %llu\n",
			     (unsigned long long)(all ? histogram->count : histogram->within[i]));
	}
	ocs_text_add(text, "ocsd_%s_sum", name);
	add_labels(text, section, NULL);
	ocs_text_add(text, " %.6f\nocsd_%s_count", histogram->sum, name);
	add_labels(text, section, NULL);
	ocs_text_add(text, " %llu\n", (unsigned long long)histogram->count);
}

static void add_histogram(struct ocs_text *text, const char *name, const char *help,
			  const struct ocsd_histogram *histogram)
{
	metric_head(text, name, "histogram", help);
	add_series(text, name, NULL, histogram);
}

/* A counter of each section with regions: the number at OFFSET of its counts. */
static void add_regions_counter(struct ocs_text *text, const struct ocsd_counters *m,
				const char *name, const char *label, size_t offset)
{
	for (size_t i = 0; i < m->nregions; i++) {
		const char *counts = (const char *)&m->regions[i];
		uint64_t value;

		memcpy(&value, counts + offset, sizeof(value));
		ocs_text_add(text, "ocsd_%s", name);
		add_labels(text, m->regions[i].section, label);
		ocs_text_add(text, " %llu\n", (unsigned long long)value);
	}
}

#define REGION(field) offsetof(struct ocsd_region_count, field)

static void add_regions(struct ocs_text *text, const struct ocsd_counters *m)
{
	metric_head(text, "region_changes_total", "counter",
		    "Changes of one group of a running job with experts.");
	add_regions_counter(text, m, "region_changes_total", NULL, REGION(changes));
	metric_head(text, "region_circuits_total", "counter",
		    "Circuits that these changes cut, made, and kept.");
	add_regions_counter(text, m, "region_circuits_total", "what=\"cut\"", REGION(cut));
	add_regions_counter(text, m, "region_circuits_total", "what=\"made\"", REGION(made));
	add_regions_counter(text, m, "region_circuits_total", "what=\"kept\"", REGION(kept));
	metric_head(text, "region_failures_total", "counter",
		    "Such changes that did not come whole.");
	add_regions_counter(text, m, "region_failures_total", NULL, REGION(failed));
	metric_head(text, "region_refusals_total", "counter",
		    "Requests of controllers of these jobs that were refused.");
	add_regions_counter(text, m, "region_refusals_total", NULL, REGION(refused));
	metric_head(text, "region_change_seconds", "histogram",
		    "One such change, asked for to verified.");
	for (size_t i = 0; i < m->nregions; i++)
		add_series(text, "region_change_seconds", m->regions[i].section,
			   &m->regions[i].verified);
}

static void add_switches(struct ocs_text *text, const struct ocsd *d)
{
	metric_head(text, "switch_up", "gauge",
		    "1 if the switch answers and its table was verified.");
	for (int i = 0; i < d->fabric->nswitches; i++) {
		ocs_text_add(text, "ocsd_switch_up{switch=\"");
		add_label(text, d->switches[i].description->name);
		ocs_text_add(text, "\"} %d\n", d->switches[i].status.state == OCSD_UP);
	}
	metric_head(text, "switch_patches", "gauge", "Patches of the last full read-back.");
	for (int i = 0; i < d->fabric->nswitches; i++) {
		ocs_text_add(text, "ocsd_switch_patches{switch=\"");
		add_label(text, d->switches[i].description->name);
		ocs_text_add(text, "\"} %zu\n", d->switches[i].npatches);
	}
	metric_head(text, "switch_read_timestamp_seconds", "gauge",
		    "When its table was read last.");
	for (int i = 0; i < d->fabric->nswitches; i++) {
		ocs_text_add(text, "ocsd_switch_read_timestamp_seconds{switch=\"");
		add_label(text, d->switches[i].description->name);
		ocs_text_add(text, "\"} %.3f\n", d->switches[i].poll.last_read);
	}
}

/* Jobs and circuits by state, as ocsctl names the states. */
static void add_jobs(struct ocs_text *text, const struct ocsd *d)
{
	static const char *const gauges[] = { "committed", "applying", "realised", "failed",
					      "ended" };
	uint64_t of_job[OCSD_JOB_STATES] = { 0 }, of_circuit[OCSD_GONE + 1] = { 0 };

	for (const struct ocsd_job *job = d->jobs; job; job = job->next) {
		if (job->state == OCSD_JOB_CLOSED)
			continue;
		of_job[job->state]++;
		for (size_t i = 0; i < job->circuits.count; i++)
			of_circuit[job->circuits.list[i]->state]++;
	}
	metric_head(text, "jobs", "gauge", "Allocations that ocsd knows, by state.");
	for (size_t i = 0; i < COUNT(gauges); i++) {
		uint64_t count = 0;

		for (int state = 0; state < OCSD_JOB_STATES; state++)
			if (!strcmp(ocsd_job_state_entry((enum ocsd_job_state)state)->gauge,
				    gauges[i]))
				count += of_job[state];
		ocs_text_add(text, "ocsd_jobs{state=\"%s\"} %llu\n", gauges[i],
			     (unsigned long long)count);
	}
	metric_head(text, "circuits", "gauge", "Circuits of these allocations, by state.");
	for (int state = 0; state < OCSD_GONE; state++)
		ocs_text_add(text, "ocsd_circuits{state=\"%s\"} %llu\n",
			     ocsd_circuit_state_name((enum ocsd_circuit_state)state),
			     (unsigned long long)of_circuit[state]);
}

/* Each port counts once: a patch of somebody else keeps it out whatever else is true. */
static void add_ports(struct ocs_text *text, const struct ocsd *d)
{
	static const char *const reasons[] = { "foreign", "quarantine", "failed", "drained" };
	uint64_t counts[COUNT(reasons)] = { 0 };

	for (int i = 0; i < d->fabric->nswitches; i++) {
		const struct ocsd_switch *sw = &d->switches[i];
		int ports = sw->description->size * (sw->description->bidi ? 2 : 1);

		for (int p = 1; p <= ports; p++) {
			const struct ocsd_port *port = &sw->ports[p];

			if (port->foreign || port->drained)
				counts[port->foreign	? 0 :
				       port->quarantine ? 1 :
				       port->failed	? 2 :
							  3]++;
		}
	}
	metric_head(
		text, "ports_out_of_service", "gauge",
		"Ports that carry a patch of somebody else, are in quarantine, have failed, or are drained.");
	for (size_t i = 0; i < COUNT(reasons); i++)
		ocs_text_add(text, "ocsd_ports_out_of_service{reason=\"%s\"} %llu\n", reasons[i],
			     (unsigned long long)counts[i]);
}

static void add_queues(struct ocs_text *text, const struct ocsd *d)
{
	uint64_t pending = 0, waiters = 0;

	for (const struct ocsd_pending *entry = d->slurmctld.pending; entry; entry = entry->next)
		pending++;
	for (const struct ocsd_pending_reply *reply = d->replies.first; reply; reply = reply->next)
		waiters++;
	metric_number(text, "pending_jobs", "gauge", "Shaped jobs that wait in slurmctld's queue.",
		      pending);
	metric_number(text, "waiting_requests", "gauge", "Requests whose circuits are not done.",
		      waiters);
	metric_number(text, "clients", "gauge", "Open connections.", d->server.nclients);
	metric_number(text, "scheduler_connected", "gauge", "1 if slurmctld is connected.",
		      ocsd_subscribed(d));
}

static void add_history(struct ocs_text *text, const struct ocsd_counters *m)
{
	static const char *const outcomes[OCSD_OUTCOMES] = {
		[OCSD_DONE] = "done",
		[OCSD_REFUSED] = "refused",
		[OCSD_LOST] = "lost",
	};

	metric_head(
		text, "batches_total", "counter",
		"Batches sent to switches: verified, refused by the switch, or without an answer.");
	for (int i = 0; i < OCSD_OUTCOMES; i++)
		ocs_text_add(text, "ocsd_batches_total{outcome=\"%s\"} %llu\n", outcomes[i],
			     (unsigned long long)m->batches[i]);
	metric_number(text, "patches_total", "counter", "Patches made or cut by verified batches.",
		      m->patches);
	metric_number(text, "job_failures_total", "counter",
		      "Jobs whose circuits could not be made.", m->jobs_failed);
	metric_number(text, "switch_failures_total", "counter", "Times a switch failed.",
		      m->switches_failed);
	metric_number(text, "topology_changes_total", "counter",
		      "Changes of one rail of a running job.", m->topologies);
	metric_number(text, "topology_circuits_total", "counter",
		      "Circuits cut or made by these changes.", m->topology_circuits);
	metric_number(text, "topology_failures_total", "counter",
		      "Such changes that did not come whole.", m->topologies_failed);
	metric_number(text, "topology_refusals_total", "counter",
		      "Requests of controllers that were refused.", m->topologies_refused);
	metric_number(text, "topology_provisioned_total", "counter",
		      "Changes that began before they were demanded, as controllers say.",
		      m->topologies_provisioned);
	metric_number(text, "topology_mispredicted_total", "counter",
		      "Those of them that were undone before they were used.",
		      m->topologies_mispredicted);
	metric_number(text, "limited_requests_total", "counter",
		      "Requests turned away because their user asks too much.", m->limited);
	add_histogram(text, "batch_seconds", "One batch, sent to verified by a full read-back.",
		      &m->batch);
	add_histogram(text, "job_seconds",
		      "All circuits of a job, the first node's request to the last one verified.",
		      &m->realised);
}

/* The text format of Prometheus, version 0.0.4; the caller frees it. */
static char *metrics_text(struct ocsd *d)
{
	struct ocs_text text = { 0 };

	metric_head(&text, "build_info", "gauge", "The version of ocsd.");
	ocs_text_add(&text, "ocsd_build_info{version=\"%s\"} 1\n", PACKAGE_VERSION);
	metric_number(&text, "database_usable", "gauge",
		      "0 while ocsd stands by because its database "
		      "cannot be used.",
		      !d->life.standby);
	metric_number(&text, "database_losses_total", "counter",
		      "Times the database could not be used.", d->life.store_losses);
	/* Nothing is known of the rest. */
	if (d->life.standby)
		return ocs_text_take(&text);
	add_switches(&text, d);
	add_jobs(&text, d);
	add_ports(&text, d);
	add_queues(&text, d);
	add_history(&text, &d->counters);
	add_regions(&text, &d->counters);
	return ocs_text_take(&text);
}

int ocsd_metrics_listen(struct ocsd *d, const char *address, struct ocs_error *err)
{
	d->metrics = ocsd_http_open(d, address, "/metrics",
				    "text/plain; version=0.0.4; charset=utf-8", metrics_text, err);
	if (!d->metrics)
		return ocs_error_prefix(err, "ocsd.metrics");
	ocs_log(OCS_LOG_INFO, "metrics on http://%s/metrics", address);
	return 0;
}

void ocsd_metrics_close(struct ocsd *d)
{
	ocsd_http_close(d->metrics);
	d->metrics = NULL;
}
