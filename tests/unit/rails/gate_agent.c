/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/rails/gate_agent.h"

_Atomic uint32_t *agent_number(struct agent *agent, int ring, int offset)
{
	return (_Atomic uint32_t *)(agent->box + ring * RING + offset);
}

ssize_t word_get(struct agent *agent, struct word *word)
{
	struct pollfd wait = { agent->sock, POLLIN, 0 };

	memset(word, 0, sizeof(*word));
	assert_int_equal(poll(&wait, 1, 60000), 1);
	return recv(agent->sock, word, sizeof(*word), 0);
}

void words_expect(struct agent *agent, uint32_t kind)
{
	struct word word;

	assert_true(word_get(agent, &word) >= (ssize_t)WORD);
	assert_int_equal(word.kind, kind);
}

void box_make(struct agent *agent, size_t size, int seals)
{
	agent->box_fd = memfd_create("box", MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(agent->box_fd, (off_t)size), 0);
	agent->box = mmap(NULL, 2 * RING, PROT_READ | PROT_WRITE, MAP_SHARED, agent->box_fd, 0);
	assert_true(agent->box != MAP_FAILED);
	if (seals)
		assert_int_equal(fcntl(agent->box_fd, F_ADD_SEALS, seals), 0);
	agent->bell = eventfd(0, 0);
}

void welcome_send(struct agent *agent, const struct word *word, size_t bytes, int count)
{
	int fds[3] = { agent->box_fd, agent->bell, agent->bell };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(fds))];
	} control = { 0 };
	struct iovec part = { (void *)(uintptr_t)word, bytes };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (count) {
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, (size_t)count * sizeof(int));
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
	}
	assert_true(sendmsg(agent->sock, &message, MSG_NOSIGNAL) == (ssize_t)bytes);
}

void agent_welcome(struct agent *agent)
{
	struct word word = { .kind = WELCOME, .version = 1 }, hello;

	assert_int_equal(word_get(agent, &hello), WORD);
	assert_int_equal(hello.kind, HELLO);
	assert_int_equal(hello.version, 1);
	assert_int_equal(hello.rank, 3);
	assert_int_equal(hello.ranks, 8);
	box_make(agent, 2 * RING, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	welcome_send(agent, &word, WORD, 2);
}

uint64_t group_serve(struct agent *agent, uint32_t need, int error)
{
	struct word word, answer = { .kind = KNOWN, .version = 1, .need = need, .error = error };
	ssize_t got = word_get(agent, &word);

	assert_int_equal(word.kind, GROUP);
	assert_int_equal(got, WORD + word.count * 4);
	for (uint32_t i = 1; i < word.count; i++)
		assert_true(word.members[i - 1] < word.members[i]);
	answer.group = word.group;
	assert_int_equal(send(agent->sock, &answer, WORD, MSG_NOSIGNAL), WORD);
	return word.group;
}

struct letter letter_get(struct agent *agent)
{
	struct pollfd wait = { agent->bell, POLLIN, 0 };
	struct letter letter;
	uint64_t rung;

	while (atomic_load(agent_number(agent, 0, HEAD)) == agent->read) {
		assert_int_equal(poll(&wait, 1, 60000), 1);
		assert_int_equal(read(agent->bell, &rung, sizeof(rung)), sizeof(rung));
	}
	memcpy(&letter, agent->box + LETTERS + agent->read % ROOM * LETTER, sizeof(letter));
	atomic_store(agent_number(agent, 0, TAIL), ++agent->read);
	if (atomic_load(agent_number(agent, 0, WRITER)))
		syscall(SYS_futex, agent_number(agent, 0, TAIL), FUTEX_WAKE, 99, NULL, NULL, 0);
	return letter;
}

void letter_put(struct agent *agent, uint32_t kind, uint64_t group, uint64_t idx, int error)
{
	struct letter letter = { .kind = kind, .error = error, .group = group, .idx = idx };

	memcpy(agent->box + RING + LETTERS + agent->written % ROOM * LETTER, &letter,
	       sizeof(letter));
	atomic_store(agent_number(agent, 1, HEAD), ++agent->written);
	if (atomic_load(agent_number(agent, 1, READER)))
		syscall(SYS_futex, agent_number(agent, 1, HEAD), FUTEX_WAKE, 99, NULL, NULL, 0);
}

void letter_expect(struct agent *agent, uint32_t kind, uint64_t group, uint64_t idx)
{
	struct letter letter = letter_get(agent);

	assert_int_equal(letter.kind, kind);
	assert_int_equal(letter.group, group);
	assert_int_equal(letter.idx, idx);
	assert_true(kind != ARRIVE || letter.stamp);
}

bool agent_abstract;

void case_run(void (*rank_side)(void), void (*agent_side)(struct agent *))
{
	char folder[] = "/tmp/gate-XXXXXX";
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct agent agent = { .sock = -1, .box_fd = -1, .bell = -1 };
	int status;

	assert_non_null(mkdtemp(folder));
	snprintf(agent.path, sizeof(agent.path), "%s%s/agent", agent_abstract ? "@" : "", folder);
	strcpy(address.sun_path, agent.path);
	if (agent_abstract)
		address.sun_path[0] = '\0';
	agent.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(agent.listener, (struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
					  strlen(agent.path) + !agent_abstract)),
			 0);
	assert_int_equal(listen(agent.listener, 8), 0);
	agent.rank = fork();
	if (!agent.rank) {
		close(agent.listener);
		setenv("OCS_RAILS_AGENT", agent.path, 1);
		setenv("SLURM_PROCID", "3", 1);
		setenv("SLURM_NTASKS", "8", 1);
		setenv("OCS_RAILS_TIMEOUT", "120", 1);
		rank_side();
		exit(0);
	}
	if (agent_side) {
		agent.sock = accept(agent.listener, NULL, NULL);
		assert_true(agent.sock >= 0);
		agent_side(&agent);
	}
	assert_int_equal(waitpid(agent.rank, &status, 0), agent.rank);
	assert_int_equal(status, 0);
	close(agent.listener);
	close(agent.sock);
	close(agent.box_fd);
	close(agent.bell);
	if (agent.box)
		munmap(agent.box, 2 * RING);
	unlink(agent.path);
	rmdir(folder);
}
