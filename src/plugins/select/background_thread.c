/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Everything that needs slurmctld's locks outside the scheduling path: jobs whose
 * circuits failed, reasons of waiting jobs, the end of completing jobs, pictures.
 * It looks under the read lock first and writes only what has to change. */

#include "src/plugins/select/select_ocs.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define EVERY_MS 1000 /* a look at everything */
#define PAUSE_MS 100  /* at least this between two looks */
#define SOON_MS 100   /* a look where Slurm does not tell when it is time */
#define WATCHED_MAX 65536
#define NUMBERS_MAX 1000 /* of jobs that may have been forgotten */

static pthread_t thread;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static bool runs, stop, woken, schedule;

void ocs_select_keeper_wake(void)
{
	pthread_mutex_lock(&mutex);
	woken = true;
	pthread_cond_signal(&condition);
	pthread_mutex_unlock(&mutex);
}

void ocs_select_keeper_schedule(void)
{
	pthread_mutex_lock(&mutex);
	woken = schedule = true;
	pthread_cond_signal(&condition);
	pthread_mutex_unlock(&mutex);
}

static bool schedule_wanted(void)
{
	bool wanted;

	pthread_mutex_lock(&mutex);
	wanted = schedule;
	schedule = false;
	pthread_mutex_unlock(&mutex);
	return wanted;
}

/* Jobs that are ready start at once: people wait for it. */
static void let_go(void)
{
	slurmctld_lock_t lock = { .conf = READ_LOCK,
				  .job = WRITE_LOCK,
				  .node = WRITE_LOCK,
				  .part = READ_LOCK,
				  .fed = READ_LOCK };

	lock_slurmctld(lock);
	ocs_select_hold_tend();
	unlock_slurmctld(lock);
}

/* Sleeps until woken or MS have passed; not WAKEABLE: woken only to let jobs start that are
 * ready.  False when it is time to stop. */
static bool thread_rest(int ms, bool wakeable)
{
	struct timespec until;
	bool go_on;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&mutex);
	while (!stop && !(wakeable && woken)) {
		if (ocs_controller_readied()) {
			pthread_mutex_unlock(&mutex);
			let_go();
			pthread_mutex_lock(&mutex);
			continue;
		}
		if (pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &until) ==
		    ETIMEDOUT)
			break;
	}
	if (wakeable)
		woken = false;
	go_on = !stop;
	pthread_mutex_unlock(&mutex);
	return go_on;
}

/* ---- reasons ---- */

/* BLOCKED: slurmctld heard of licences where the job waits for a repair. */
static bool reason_is_ours(job_record_t *job, bool blocked)
{
	switch (job->state_reason) {
	case WAIT_NO_REASON:
	case WAIT_RESOURCES:
		return true;
	case WAIT_LICENSES:
		return blocked;
	case WAIT_NODE_NOT_AVAIL:
		return job->details && !job->details->req_node_bitmap;
	default:
		return false;
	}
}

static bool reason_needs_writing(const struct ocs_controller_waiting *waiting)
{
	job_record_t *job = find_job_record(waiting->job);

	if (!job || !IS_JOB_PENDING(job) || !waiting->reason ||
	    !reason_is_ours(job, waiting->blocked))
		return false;
	/* That the partition has too few nodes left is the more urgent news. */
	if (!xstrncmp(job->state_desc, "Nodes required for job", 22))
		return false;
	return xstrcmp(job->state_desc, waiting->reason) ||
	       (waiting->blocked && job->state_reason == WAIT_LICENSES);
}

static void reason_write(const struct ocs_controller_waiting *waiting)
{
	job_record_t *job = find_job_record(waiting->job);

	if (!reason_needs_writing(waiting))
		return;
	xfree(job->state_desc);
	job->state_desc = xstrdup(waiting->reason);
	/* The answer that does not close the partition speaks of licences. */
	if (waiting->blocked || job->state_reason == WAIT_NO_REASON)
		job->state_reason = WAIT_RESOURCES;
	last_job_update = time(NULL);
}

/* ---- allocations ---- */

/* Whether the job still has the allocation of EPOCH. */
static bool holds_allocation(job_record_t *job, const struct ocs_controller_holder *holder)
{
	return job && ocs_select_epoch(job) == holder->epoch &&
	       (IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job)) && job->node_bitmap;
}

static void watch_holders(const struct ocs_controller_holder *holders, int count)
{
	for (int i = 0; i < count; i++) {
		job_record_t *job = find_job_record(holders[i].job);

		if (holders[i].gone)
			continue;
		if (holders[i].living) {
			/* It started, but slurmctld changed its mind. */
			if (!holds_allocation(job, &holders[i]))
				ocs_controller_end(holders[i].job, holders[i].epoch,
						   "the job did not start");
			continue;
		}
		if (!job || !IS_JOB_COMPLETING(job) || ocs_select_epoch(job) != holders[i].epoch)
			ocs_controller_gone(holders[i].job, holders[i].epoch);
	}
}

/* Jobs whose prologs wait for an ocsd that does not come back. */
static void watch_prologs(const struct ocs_controller_holder *holders, int count)
{
	char *text;

	for (int i = 0; i < count; i++) {
		job_record_t *job = find_job_record(holders[i].job);
		struct ocs_controller_failure failure = {
			.job = holders[i].job,
			.epoch = holders[i].epoch,
		};

		if (!holders[i].living || !holds_allocation(job, &holders[i]) ||
		    !ocs_select_in_prolog(job))
			continue;
		text = xstrdup("ocsd could not be reached while its prolog waited for circuits");
		failure.text = text;
		ocs_select_fail(&failure);
		xfree(text);
	}
}

/* Slurm tells only those nodes to stop such a job on which steps of it run.  The others would
 * not run its prolog when it starts again. */
static void stop_forgotten(void)
{
	uint32_t number;
	int *nodes, count;

	while ((count = ocs_controller_forgotten(&number, &nodes)) >= 0) {
		job_record_t *job = find_job_record(number);
		bitstr_t *where = bit_alloc(node_record_count);

		ocs_slurm_info(
			"job %u had started before slurmctld died, which was not saved: its nodes are closed to shapes for some seconds",
			number);
		for (int i = 0; i < count; i++) {
			int index = ocs_select_node_slurm(nodes[i]);

			if (index >= 0 &&
			    !(job && job->node_bitmap && bit_test(job->node_bitmap, index)))
				bit_set(where, index);
		}
		if (job && bit_ffs(where) >= 0)
			abort_job_on_nodes(job, where);
		FREE_NULL_BITMAP(where);
		free(nodes);
	}
}

/* Numbers of jobs that slurmctld lost when it died are not given again: slurmds that still
 * have such a job would drain their nodes.  It loses those of some seconds; where they have
 * wrapped around there is nothing to be passed over. */
static void pass_numbers(uint32_t last)
{
	for (int i = 0; i < NUMBERS_MAX; i++) {
		uint32_t next = get_next_job_id(true);

		if (next > last || last - next >= NUMBERS_MAX)
			return;
		if (!i)
			ocs_slurm_info(
				"jobs up to %u have been started before: the next number is greater",
				last);
		get_next_job_id(false);
	}
}

/* ---- pictures ---- */

/* Node states and who is on them, into arrays of the fabric's size. */
static void see_nodes(uint8_t *states, uint32_t *jobs)
{
	const struct ocs_fabric *fabric = ocs_controller_fabric();
	list_itr_t *iterator = list_iterator_create(job_list);
	job_record_t *job;

	if (!fabric) {
		list_iterator_destroy(iterator);
		return;
	}
	memset(jobs, 0, (size_t)fabric->nnodes * sizeof(*jobs));
	for (int i = 0; i < fabric->nnodes; i++) {
		int index = ocs_select_node_slurm(i);

		states[i] = ocs_compat_node_state(index >= 0 ? node_record_table_ptr[index] : NULL);
	}
	while ((job = list_next(iterator))) {
		if ((!IS_JOB_RUNNING(job) && !IS_JOB_SUSPENDED(job) && !IS_JOB_COMPLETING(job)) ||
		    !job->node_bitmap)
			continue;
		for (int i = 0; next_node_bitmap(job->node_bitmap, &i); i++) {
			int node = ocs_select_node_fabric(i);

			if (node >= 0)
				jobs[node] = job->job_id;
		}
	}
	list_iterator_destroy(iterator);
}

/* ---- the thread ---- */

struct look {
	struct ocs_controller_holder *holders;
	int nholders;
	struct ocs_controller_waiting *waiting;
	int nwaiting;
	uint8_t *states;
	uint32_t *jobs;
	int nnodes;	  /* as many has each of them */
	time_t seen;	  /* when the nodes were looked at */
	uint32_t max_job; /* that ocsd knows of, or 0 */
	bool write;
	bool soon;   /* the next look is not to wait as long */
	bool served; /* slurmctld was in charge, */
	bool parked; /* and is not any more */
};

/* The fabric may be another one than before. */
static void make_room(struct look *look)
{
	const struct ocs_fabric *fabric = ocs_controller_fabric();
	int nnodes = fabric ? fabric->nnodes : 0;

	if (look->states && look->nnodes == nnodes)
		return;
	look->nnodes = nnodes;
	xfree(look->states);
	xfree(look->jobs);
	look->states = xcalloc(nnodes + 1, sizeof(*look->states));
	look->jobs = xcalloc(nnodes + 1, sizeof(*look->jobs));
}

/* How long jobs may wait for ocsd in their prolog. */
static int64_t down_limit_ms(void)
{
	return ocs_controller_config() ? ocs_controller_config()->timeouts.ocsd_down_ms : INT64_MAX;
}

/* Under the read lock: what is there, and whether something has to be written. */
static void jobs_look(struct look *look)
{
	slurmctld_lock_t lock = { .job = READ_LOCK, .node = READ_LOCK };
	int64_t limit = down_limit_ms();
	time_t now = time(NULL);
	bool nodes = false;

	lock_slurmctld(lock);
	watch_holders(look->holders, look->nholders);
	for (int i = 0; i < look->nwaiting; i++) {
		job_record_t *job = find_job_record(look->waiting[i].job);

		if (!job || (!IS_JOB_PENDING(job) && !IS_JOB_COMPLETING(job)))
			ocs_controller_pending_clear(look->waiting[i].job);
		else if (reason_needs_writing(&look->waiting[i]))
			look->write = true;
	}
	if (ocs_controller_down_ms() > limit) {
		for (int i = 0; i < look->nholders && !look->write; i++) {
			job_record_t *job = find_job_record(look->holders[i].job);

			look->write = holds_allocation(job, &look->holders[i]) &&
				      ocs_select_in_prolog(job);
		}
	}
	look->write |= ocs_select_lost_any();
	look->write |= ocs_select_prologs_lost_any();
	look->write |= ocs_select_hold_any(&look->soon);
	make_room(look);
	if (look->seen != now) {
		see_nodes(look->states, look->jobs);
		look->seen = now;
		nodes = true;
	}
	unlock_slurmctld(lock);
	if (nodes)
		ocs_controller_nodes(look->states, look->jobs);
}

/* Under the write lock. */
static void jobs_act(struct look *look)
{
	slurmctld_lock_t lock = { .conf = READ_LOCK,
				  .job = WRITE_LOCK,
				  .node = WRITE_LOCK,
				  .part = READ_LOCK,
				  .fed = READ_LOCK };
	struct ocs_controller_failure failure;
	int64_t limit = down_limit_ms();

	lock_slurmctld(lock);
	if (look->max_job)
		pass_numbers(look->max_job);
	stop_forgotten();
	ocs_select_hold_tend();
	while (ocs_controller_failure(&failure)) {
		ocs_select_fail(&failure);
		free(failure.name);
		free(failure.text);
	}
	if (ocs_controller_down_ms() > limit)
		watch_prologs(look->holders, look->nholders);
	for (int i = 0; i < look->nwaiting; i++)
		reason_write(&look->waiting[i]);
	ocs_select_lost_requeue();
	ocs_select_prologs_lost_requeue();
	ocs_select_requeued_hasten();
	unlock_slurmctld(lock);
}

/* A primary that hung so long that a backup took over would go on with what it knew then:
 * start jobs on nodes that are not idle any more, and save that as the state of the cluster.
 * Slurm only ends a backup in this place.  No clean-up: every moment counts, and every part
 * of it would write something. */
static void controller_superseded(void)
{
	if (!slurmctld_primary || slurmctld_config.shutdown_time)
		return;
	ocs_slurm_error(
		"another slurmctld has taken charge while this one did not answer: what it knows is out of date, and it ends without saving that; start it again to give it control back");
	_exit(1);
}

void ocs_select_keeper_join(void)
{
	ocs_controller_link_start(backup_inx, ocs_select_keeper_wake, controller_superseded);
}

/* A slurmctld that is in charge saves its state. */
static bool in_charge(void)
{
	return slurmctld_config.thread_id_save != 0;
}

/* A backup that has given control back goes on with all its plugins and gets no notice:
 * it leaves ocsd to the primary.  True while there is nothing to do. */
static bool stands_by(struct look *look)
{
	slurmctld_lock_t lock = { .job = WRITE_LOCK, .node = READ_LOCK };

	if (!look->parked) {
		if (!look->served)
			look->served = in_charge();
		else if (!slurmctld_primary && !in_charge() && !slurmctld_config.shutdown_time)
			look->parked = true;
		if (look->parked) {
			ocs_slurm_info("no longer in charge, leaving ocsd");
			ocs_controller_link_stop();
		}
	} else if (in_charge()) {
		/* select_p_reconfigure has started it, unless control came back without
		 * reading the configuration. */
		if (!ocs_controller_link_runs()) {
			lock_slurmctld(lock);
			ocs_select_restore_all();
			unlock_slurmctld(lock);
			ocs_select_keeper_join();
		}
		look->parked = false;
	}
	return look->parked;
}

static void *thread_run(void *unused)
{
	struct look now = {
		.holders = xcalloc(WATCHED_MAX, sizeof(*now.holders)),
		.waiting = xcalloc(WATCHED_MAX, sizeof(*now.waiting)),
	};

	while (thread_rest(now.soon ? SOON_MS : EVERY_MS, true)) {
		now.soon = false;
		if (stands_by(&now))
			continue;
		now.nholders = ocs_controller_holders(now.holders, WATCHED_MAX);
		ocs_controller_near();
		now.nwaiting = ocs_controller_waiting(now.waiting, WATCHED_MAX);
		now.max_job = ocs_controller_max_job();
		now.write = ocs_controller_failures() || ocs_select_requeued_any() || now.max_job;
		now.write |= ocs_controller_forgotten_any();
		jobs_look(&now);
		if (now.write)
			jobs_act(&now);
		for (int i = 0; i < now.nwaiting; i++)
			free(now.waiting[i].reason);
		if ((int)ocs_controller_changed() | (int)schedule_wanted())
			queue_job_scheduler();
		if (!thread_rest(PAUSE_MS, false))
			break;
	}
	xfree(now.holders);
	xfree(now.waiting);
	xfree(now.states);
	xfree(now.jobs);
	return NULL;
}

void ocs_select_keeper_start(void)
{
	sigset_t all, before;

	if (runs)
		return;
	stop = false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	runs = pthread_create(&thread, NULL, thread_run, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void ocs_select_keeper_stop(void)
{
	if (!runs)
		return;
	pthread_mutex_lock(&mutex);
	stop = true;
	pthread_cond_signal(&condition);
	pthread_mutex_unlock(&mutex);
	pthread_join(thread, NULL);
	runs = false;
}
