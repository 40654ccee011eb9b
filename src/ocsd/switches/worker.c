/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* One thread per switch: the only writer to it.  A worker holds one connection,
 * does one thing at a time, and hands the result to the main thread; in between it
 * listens to what the switch says. */

#include "src/ocsd/ports/signal_loss.h"
#include "src/ocsd/switches/scheduler.h"
#include "src/ocsd/switches/notification.h"
#include "src/ocsd/ports/optical_power.h"
#include "src/ocsd/ports/quarantine.h"
#include "src/ocsd/jobs/circuits.h"
#include "src/ocsd/switches/worker.h"

#include "src/util/net.h"
#include "src/util/text.h"

#include <errno.h>
#include <event2/event.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct result {
	struct result *next;
	int sw;
	int code;		      /* enum ocs_switch_result */
	bool lost;		      /* unknown, at the first try or both, and not for
					 * want of a connection */
	struct ocs_health health;     /* of a read, if the switch could be asked */
	struct ocs_table table;	      /* valid if code is OCS_SWITCH_OK or _DENIED */
	struct ocs_refusal *refusals; /* of OCS_SWITCH_DENIED */
	size_t nrefusals;
	struct ocs_error err;
	bool heard; /* no result of work: what the switch said ... */
	char *text; /* ... or NULL: it closed the connection */
};

struct ocsd_results {
	pthread_mutex_t lock;
	struct result *first, **last;
	int wake;
	struct event *event;
};

struct ocsd_worker {
	pthread_t thread;
	bool started;
	int wake; /* eventfd: there is work, or the end */
	pthread_mutex_t lock;
	const struct ocs_switch *description;
	struct ocsd_results *results;
	int index;
	int timeout_ms;
	/* under lock */
	bool stop;
	enum ocsd_work work;
	struct ocs_patch *remove, *add;
	size_t nremove, nadd;
	bool quick; /* without a read before, if the table is known */
	struct ocsd_test test;
	/* the thread's own */
	struct ocs_switch_connection *connection;
};

static void result_post(struct ocsd_results *results, struct result *result)
{
	uint64_t one = 1;
	bool first;

	pthread_mutex_lock(&results->lock);
	first = !results->first;
	*results->last = result;
	results->last = &result->next;
	pthread_mutex_unlock(&results->lock);
	/* Whoever put the first one there has woken the main thread, which takes all. */
	if (first && write(results->wake, &one, sizeof(one)) != sizeof(one))
		ocs_log(OCS_LOG_ERROR, "waking the main thread failed: %s", strerror(errno));
}

static void post_heard(const struct ocsd_worker *worker, const char *text)
{
	struct result *result = ocs_calloc(1, sizeof(*result));

	result->sw = worker->index;
	result->heard = true;
	result->text = text ? ocs_strdup(text) : NULL;
	result_post(worker->results, result);
}

static void on_notice(void *context, const char *text)
{
	post_heard(context, text);
}

static bool worker_stopping(struct ocsd_worker *worker)
{
	bool stop;

	pthread_mutex_lock(&worker->lock);
	stop = worker->stop;
	pthread_mutex_unlock(&worker->lock);
	return stop;
}

static int work_attempt(struct ocsd_worker *worker, enum ocsd_work work, bool quick,
			struct result *result)
{
	if (!worker->connection) {
		worker->connection = ocs_switch_open(worker->description, worker->timeout_ms,
						     on_notice, worker, &result->err);
		if (!worker->connection)
			return OCS_SWITCH_UNKNOWN;
	}
	if (work == OCSD_READ)
		return ocs_switch_read(worker->connection, &result->table, &result->err);
	return (quick ? ocs_switch_change :
			ocs_switch_apply)(worker->connection, worker->remove, worker->nremove,
					  worker->add, worker->nadd, &result->table, &result->err);
}

static void keep_refusals(struct ocsd_worker *worker, struct result *result)
{
	size_t count;
	const struct ocs_refusal *refusals = ocs_switch_refusals(worker->connection, &count);

	result->refusals = ocs_calloc(count + 1, sizeof(*refusals));
	memcpy(result->refusals, refusals, count * sizeof(*refusals));
	result->nrefusals = count;
}

/* What is not known after a lost connection is found out on a new one: apply
 * reads first, so a second attempt does only what is still missing. */
static void work_perform(struct ocsd_worker *worker, enum ocsd_work work, struct result *result)
{
	for (int try = 0; try < 2; try++) {
		memset(&result->table, 0, sizeof(result->table));
		result->code = work_attempt(worker, work, worker->quick && !try, result);
		if (result->code == OCS_SWITCH_OK)
			return;
		result->lost |= result->code == OCS_SWITCH_UNKNOWN && worker->connection;
		if (result->code == OCS_SWITCH_DENIED && (try || worker_stopping(worker))) {
			keep_refusals(worker, result);
			return;
		}
		ocs_table_free(&result->table);
		memset(&result->table, 0, sizeof(result->table));
		/* What is known of the table may be wrong; what was read is not. */
		if (result->code == OCS_SWITCH_REJECTED && (try || !worker->quick))
			return;
		if (result->code == OCS_SWITCH_UNKNOWN && worker->connection) {
			ocs_switch_close(worker->connection);
			worker->connection = NULL;
		}
		if (try == 0 && worker_stopping(worker))
			return;
		if (try == 0)
			ocs_log(OCS_LOG_INFO, "%s; trying once more", result->err.text);
	}
}

/* What a switch cannot tell of its ports is no reason to call it failed. */
static void read_health(struct ocsd_worker *worker, struct result *result)
{
	struct ocs_error err;
	int rc = ocs_switch_health(worker->connection, &result->health, &err);

	if (rc != OCS_SWITCH_OK)
		ocs_log(OCS_LOG_DEBUG, "%s", err.text);
	if (rc == OCS_SWITCH_UNKNOWN) {
		ocs_switch_close(worker->connection);
		worker->connection = NULL;
	}
}

/* ---- self-tests ---- */

#define SETTLE_NS INT64_C(3000000000) /* read-outs can lag a second */
#define PAUSE_US 200000

/* Says in TEXT what the paths of the test lose, or returns -1: more than they may. */
static int loss_judge(const struct ocsd_test *test, const struct ocs_health *health,
		      struct ocs_text *text)
{
	int rc = 0;

	for (int i = 0; i < test->npatches; i++) {
		int in = test->patches[i].in, out = test->patches[i].out;
		const struct ocs_port_health *a = &health->port[in], *b = &health->port[out];
		double loss = a->dbm - b->dbm;

		ocs_text_add(text, "%s%d>%d ", i ? ", " : "", in, out);
		if (a->status == OCS_PORT_FAILED || b->status == OCS_PORT_FAILED) {
			ocs_text_add(text, "has failed");
			rc = -1;
		} else if (isnan(loss) || a->dbm < OCSD_DARK_DBM) {
			ocs_text_add(text, "has no light to measure");
		} else {
			ocs_text_add(text, "loses %.2f dB", loss);
			if (loss > test->limit[i]) {
				ocs_text_add(text, ", at most %.2f dB are allowed", test->limit[i]);
				rc = -1;
			}
		}
	}
	return rc;
}

static int loss_measure(struct ocsd_worker *worker, struct ocs_error *err)
{
	int64_t deadline = ocs_now_ns() + SETTLE_NS;

	for (;;) {
		struct ocs_text text = { 0 };
		struct ocs_health health;
		int rc = ocs_switch_health(worker->connection, &health, err);

		if (rc != OCS_SWITCH_OK)
			return rc;
		rc = loss_judge(&worker->test, &health, &text);
		ocs_health_free(&health);
		ocs_error_set(err, OCS_ERROR, "%s", text.data);
		ocs_text_free(&text);
		if (!rc)
			return OCS_SWITCH_OK;
		if (ocs_now_ns() >= deadline || worker_stopping(worker))
			return OCS_SWITCH_REJECTED;
		usleep(PAUSE_US);
	}
}

/* Makes, measures and cuts; the cut is the read-back. */
static int run_test(struct ocsd_worker *worker, struct result *result)
{
	const struct ocsd_test *test = &worker->test;
	struct ocs_error why = { 0 };
	int rc = OCS_SWITCH_OK, cut;

	if (test->npatches)
		rc = ocs_switch_apply(worker->connection, NULL, 0, test->patches,
				      (size_t)test->npatches, NULL, &result->err);
	if (rc == OCS_SWITCH_OK && test->npatches)
		rc = loss_measure(worker, &result->err);
	cut = ocs_switch_apply(worker->connection, test->remove, (size_t)test->nremove, NULL, 0,
			       &result->table, &why);
	if (rc == OCS_SWITCH_OK && cut != OCS_SWITCH_OK) {
		result->err = why;
		rc = cut;
	}
	return rc;
}

static void perform_test(struct ocsd_worker *worker, struct result *result)
{
	for (int try = 0; try < 2; try++) {
		ocs_table_free(&result->table);
		result->code = OCS_SWITCH_UNKNOWN;
		if (!worker->connection)
			worker->connection =
				ocs_switch_open(worker->description, worker->timeout_ms, on_notice,
						worker, &result->err);
		if (worker->connection)
			result->code = run_test(worker, result);
		if (result->code != OCS_SWITCH_UNKNOWN || worker_stopping(worker))
			return;
		ocs_switch_close(worker->connection);
		worker->connection = NULL;
	}
}

/* Delivers what the switch says until there is work; the connection may be gone then. */
static void listen_until_woken(struct ocsd_worker *worker)
{
	struct pollfd wait[2] = { { .fd = worker->wake, .events = POLLIN },
				  { .fd = -1, .events = POLLIN } };
	struct ocs_error err;
	uint64_t count;

	for (;;) {
		/* What came with the last answer is in a buffer already. */
		if (worker->connection &&
		    ocs_switch_listen(worker->connection, 0, &err) != OCS_SWITCH_OK) {
			ocs_log(OCS_LOG_DEBUG, "%s", err.text);
			ocs_switch_close(worker->connection);
			worker->connection = NULL;
			post_heard(worker, NULL);
		}
		wait[1].fd = worker->connection ? ocs_switch_descriptor(worker->connection) : -1;
		if (poll(wait, 2, -1) < 0 && errno != EINTR)
			ocs_log(OCS_LOG_ERROR, "poll: %s", strerror(errno));
		if (wait[0].revents)
			break;
	}
	if (read(worker->wake, &count, sizeof(count)) < 0 && errno != EAGAIN)
		ocs_log(OCS_LOG_ERROR, "eventfd: %s", strerror(errno));
}

static enum ocsd_work take_work(struct ocsd_worker *worker, bool *stop)
{
	enum ocsd_work work;

	pthread_mutex_lock(&worker->lock);
	*stop = worker->stop;
	work = worker->work;
	worker->work = OCSD_IDLE;
	pthread_mutex_unlock(&worker->lock);
	return work;
}

static void *worker_main(void *argument)
{
	struct ocsd_worker *worker = argument;

	for (;;) {
		struct result *result;
		bool stop;
		enum ocsd_work work = take_work(worker, &stop);

		if (stop)
			break;
		if (work == OCSD_IDLE) {
			listen_until_woken(worker);
			continue;
		}
		result = ocs_calloc(1, sizeof(*result));
		result->sw = worker->index;
		if (work == OCSD_TEST)
			perform_test(worker, result);
		else
			work_perform(worker, work, result);
		if (work == OCSD_READ && result->code == OCS_SWITCH_OK)
			read_health(worker, result);
		free(worker->remove);
		free(worker->add);
		worker->remove = worker->add = NULL;
		result_post(worker->results, result);
	}
	if (worker->connection)
		ocs_switch_close(worker->connection);
	worker->connection = NULL;
	return NULL;
}

static void worker_wake(struct ocsd_worker *worker)
{
	uint64_t one = 1;

	if (write(worker->wake, &one, sizeof(one)) != sizeof(one))
		ocs_log(OCS_LOG_ERROR, "waking the worker of switch %s failed: %s",
			worker->description->name, strerror(errno));
}

static void hand_over(struct ocsd_switch *sw, enum ocsd_work work, struct ocs_patch *remove,
		      size_t nremove, struct ocs_patch *add, size_t nadd, bool quick)
{
	struct ocsd_worker *worker = sw->worker;

	sw->busy = work;
	pthread_mutex_lock(&worker->lock);
	worker->work = work;
	worker->remove = remove;
	worker->nremove = nremove;
	worker->add = add;
	worker->nadd = nadd;
	worker->quick = quick;
	pthread_mutex_unlock(&worker->lock);
	worker_wake(worker);
}

void ocsd_worker_read(struct ocsd *d, struct ocsd_switch *sw)
{
	(void)d;
	hand_over(sw, OCSD_READ, NULL, 0, NULL, 0, false);
}

void ocsd_worker_test(struct ocsd *d, struct ocsd_switch *sw, const struct ocsd_test *test)
{
	(void)d;
	/* The worker is idle: it looks only once it has work. */
	sw->worker->test = *test;
	hand_over(sw, OCSD_TEST, NULL, 0, NULL, 0, false);
}

void ocsd_worker_apply(struct ocsd *d, struct ocsd_switch *sw, struct ocs_patch *remove,
		       size_t nremove, struct ocs_patch *add, size_t nadd, bool quick)
{
	(void)d;
	hand_over(sw, OCSD_APPLY, remove, nremove, add, nadd, quick);
}

static void drain_results(struct ocsd *d)
{
	struct result *result;

	pthread_mutex_lock(&d->results->lock);
	result = d->results->first;
	d->results->first = NULL;
	d->results->last = &d->results->first;
	pthread_mutex_unlock(&d->results->lock);
	while (result) {
		struct result *next = result->next;

		if (result->heard) {
			if (!d->life.stopping)
				ocsd_switch_heard(d, &d->switches[result->sw], result->text);
			free(result->text);
			free(result);
			result = next;
			continue;
		}
		if (result->nrefusals)
			ocsd_port_refused(d, &d->switches[result->sw], result->refusals,
					  result->nrefusals, result->err.text);
		if (result->lost)
			ocsd_circuits_lost(&d->switches[result->sw]);
		if (!d->life.stopping || result->code == OCS_SWITCH_OK)
			ocsd_switch_result(d, &d->switches[result->sw], result->code,
					   &result->table, &result->err);
		if (!d->life.stopping && result->health.port) {
			ocsd_health_look(d, &d->switches[result->sw], &result->health);
			ocsd_power_read(d, &d->switches[result->sw], &result->health);
		}
		ocs_table_free(&result->table);
		ocs_health_free(&result->health);
		free(result->refusals);
		free(result);
		result = next;
	}
}

static void on_wake(evutil_socket_t fd, short what, void *context)
{
	uint64_t count;

	(void)what;
	if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		ocs_log(OCS_LOG_ERROR, "eventfd: %s", strerror(errno));
	drain_results(context);
}

static int start_worker(struct ocsd *d, struct ocsd_switch *sw, struct ocs_error *err)
{
	struct ocsd_worker *worker = ocs_calloc(1, sizeof(*worker));
	int rc;

	sw->worker = worker;
	worker->description = sw->description;
	worker->index = sw->index;
	worker->timeout_ms = d->config->timeouts.switch_ms;
	worker->results = d->results;
	pthread_mutex_init(&worker->lock, NULL);
	worker->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (worker->wake < 0)
		return ocs_error_set(err, OCS_ERROR, "eventfd: %s", strerror(errno));
	rc = pthread_create(&worker->thread, NULL, worker_main, worker);
	if (rc)
		return ocs_error_set(err, OCS_ERROR, "starting the worker of switch %s: %s",
				     sw->description->name, strerror(rc));
	worker->started = true;
	return 0;
}

int ocsd_workers_start(struct ocsd *d, struct ocs_error *err)
{
	d->results = ocs_calloc(1, sizeof(*d->results));
	d->results->last = &d->results->first;
	pthread_mutex_init(&d->results->lock, NULL);
	d->results->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (d->results->wake < 0)
		return ocs_error_set(err, OCS_ERROR, "eventfd: %s", strerror(errno));
	d->results->event =
		event_new(d->loop.base, d->results->wake, EV_READ | EV_PERSIST, on_wake, d);
	event_add(d->results->event, NULL);
	for (int i = 0; i < d->fabric->nswitches; i++)
		if (start_worker(d, &d->switches[i], err))
			return -1;
	return 0;
}

static void stop_worker(struct ocsd_worker *worker)
{
	if (worker->started) {
		pthread_mutex_lock(&worker->lock);
		worker->stop = true;
		pthread_mutex_unlock(&worker->lock);
		worker_wake(worker);
	}
}

/* Lets batches that are on their way finish, and keeps their outcome. */
void ocsd_workers_stop(struct ocsd *d)
{
	if (!d->results)
		return;
	for (int i = 0; i < d->fabric->nswitches; i++)
		if (d->switches[i].worker)
			stop_worker(d->switches[i].worker);
	for (int i = 0; i < d->fabric->nswitches; i++) {
		struct ocsd_worker *worker = d->switches[i].worker;

		if (!worker)
			continue;
		if (worker->started)
			pthread_join(worker->thread, NULL);
		pthread_mutex_destroy(&worker->lock);
		if (worker->wake >= 0)
			close(worker->wake);
		free(worker->remove);
		free(worker->add);
		free(worker);
		d->switches[i].worker = NULL;
	}
	drain_results(d);
	if (d->results->event)
		event_free(d->results->event);
	if (d->results->wake >= 0)
		close(d->results->wake);
	pthread_mutex_destroy(&d->results->lock);
	free(d->results);
	d->results = NULL;
}
