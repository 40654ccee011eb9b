/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Submits a job as anybody can who links with libslurm: without sbatch, spank_ocs and what they
 * check.  raw_submit PARTITION NODES OUTPUT ENVIRONMENT SPANK [SCRIPT]: the last three are
 * files, the first of them with one entry a line; the script is "echo ran; sleep 300".  Prints the job's number, or what
 * slurmctld says and exits with 1. */

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char **read_lines(const char *path, uint32_t *count)
{
	char **lines = calloc(1, sizeof(*lines)), *line = NULL;
	FILE *stream = fopen(path, "r");
	size_t size = 0;

	*count = 0;
	while (stream && getline(&line, &size, stream) > 0) {
		line[strcspn(line, "\n")] = '\0';
		lines = realloc(lines, (*count + 2) * sizeof(*lines));
		lines[(*count)++] = strdup(line);
		lines[*count] = NULL;
	}
	free(line);
	if (stream)
		fclose(stream);
	return lines;
}

static char *read_text(const char *path)
{
	FILE *stream = fopen(path, "r");
	char *text = NULL;
	size_t size = 0;

	if (stream && getdelim(&text, &size, '\0', stream) < 0)
		exit(2);
	return text;
}

int main(int argc, char **argv)
{
	submit_response_msg_t *reply = NULL;
	job_desc_msg_t job;
	char **spank;
	uint32_t count;

	if (argc != 6 && argc != 7)
		return 2;
	slurm_init(NULL);
	slurm_init_job_desc_msg(&job);
	job.name = "raw";
	job.partition = argv[1];
	job.min_nodes = (uint32_t)atoi(argv[2]);
	job.std_out = argv[3];
	job.environment = read_lines(argv[4], &job.env_size);
	spank = read_lines(argv[5], &count);
	job.spank_job_env = spank;
	job.spank_job_env_size = count;
	job.script = argc > 6 ? read_text(argv[6]) : "#!/bin/bash\necho ran\nsleep 300\n";
	job.work_dir = "/tmp";
	job.user_id = getuid();
	job.group_id = getgid();
	if (slurm_submit_batch_job(&job, &reply)) {
		fprintf(stderr, "%s: %s\n", slurm_strerror(errno),
			reply && reply->job_submit_user_msg ? reply->job_submit_user_msg : "");
		return 1;
	}
	if (reply->job_submit_user_msg)
		fprintf(stderr, "%s\n", reply->job_submit_user_msg);
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
	printf("%u\n", reply->step_id.job_id);
#else
	printf("%u\n", reply->job_id);
#endif
	return 0;
}
