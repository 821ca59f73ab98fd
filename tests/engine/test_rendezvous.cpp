// SPDX-License-Identifier: Apache-2.0
// Identity of a rank from each launcher's environment, and the parts of the meeting that need no second process.
#include <sys/socket.h>
#include <unistd.h>

#include <QDir>
#include <QTest>
#include <cstdio>
#include <map>
#include <sstream>
#include <torch/csrc/distributed/c10d/FileStore.hpp>

#include "accrue/comm/mesh.h"
#include "accrue/comm/rendezvous.h"
#include "comm/gloo_thread.h"
#include "comm/guarded_store.h"
#include "comm/host_identity.h"
#include "comm/local_address.h"
#include "comm/slurm_hosts.h"
#include "comm/store_socket.h"
#include "support/refusals.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_rendezvous {

using namespace accrue;

namespace {

using Table = std::map<std::string, std::string>;
using accrue::test::current_row;
using accrue::test::Rows;

Result<RankIdentity> identity_in(const Table& table, int store_fd = -1) {
  return rank_identity(
      [&](const char* name) -> std::optional<std::string> {
        const auto found = table.find(name);
        if (found == table.end()) return std::nullopt;
        return found->second;
      },
      store_fd);
}

}  // namespace

class TestRendezvous : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_empty_environment_is_a_world_of_one() {
    const auto identity = identity_in({});
    QVERIFY(identity);
    QCOMPARE(identity->source, std::string("single"));
    QCOMPARE(identity->world, 1);
    const auto joined = Rendezvous::join(*identity, {});
    QVERIFY(joined);
    const auto axis = (*joined)->communicator(RankGrid{}, Axis::data);
    QVERIFY(axis);
    QCOMPARE((*axis)->backend(), std::string("single"));
    QCOMPARE((*axis)->size(), 1);
  }

  void reads_the_supervisor() {
    const Table table = {{"RANK", "0"},
                         {"WORLD_SIZE", "2"},
                         {"LOCAL_RANK", "0"},
                         {"LOCAL_WORLD_SIZE", "2"},
                         {"MASTER_ADDR", "127.0.0.1"},
                         {"MASTER_PORT", "4711"}};
    const auto identity = identity_in(table, 7);
    QVERIFY(identity);
    QCOMPARE(identity->source, std::string("accrue"));
    QCOMPARE(identity->store_fd, 7);
    QCOMPARE(identity->master_port, 4711);
    QCOMPARE(identity->local_world, 2);
    QVERIFY(!identity->agent_store);
  }

  void a_handed_store_needs_no_port() {
    const auto identity = identity_in({{"RANK", "1"}, {"WORLD_SIZE", "2"}}, 7);
    QVERIFY2(identity, identity ? "" : identity.error().text().c_str());
    QCOMPARE(identity->store_fd, 7);
  }

  void reads_the_secret_of_the_run() {
    const auto identity =
        identity_in({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "4711"}, {"ACCRUE_RUN_SECRET", "between us"}});
    QVERIFY(identity);
    QCOMPARE(identity->secret, std::string("between us"));
  }

  void half_an_identity_is_an_error_data() {
    const Rows<std::string, std::string> row;
    row("no rank", "WORLD_SIZE", "RANK");
    row("no world", "RANK", "WORLD_SIZE");
  }
  void half_an_identity_is_an_error() {
    const auto [set, missing] = current_row<std::string, std::string>();
    const auto identity = identity_in({{set, "1"}, {"MASTER_PORT", "4711"}});
    QVERIFY(!identity);
    QCOMPARE(identity.error().code, ErrorCode::config);
    const std::string said = set + " is set, but " + missing + " is not";
    QVERIFY2(identity.error().text().find(said) != std::string::npos, identity.error().text().c_str());
    // Slurm says both under its own names; a script's export of one more does not matter.
    QVERIFY(identity_in({{set, "1"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_JOB_NODELIST", "a"}}));
  }

  void a_library_waits_half_an_hour_for_its_peers() {
    QVERIFY(CommOptions().timeout == std::chrono::minutes(30));
    QCOMPARE(CommOptions().timeout_option, std::string("CommOptions::timeout"));
  }

  /// Anyone who reaches a store can open it: a stranger's entries are ignored, and unknown names cannot be read.
  void a_guarded_store_takes_no_strangers_values() {
    const std::string file = QDir::temp().filePath(QStringLiteral("accrue-store-%1").arg(::getpid())).toStdString();
    const auto bytes = [](const std::string& text) { return std::vector<std::uint8_t>(text.begin(), text.end()); };
    auto open = c10::make_intrusive<c10d::FileStore>(file, -1);
    GuardedStore ours(open, "secret");
    GuardedStore stranger(open, "guess");
    ours.set("plan", bytes("mine"));
    QVERIFY(ours.get("plan") == bytes("mine"));
    QVERIFY(ours.check({"plan"}));
    QVERIFY(!open->check({"plan"}));
    QVERIFY(!stranger.check({"plan"}));
    std::string name;
    for (const std::string& key : open->listKeys()) {
      QVERIFY2(key.find("plan") == std::string::npos, key.c_str());
      if (key.size() >= 64) name = key.substr(key.size() - 64);
    }
    QCOMPARE(name.size(), std::size_t{64});
    open->set(name, bytes("a value of some length that a stranger has made up"));
    QVERIFY_THROWS_EXCEPTION(std::runtime_error, ours.get("plan"));
    ours.set("other", bytes("mine"));
    open->set(name, bytes("short"));
    QVERIFY_THROWS_EXCEPTION(std::runtime_error, ours.get("plan"));
    ours.set("plan", bytes("mine again"));
    QVERIFY(ours.get("plan") == bytes("mine again"));
    QCOMPARE(ours.add("count", 2), 2);
    QVERIFY(ours.deleteKey("plan"));
    std::remove(file.c_str());
  }

  void a_descriptor_that_is_no_memory_is_refused() {
    RankIdentity identity{.rank = 0, .world = 2, .store_fd = STDIN_FILENO, .source = "accrue"};
    const auto joined = Rendezvous::join(identity, {});
    VERIFY_FAILS(joined, ErrorCode::config, "memfd_create");
  }

  void reads_torchrun_and_its_agent_store() {
    const auto identity = identity_in({{"RANK", "3"},
                                       {"WORLD_SIZE", "4"},
                                       {"LOCAL_RANK", "1"},
                                       {"LOCAL_WORLD_SIZE", "2"},
                                       {"MASTER_ADDR", "node7"},
                                       {"MASTER_PORT", "29500"},
                                       {"TORCHELASTIC_RUN_ID", "none"},
                                       {"TORCHELASTIC_RESTART_COUNT", "2"},
                                       {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                       {"SLURM_PROCID", "0"},
                                       {"SLURM_NTASKS", "1"}});
    QVERIFY(identity);
    QCOMPARE(identity->source, std::string("torchrun"));
    QCOMPARE(identity->rank, 3);
    QCOMPARE(identity->local_rank, 1);
    QCOMPARE(identity->master_addr, std::string("node7"));
    QVERIFY(identity->agent_store);
    QCOMPARE(identity->attempt, std::string("2"));
  }

  void reads_slurm_and_derives_the_meeting_point() {
    Table table = {{"SLURM_PROCID", "5"},
                   {"SLURM_NTASKS", "8"},
                   {"SLURM_LOCALID", "1"},
                   {"SLURM_NTASKS_PER_NODE", "4"},
                   {"SLURM_JOB_NUM_NODES", "2"},
                   {"SLURM_JOB_ID", "1234567"},
                   {"SLURM_JOB_NODELIST", "gpu[07-08]"}};
    auto identity = identity_in(table);
    QVERIFY(identity);
    QCOMPARE(identity->source, std::string("slurm"));
    QCOMPARE(identity->rank, 5);
    QCOMPARE(identity->local_world, 4);
    QCOMPARE(identity->master_addr, std::string("gpu07"));
    QCOMPARE(identity->master_port, 20000 + 4567);

    table["MASTER_ADDR"] = "10.0.0.1";
    table["MASTER_PORT"] = "1111";
    table["SLURM_JOB_NUM_NODES"] = "1";
    identity = identity_in(table);
    QVERIFY(identity);
    QCOMPARE(identity->master_addr, std::string("10.0.0.1"));
    QCOMPARE(identity->master_port, 1111);
    QCOMPARE(identity->local_world, 8);
  }

  void reads_mpi_launchers_data() {
    const Rows<std::string, std::string> row;
    row("Open MPI",
        "OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_RANK "
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        "open-mpi");
    row("MVAPICH",
        "MV2_COMM_WORLD_RANK MV2_COMM_WORLD_SIZE MV2_COMM_WORLD_LOCAL_RANK "
        "MV2_COMM_WORLD_LOCAL_SIZE",
        "mpich");
    row("MPICH", "PMI_RANK PMI_SIZE MPI_LOCALRANKID MPI_LOCALNRANKS", "mpich");
  }
  void reads_mpi_launchers() {
    const auto [prefixes, source] = current_row<std::string, std::string>();
    std::istringstream names(prefixes);
    Table table;
    for (const char* value : {"2", "4", "0", "2"}) {
      std::string name;
      names >> name;
      table[name] = value;
    }
    const auto without = identity_in(table);
    QVERIFY(!without);
    QVERIFY2(without.error().text().find("MASTER_PORT is not set") != std::string::npos,
             without.error().text().c_str());
    table["MASTER_ADDR"] = "head";
    table["MASTER_PORT"] = "2000";
    const auto identity = identity_in(table);
    QVERIFY(identity);
    QCOMPARE(identity->source, source);
    QCOMPARE(identity->rank, 2);
    QCOMPARE(identity->world, 4);
    QCOMPARE(identity->local_rank, 0);
    QCOMPARE(identity->local_world, 2);
    QCOMPARE(identity->master_addr, std::string("head"));
  }

  void refuses_nonsense_data() {
    const Rows<std::string, std::string> row;
    row("a rank that is no number", "RANK", "zero");
    row("a rank with a tail", "RANK", "1x");
    row("an empty rank", "RANK", "");
    row("a rank outside the world", "RANK", "2");
    row("a negative rank", "RANK", "-1");
    row("an empty world", "WORLD_SIZE", "0");
    row("a port beyond the last", "MASTER_PORT", "65536");
  }
  void refuses_nonsense() {
    const auto [name, value] = current_row<std::string, std::string>();
    Table table = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "4711"}};
    QVERIFY(identity_in(table));
    table[name] = value;
    const auto identity = identity_in(table);
    VERIFY_FAILS(identity, ErrorCode::config, name + "=" + value);
  }

  void finds_the_first_host_of_a_nodelist_data() {
    const Rows<std::string, std::string> row;
    row("one host", "login", "login");
    row("several", "a1,b2,c3", "a1");
    row("range", "node[003-017,20],login", "node003");
    row("list", "n[5,7]-ib", "n5-ib");
    row("two dimensions", "r[1-2]c[04-09]", "r1c04");
    row("open bracket", "n[5,7", "");
    row("empty bracket", "n[]", "");
    row("empty", "", "");
  }
  void finds_the_first_host_of_a_nodelist() {
    const auto [list, first] = current_row<std::string, std::string>();
    QCOMPARE(first_slurm_host(list).value_or(""), first);
  }

  void a_host_says_the_same_of_itself_twice() {
    const HostIdentity here = this_host();
    const auto read = HostIdentity::decode(here.encode());
    QVERIFY(read);
    QCOMPARE(read->place, here.place);
    QCOMPARE(read->host, here.host);
    QCOMPARE(read->pid, ::getpid());
    QVERIFY(read->instructions == instruction_set());
    QVERIFY(!HostIdentity::decode("half\na line"));
    QVERIFY(!HostIdentity::decode("host\nplace\n12"));
    QCOMPARE(read->tiles_pay, tiles_pay());
    HostIdentity other = here;
    other.tiles_pay = !here.tiles_pay;
    QCOMPARE(HostIdentity::decode(other.encode())->tiles_pay, other.tiles_pay);
    QVERIFY(!HostIdentity::decode("host\nplace\n12\n99 0"));
    QVERIFY(!HostIdentity::decode("host\nplace\n12\n2"));
  }

  void containers_of_one_machine_know_each_other() {
    const HostIdentity here = this_host();
    const std::string boot = here.place.substr(0, here.place.find(' '));
    QVERIFY(here.same_machine({.place = boot + " container 4711"}));
    QVERIFY(!here.same_machine({.place = "another " + here.place.substr(boot.size() + 1)}));
    QVERIFY(!HostIdentity{.place = " host 1"}.same_machine({.place = " host 1"}));  // nothing is known
  }

  void ranks_listen_where_the_others_reach_them_data() {
    const Rows<std::string, bool, std::vector<std::string>, std::string> row;
    row("the way to another host", "node0", false, {"10.0.0.2"}, "eth0 (10.0.0.2)");
    row("no way to the first address", "node0", false, {"", "10.1.0.2"}, "ib0 (10.1.0.2)");
    // Its own name leads there on rank 0 alone.
    row("a host that is named 127.0.1.1", "node0", false, {"127.0.0.1"}, "the others are eth0 (10.0.0.2), ib0");
    row("the same on one machine", "node0", true, {"127.0.0.1"}, "the others are eth0 (10.0.0.2), ib0");
    // Containers that share a network, as with --network=host.
    row("127.0.0.1", "127.0.0.1", true, {"127.0.0.1"}, "lo (127.0.0.1)");
    row("localhost", "localhost", true, {"::1", "127.0.0.1"}, "lo (::1)");
    row("a tunnel between machines", "127.0.0.1", false, {"127.0.0.1"}, "the others are eth0 (10.0.0.2), ib0");
    row("an address of this machine", "10.0.0.2", true, {"10.0.0.2"}, "eth0 (10.0.0.2)");
    row("no way at all", "node0", false, {"", ""}, "no route leads to MASTER_ADDR=node0");
  }
  void ranks_listen_where_the_others_reach_them() {
    const auto [host, one_machine, sources, says] =
        current_row<std::string, bool, std::vector<std::string>, std::string>();
    const std::vector<OwnAddress> own = {
        {{"127.0.0.1", "lo"}, true}, {{"::1", "lo"}, true}, {{"10.0.0.2", "eth0"}}, {{"10.1.0.2", "ib0"}}};
    const auto chosen = choose_address(host, one_machine, sources, own);
    const std::string text = chosen ? chosen->text() : chosen.error().text();
    QVERIFY2(chosen ? text == says : text.find(says) != std::string::npos, text.c_str());
  }

  void an_interface_is_a_choice_where_there_are_other_hosts_or_the_user_has_made_one_data() {
    const Rows<bool, std::string, bool> row;  // one host, GLOO_SOCKET_IFNAME, whether the message names that variable
    row("one host", true, "", false);
    row("one host, as accrue-run sets it", true, "lo", false);
    row("one host, and an interface of the user's", true, "eth9", true);
    row("several hosts", false, "", true);
    row("several hosts, and an interface that reaches none", false, "lo", true);
  }
  void an_interface_is_a_choice_where_there_are_other_hosts_or_the_user_has_made_one() {
    const auto [one_host, chosen, named] = current_row<bool, std::string, bool>();
    const std::string hint = unconnected_hint(one_host, chosen.empty() ? nullptr : chosen.c_str());
    QCOMPARE(hint.find("GLOO_SOCKET_IFNAME") != std::string::npos, named);
  }

  void the_store_listens_where_it_is_told_and_nowhere_else() {
    const auto fd = listen_for_store("127.0.0.1", 0);
    QVERIFY(fd);
    QVERIFY(*fd);
    const auto elsewhere = listen_for_store("192.0.2.1", 0);  // an address reserved for documentation
    QVERIFY(elsewhere);
    QVERIFY(!*elsewhere);
    const auto nowhere = listen_for_store("no-such-host.invalid", 0);
    QVERIFY(!nowhere);
    QVERIFY2(nowhere.error().text().find("does not resolve") != std::string::npos, nowhere.error().text().c_str());
  }

  void a_mesh_of_one_rank_speaks_for_itself() {
    const auto joined = Rendezvous::join(RankIdentity{.source = "single"}, {});
    QVERIFY(joined);
    const auto built = Mesh::build(**joined, RankGrid{});
    QVERIFY(built);
    for (const Mesh& mesh : {*built, Mesh()}) {
      QVERIFY(mesh.speaks() && mesh.writes() && mesh.first_stage() && mesh.last_stage() && mesh.has(Axis::embedding));
      QCOMPARE(mesh.world().size(), 1);
      QCOMPARE(mesh.communicators().size(), std::size_t{1});
    }
  }

  /// Texts that end one of Gloo's threads are distinguished from texts that quote them.
  void texts_of_gloo_are_known() {
    QVERIFY(is_text_of_gloo("[/src/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer"));
    QVERIFY(is_text_of_gloo("[enforce fail at gloo/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes"));
    QVERIFY(!is_text_of_gloo("rank 1 is gone: [/src/gloo/transport/tcp/pair.cc:534] Connection closed by peer"));
    QVERIFY(!is_text_of_gloo("[rank 1] [/src/gloo/transport/tcp/pair.cc:534] Connection closed by peer"));
    QVERIFY(!is_text_of_gloo("[/src/gloo/context.cc:12] no device"));
    QVERIFY(!is_text_of_gloo(""));
  }

  void a_grid_of_another_size_is_refused() {
    const auto joined = Rendezvous::join(RankIdentity{.source = "single"}, {});
    QVERIFY(joined);
    const auto axis = (*joined)->communicator(RankGrid{.data = 2}, Axis::data);
    QVERIFY(!axis);
    QCOMPARE(axis.error().code, ErrorCode::config);
    QVERIFY(!(*joined)->communicator("pair", {{0, 1}}));
    QVERIFY(!(*joined)->communicator("twice", {{0}, {0}}));
  }
};

ACCRUE_TEST_MAIN(TestRendezvous)

}  // namespace test_rendezvous
#include "test_rendezvous.moc"
