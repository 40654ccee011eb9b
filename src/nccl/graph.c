/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A graph file: for each channel the NIC in, every GPU, the NIC out.  NCCL numbers
 * GPUs and RDMA ports by their bus addresses, ports after NCCL_IB_HCA. */

#include "src/nccl/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/nccl/check.h"
#include "src/nccl/machine.h"
#include "src/util/error.h"
#include "src/util/release.h"
#include "src/util/text.h"

#define CHANNELS_MAX 64
#define GBYTES_UNKNOWN 12.0 /* what NCCL assumes of a port of unknown speed */
#define GBYTES_CHANNEL 25.0 /* above this NCCL would give a port another channel */

/* How far apart two devices are, in NCCL's words. */
enum path { PATH_PIX, PATH_PXB, PATH_PHB, PATH_SYS };
static const char *const path_names[] = { "PIX", "PXB", "PHB", "SYS" };

struct writer {
	const struct ocs_nccl_machine *machine;
	struct ocs_nccl_devices devices;
	const struct ocs_nccl_port *ports;
	int nports;
	int *gpus; /* devices, by NCCL's number */
	int ngpus;
	int *net;		/* NCCL's number of each port */
	enum path intra, inter; /* the worst that a channel takes */
	struct ocs_text text;
};

static long long pci_address(hwloc_obj_t object)
{
	const struct hwloc_pcidev_attr_s *pci = ocs_nccl_pci(object);

	return (long long)pci->domain << 20 | pci->bus << 12 | pci->dev << 4 | pci->func;
}

static enum path path_between(const struct writer *w, int a, int b)
{
	const struct ocs_nccl_device *list = w->devices.list;

	if (list[a].parent >= 0 && list[a].parent == list[b].parent)
		return PATH_PIX;
	for (int x = list[a].parent; x >= 0; x = list[x].parent)
		for (int y = list[b].parent; y >= 0; y = list[y].parent)
			if (x == y)
				return PATH_PXB;
	return list[a].numa == list[b].numa ? PATH_PHB : PATH_SYS;
}

static int device_of(const struct writer *w, hwloc_obj_t object)
{
	for (int i = 0; i < w->devices.count; i++)
		if (w->devices.list[i].object == object)
			return i;
	return 0;
}

static void gpus_number(struct writer *w)
{
	w->gpus = ocs_calloc(w->devices.count + 1, sizeof(int));
	for (int i = 0; i < w->devices.count; i++) {
		int at = w->ngpus;

		if (!w->devices.list[i].gpu)
			continue;
		for (; at > 0 && pci_address(w->devices.list[w->gpus[at - 1]].object) >
					 pci_address(w->devices.list[i].object);
		     at--)
			w->gpus[at] = w->gpus[at - 1];
		w->gpus[at] = i;
		w->ngpus++;
	}
}

static int ports_number(struct writer *w, struct ocs_error *err)
{
	w->net = ocs_calloc(w->nports + 1, sizeof(int));
	for (int i = 0; i < w->nports; i++) {
		long long here = pci_address(w->devices.port_object[i]);

		if (!w->ports[i].rdma)
			return ocs_error_set(err, OCS_USAGE,
					     "%s has no RDMA device, and NCCL's numbers of "
					     "other ports are not known beforehand",
					     w->ports[i].device);
		for (int j = 0; j < w->nports; j++) {
			long long there = pci_address(w->devices.port_object[j]);

			if (i != j && here == there)
				return ocs_error_set(
					err, OCS_USAGE,
					"%s and %s are one PCI device; which "
					"of them NCCL numbers first is not known beforehand",
					w->ports[i].device, w->ports[j].device);
			w->net[i] += there < here;
		}
	}
	return 0;
}

/* The GPU nearest to PORT that is not TAKEN; of equals, channels take turns. */
static int gpu_nearest(struct writer *w, int port, int channel, int taken)
{
	int device = device_of(w, w->devices.port_object[port]), best = -1, equal = 0;
	enum path near = PATH_SYS;

	for (int g = 0; g < w->ngpus; g++)
		if (g != taken && path_between(w, device, w->gpus[g]) < near)
			near = path_between(w, device, w->gpus[g]);
	for (int g = 0; g < w->ngpus; g++)
		equal += g != taken && path_between(w, device, w->gpus[g]) == near;
	channel = equal ? channel % equal : 0; /* never 0: channel_add asks for what there is */
	for (int g = 0; g < w->ngpus && best < 0; g++)
		if (g != taken && path_between(w, device, w->gpus[g]) == near && channel-- == 0)
			best = g;
	return best;
}

/* Where GPU G belongs between the first and the last of a channel: near what it is near
 * to, so that the way crosses from one processor to another as seldom as may be. */
static int place_of(const struct writer *w, int first, int last, int g)
{
	enum path from = path_between(w, w->gpus[first], w->gpus[g]);
	enum path to = path_between(w, w->gpus[last], w->gpus[g]);

	if (from < PATH_SYS && from <= to)
		return (int)from;
	return to < PATH_SYS ? 2 * PATH_SYS - (int)to : PATH_SYS;
}

/* First the GPU at the port in, last the one at the port out.  Returns the number. */
static int gpus_order(struct writer *w, const struct ocs_nccl_channel *channel, int index,
		      int *order)
{
	int first = gpu_nearest(w, channel->in, index, -1), count = 0;
	int last = w->ngpus > 1 ? gpu_nearest(w, channel->out, index, first) : first;

	order[count++] = first;
	for (int place = 0; place <= 2 * PATH_SYS; place++)
		for (int g = 0; g < w->ngpus; g++)
			if (g != first && g != last && place_of(w, first, last, g) == place)
				order[count++] = g;
	if (last != first)
		order[count++] = last;
	return count;
}

static void path_note(const struct writer *w, int port, int gpu, enum path *worst)
{
	enum path path = path_between(w, device_of(w, w->devices.port_object[port]), w->gpus[gpu]);

	if (path > *worst)
		*worst = path;
}

static void channel_add(struct writer *w, const struct ocs_nccl_channel *channel, int index)
{
	int *order = ocs_calloc(w->ngpus, sizeof(int)), count = channel->ngpus, out;

	if (channel->gpus)
		memcpy(order, channel->gpus, (size_t)count * sizeof(int));
	else
		count = gpus_order(w, channel, index, order);
	out = count > 1 ? channel->out : channel->in;
	path_note(w, channel->in, order[0], &w->inter);
	path_note(w, out, order[count - 1], &w->inter);
	ocs_text_add(&w->text, "    <channel>\n      <net dev=\"%x\"/>\n",
		     (unsigned)w->net[channel->in]);
	for (int i = 0; i < count; i++) {
		enum path path =
			i ? path_between(w, w->gpus[order[i - 1]], w->gpus[order[i]]) : PATH_PIX;

		if (path > w->intra)
			w->intra = path;
		ocs_text_add(&w->text, "      <gpu dev=\"%x\"/>\n", (unsigned)order[i]);
	}
	ocs_text_add(&w->text, "      <net dev=\"%x\"/>\n    </channel>\n", (unsigned)w->net[out]);
	free(order);
}

static char *graph_text(struct writer *w, const struct ocs_nccl_channel *channels, int nchannels)
{
	double gbytes = 0;
	int copies;
	char *inside;
	struct ocs_text out = { 0 };

	for (int c = 0; c < nchannels; c++) {
		int mbps = ocs_nccl_port_speed(w->machine, &w->ports[channels[c].out]);
		double speed = mbps > 0 ? mbps / 8000.0 : GBYTES_UNKNOWN;

		gbytes = c == 0 || speed < gbytes ? speed : gbytes;
	}
	copies = (int)ceil(gbytes / GBYTES_CHANNEL);
	if (copies * nchannels > CHANNELS_MAX)
		copies = CHANNELS_MAX / nchannels;
	gbytes /= copies;
	for (int c = 0; c < copies * nchannels; c++)
		channel_add(w, &channels[c % nchannels], c);
	inside = ocs_text_take(&w->text);
	/* Channels are taken as they are written.  Any other crossnic only lets channels change places on
	 * every second node (1 before NCCL 2.26.2, 2 since), or the graph be ignored. */
	ocs_text_add(
		&out,
		"<graphs version=\"1\">\n  <graph id=\"0\" pattern=\"4\" crossnic=\"0\" "
		"nchannels=\"%d\" speedintra=\"%g\" speedinter=\"%g\" latencyinter=\"0\" "
		"typeintra=\"%s\" typeinter=\"%s\" samechannels=\"0\">\n%s  </graph>\n</graphs>\n",
		copies * nchannels, gbytes, gbytes, path_names[w->intra], path_names[w->inter],
		inside);
	free(inside);
	return ocs_text_take(&out);
}

/* Up to 2.29.3 NCCL keeps the order in which the kernel numbered the ports, which their names tell. */
static bool orders_agree(const struct writer *w)
{
	for (int i = 0; i < w->nports; i++)
		for (int j = 0; j < w->nports; j++)
			if (w->net[i] < w->net[j] &&
			    strverscmp(w->ports[i].device, w->ports[j].device) > 0)
				return false;
	return true;
}

static void needs_find(const struct writer *w, int used, bool steered,
		       struct ocs_nccl_graph_needs *needs)
{
	*needs = (struct ocs_nccl_graph_needs){ .gpus = used };
	if (steered) {
		needs->since = OCS_RELEASE(2, 30, 7);
		needs->why = "with one GPU in a node subnets lead the sender to its port";
	} else if (!orders_agree(w)) {
		needs->since = OCS_RELEASE(2, 29, 7);
		needs->why = "the kernel numbers the ports in another order than the PCI bus";
	}
}

char *ocs_nccl_graph(const struct ocs_nccl_machine *machine, const struct ocs_nccl_port *ports,
		     int nports, const struct ocs_nccl_channel *channels, int nchannels,
		     bool steered, struct ocs_nccl_graph_needs *needs, struct ocs_error *err)
{
	struct writer w = { .machine = machine, .ports = ports, .nports = nports };
	bool cross = false, known = true;
	char *text = NULL;
	int used = 0;

	memset(needs, 0, sizeof(*needs));
	for (int c = 0; c < nchannels; c++)
		cross |= channels[c].in != channels[c].out;
	if (nchannels < 1 || nchannels > CHANNELS_MAX) {
		ocs_error_set(err, OCS_USAGE, "%d channels; NCCL takes 1 to %d", nchannels,
			      CHANNELS_MAX);
	} else if (ocs_nccl_devices_find(machine, ports, nports, &w.devices, err) == 0 &&
		   ports_number(&w, err) == 0) {
		gpus_number(&w);
		used = nchannels && channels[0].gpus ? channels[0].ngpus : w.ngpus;
		for (int c = 0; c < nchannels; c++)
			for (int i = 0; channels[c].gpus && i < used; i++)
				known &= channels[c].gpus[i] < w.ngpus;
		if (!known)
			ocs_error_set(err, OCS_USAGE, "the machine has %d GPUs, fewer than XPUs",
				      w.ngpus);
		else if (!w.ngpus)
			ocs_error_set(err, OCS_USAGE, "the machine has no GPU");
		else if (used == 1 && cross && !steered)
			ocs_error_set(err, OCS_USAGE,
				      "with one GPU in a node NCCL takes the same port in both "
				      "directions; subnets in ocs.yaml help");
		else
			text = graph_text(&w, channels, nchannels);
		needs_find(&w, used, used == 1 && cross, needs);
	}
	if (text && ocs_nccl_check_text(text, err) < 0) {
		ocs_error_prefix(err, "the graph file would not be valid");
		free(text);
		text = NULL;
	}
	ocs_text_free(&w.text);
	ocs_nccl_devices_free(&w.devices);
	free(w.gpus);
	free(w.net);
	return text;
}
