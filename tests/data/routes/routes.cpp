// Routes of some pairs of hosts of a platform, as SimGrid computes them: routes FILE HOSTS.
#include <simgrid/s4u.hpp>
#include <cstdio>
#include <cstdlib>

namespace sg = simgrid::s4u;

int main(int argc, char** argv)
{
  sg::Engine engine(&argc, argv);
  engine.load_platform(argv[1]);
  engine.seal_platform();
  auto hosts = engine.get_all_hosts();
  size_t most = std::atoi(argv[2]), step = hosts.size() <= most ? 1 : hosts.size() / most;
  for (size_t i = 0; i < hosts.size(); i += step)
    for (size_t j = 0; j < hosts.size(); j += step) {
      std::vector<sg::Link*> links;
      double latency = 0.0;
      try {
        hosts[i]->route_to(hosts[j], links, &latency);
      } catch (const std::exception& error) {
        std::printf("%s\t%s\tnone\t%s\n", hosts[i]->get_cname(), hosts[j]->get_cname(), error.what());
        continue;
      }
      std::printf("%s\t%s\t%.15g", hosts[i]->get_cname(), hosts[j]->get_cname(), latency);
      for (auto* link : links)
        std::printf("\t%s/%.12g/%d", link->get_cname(), link->get_bandwidth(),
                    link->get_sharing_policy() != sg::Link::SharingPolicy::FATPIPE);
      std::printf("\n");
    }
  return 0;
}
