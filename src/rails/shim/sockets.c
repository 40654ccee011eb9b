/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Which sockets a communication library sends on: it asks the C library for them. */

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/socket.h>

#include "src/rails/shim/drain.h"
#include "src/rails/shim/gate_internal.h"
#include "src/rails/shim/sockets.h"

#define PUBLIC __attribute__((visibility("default")))
#define FDS 65536
#define BITS 64

static _Atomic uint64_t known[FDS / BITS];
static _Atomic int most = -1; /* the greatest of them */

static bool address_local(const struct sockaddr *address)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *four = (const struct sockaddr_in *)address;

	if (address->sa_family == AF_INET)
		return ntohl(four->sin_addr.s_addr) >> 24 == 127;
	if (address->sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr) ||
		       (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr) && six->sin6_addr.s6_addr[12] == 127);
	return true;
}

static void socket_note(int fd, const struct sockaddr *address)
{
	int type = 0, greatest = atomic_load(&most);
	socklen_t size = sizeof(type);

	if (fd < 0 || fd >= FDS || address_local(address) ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 || type != SOCK_STREAM)
		return;
	atomic_fetch_or(&known[fd / BITS], UINT64_C(1) << fd % BITS);
	while (fd > greatest && !atomic_compare_exchange_weak(&most, &greatest, fd))
		;
}

static void accepted_note(int fd)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);
	int before = errno;

	if (fd >= 0 && !getpeername(fd, (struct sockaddr *)&address, &size))
		socket_note(fd, (struct sockaddr *)&address);
	errno = before;
}

PUBLIC int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t size)
{
	static int (*_Atomic next)(int, const struct sockaddr *, socklen_t);
	const struct sockaddr *address = to.__sockaddr__;
	int before = errno;

	if (!atomic_load(&next))
		atomic_store(&next, (int (*)(int, const struct sockaddr *, socklen_t))dlsym(
					    RTLD_NEXT, "connect"));
	if (address && size >= (socklen_t)sizeof(struct sockaddr_in))
		socket_note(fd, address);
	errno = before;
	return atomic_load(&next)(fd, address, size);
}

PUBLIC int accept(int fd, __SOCKADDR_ARG address, socklen_t *restrict size)
{
	static int (*_Atomic next)(int, struct sockaddr *, socklen_t *);
	int result;

	if (!atomic_load(&next))
		atomic_store(&next, (int (*)(int, struct sockaddr *, socklen_t *))dlsym(RTLD_NEXT,
											"accept"));
	result = atomic_load(&next)(fd, address.__sockaddr__, size);
	accepted_note(result);
	return result;
}

PUBLIC int accept4(int fd, __SOCKADDR_ARG address, socklen_t *restrict size, int flags)
{
	static int (*_Atomic next)(int, struct sockaddr *, socklen_t *, int);
	int result;

	if (!atomic_load(&next))
		atomic_store(&next, (int (*)(int, struct sockaddr *, socklen_t *, int))dlsym(
					    RTLD_NEXT, "accept4"));
	result = atomic_load(&next)(fd, address.__sockaddr__, size, flags);
	accepted_note(result);
	return result;
}

size_t ocs_shim_sockets(int *fds, size_t room)
{
	int greatest = atomic_load(&most);
	size_t count = 0;

	for (int word = 0; word <= greatest / BITS && greatest >= 0; word++)
		for (uint64_t bits = atomic_load(&known[word]); bits && count < room;
		     bits &= bits - 1) {
			int fd = word * BITS + __builtin_ctzll(bits), type;
			socklen_t size = sizeof(type);

			/* Closed meanwhile, or something else by now. */
			if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0)
				atomic_fetch_and(&known[word], ~(bits & -bits));
			else
				fds[count++] = fd;
		}
	return count;
}

#define SOME 4096

bool ocs_shim_sockets_drained(void)
{
	int fds[SOME], before = errno;
	bool drained = ocs_drain(fds, ocs_shim_sockets(fds, SOME), 0);

	errno = before;
	return drained;
}
