/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/util/bpf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/util/rtnetlink.h"

int ocs_bpf_call(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

int ocs_bpf_load(const struct bpf_insn *program, size_t count, const char *name)
{
	union bpf_attr attr = { 0 };

	attr.prog_type = BPF_PROG_TYPE_SCHED_CLS;
	attr.insns = (uint64_t)(uintptr_t)program;
	attr.insn_cnt = (uint32_t)count;
	attr.license = (uint64_t)(uintptr_t) "GPL";
	strcpy(attr.prog_name, name);
	return ocs_bpf_call(BPF_PROG_LOAD, &attr);
}

int ocs_bpf_map_create(enum bpf_map_type type, size_t key, size_t value, uint32_t entries,
		       uint32_t flags, const char *name)
{
	union bpf_attr attr = { 0 };

	attr.map_type = type;
	attr.key_size = (uint32_t)key;
	attr.value_size = (uint32_t)value;
	attr.max_entries = entries;
	attr.map_flags = flags;
	strcpy(attr.map_name, name);
	return ocs_bpf_call(BPF_MAP_CREATE, &attr);
}

struct filter_request {
	struct nlmsghdr header;
	struct tcmsg tc;
	char attributes[128];
};

/* Sends REQUEST: 0, or an errno. */
static int request_send(const struct filter_request *request)
{
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char more[512];
	} reply;
	int sock = ocs_rtnetlink_open(), rc = 0;
	ssize_t got;

	if (sock < 0)
		return errno;
	got = send(sock, request, request->header.nlmsg_len, 0) < 0 ?
		      -1 :
		      recv(sock, &reply, sizeof(reply), 0);
	if (got < 0)
		rc = errno;
	else if ((size_t)got < sizeof(reply.header) + sizeof(int) ||
		 reply.header.nlmsg_type != NLMSG_ERROR)
		rc = EPROTO;
	else
		rc = -reply.error.error;
	close(sock);
	return rc;
}

int ocs_bpf_filter_attach(const struct ocs_bpf_filter *filter, unsigned int ifindex)
{
	uint32_t fd = (uint32_t)filter->program, flags = TCA_BPF_FLAG_ACT_DIRECT;
	struct filter_request request = { 0 };
	struct rtattr *options;

	request.header.nlmsg_len = NLMSG_LENGTH(sizeof(request.tc));
	request.header.nlmsg_type = RTM_NEWTFILTER;
	request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE;
	if (filter->exclusive)
		request.header.nlmsg_flags |= NLM_F_EXCL;
	request.tc.tcm_family = AF_UNSPEC;
	request.tc.tcm_ifindex = (int)ifindex;
	request.tc.tcm_parent = TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS);
	request.tc.tcm_handle = 1;
	request.tc.tcm_info =
		TC_H_MAKE((uint32_t)filter->preference << 16, htons(filter->protocol));
	ocs_rtnetlink_add(&request.header, TCA_KIND, "bpf", 4);
	options = ocs_rtnetlink_add(&request.header, TCA_OPTIONS, NULL, 0);
	ocs_rtnetlink_add(&request.header, TCA_BPF_FD, &fd, sizeof(fd));
	ocs_rtnetlink_add(&request.header, TCA_BPF_NAME, filter->name, strlen(filter->name) + 1);
	ocs_rtnetlink_add(&request.header, TCA_BPF_FLAGS, &flags, sizeof(flags));
	ocs_rtnetlink_close_list(&request.header, options);
	return request_send(&request);
}
