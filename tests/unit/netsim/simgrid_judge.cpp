// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (C) 2026 The slurm-ocs authors

// The finish times of a case as SimGrid has them; used by test_netsim_judges.py only.  Every flow
// has two hosts of its own and a route over its links.

#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <vector>

#include <simgrid/s4u.hpp>
#include <simgrid/version.h>

namespace sg = simgrid::s4u;

struct Flow {
	double start, bytes;
	std::vector<int> links;
	double ended = -1;
};
struct Change {
	double time, rate;
	int link;
};

static std::vector<double> rates;
static std::vector<Flow> flows;
static std::vector<Change> changes;

static void case_read(const char *path)
{
	std::ifstream file(path);
	std::string line, verb;

	while (std::getline(file, line)) {
		std::istringstream words(line);
		words >> verb;
		if (verb == "link") {
			rates.emplace_back();
			words >> rates.back();
		} else if (verb == "flow") {
			Flow flow;
			int count, link;
			words >> flow.start >> flow.bytes >> count;
			while (words >> link)
				flow.links.push_back(link);
			for (; count > 0; count--)
				flows.push_back(flow);
		} else if (verb == "change") {
			Change change;
			words >> change.time >> change.link >> change.rate;
			changes.push_back(change);
		}
	}
}

// From SimGrid 4.0 on links have a model only inside of the zone that every engine has.
static sg::NetZone *zone_make(sg::Engine &engine)
{
#if SIMGRID_VERSION >= 40000
	return engine.get_netzone_root()->add_netzone_full("zone");
#else
	(void)engine;
	return sg::create_full_zone("zone");
#endif
}

int main(int argc, char **argv)
{
	sg::Engine engine(&argc, argv);
	auto *zone = zone_make(engine);
	std::vector<sg::Link *> links;
	std::vector<sg::Host *> hosts;

	case_read(argv[1]);
	for (size_t k = 0; k < rates.size(); k++)
		links.push_back(zone->create_link("l" + std::to_string(k), rates[k])->set_latency(0));
	for (size_t k = 0; k < 2 * flows.size(); k++)
		hosts.push_back(zone->create_host("h" + std::to_string(k), 1e9));
	for (size_t k = 0; k < flows.size(); k++) {
		std::vector<sg::LinkInRoute> route;
		for (int link : flows[k].links)
			route.emplace_back(links[link]);
		zone->add_route(hosts[2 * k]->get_netpoint(), hosts[2 * k + 1]->get_netpoint(),
				nullptr, nullptr, route, false);
	}
	zone->seal();
	for (size_t k = 0; k < flows.size(); k++) {
		sg::Actor::create("a", hosts[2 * k], [k, &hosts]() {
			if (flows[k].start > 0)
				sg::this_actor::sleep_until(flows[k].start);
			sg::Comm::sendto(hosts[2 * k], hosts[2 * k + 1],
					 static_cast<uint64_t>(flows[k].bytes));
			flows[k].ended = sg::Engine::get_clock();
		});
	}
	for (const Change &change : changes) {
		sg::Actor::create("c", hosts[0], [change, &links]() {
			sg::this_actor::sleep_until(change.time);
			links[change.link]->set_bandwidth(change.rate);
		});
	}
	engine.run();
	for (const Flow &flow : flows)
		std::printf("%.15g\n", flow.ended);
	return 0;
}
