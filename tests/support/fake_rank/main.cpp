// SPDX-License-Identifier: Apache-2.0
// accrue-fake-rank: speaks a rank's side of the protocol without LibTorch and trains nothing, at the speed and with the
// faults that its script names.
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "channel.h"
#include "script.h"
#include "training.h"
#include "world.h"

namespace {

struct Arguments {
  std::string plan;
  std::int64_t rank = -1;
  int events_fd = -1;
  int store_fd = -1;
};

Arguments read_arguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--plan") arguments.plan = argv[i + 1];
    if (name == "--rank") arguments.rank = std::atoll(argv[i + 1]);
    if (name == "--events-fd") arguments.events_fd = std::atoi(argv[i + 1]);
    if (name == "--store-fd") arguments.store_fd = std::atoi(argv[i + 1]);
  }
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  if (argc == 2 && std::string(argv[1]) == "--probe") {
    std::puts(R"({"torch_version":"none","backends":["shm"]})");
    return 0;
  }
  const Arguments arguments = read_arguments(argc, argv);
  std::ifstream file(arguments.plan);
  std::stringstream text;
  text << file.rdbuf();
  const auto order = accrue::run_order_from_json(text.str());
  if (!order || arguments.rank < 0 || arguments.events_fd < 0) {
    std::fprintf(stderr, "usage: accrue-fake-rank --plan FILE --rank R --events-fd F [--store-fd S]\n%s\n",
                 order ? "" : order.error().text().c_str());
    return 2;
  }
  auto script = fake_rank::Script::from_environment(arguments.rank);
  const auto index = static_cast<std::size_t>(arguments.rank);
  const auto late = script.at("late", 0);
  fake_rank::Channel channel({arguments.events_fd, arguments.rank,
                              index < order->first_seq.size() ? order->first_seq[index] : 0, order->origin_ns,
                              script.has("deaf"), late ? std::atoll(late->value.c_str()) : 0});
  fake_rank::World world(arguments.rank, order->plan.grid.world(), arguments.store_fd);
  return fake_rank::Training(*order, arguments.rank, std::move(script), channel, world).run();
}
