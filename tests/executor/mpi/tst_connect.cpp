// SPDX-License-Identifier: GPL-3.0-or-later
// Ranks that meet over TCP, and who else may knock: strangers, silent connections, ranks of another run, and ranks
// that announce more than there is.
#include "core/base/diagnostic.h"
#include "executor/mpi/rankhub.h"
#include "executor/mpi/rankproof.h"
#include "executor/mpi/ranksecret.h"
#include "executor/mpi/socketmesh.h"
#include "executor/mpi/tcp.h"
#include "executor/runtime/steadyclock.h"
#include "sanitized.h"
#include "testmain.h"

#include <QTemporaryDir>
#include <QTest>

#include <arpa/inet.h>
#include <cstring>
#include <fstream>
#include <future>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace pipewright;

namespace {

constexpr Nanoseconds deadline = 60'000'000'000, shortly = 400'000'000;
const std::string ourSecret(longestRankSecret, 'a'), otherSecret(longestRankSecret, 'b');

int freePort()
{
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in place{};
    place.sin_family = AF_INET;
    socklen_t length = sizeof place;
    if (bind(socket, reinterpret_cast<sockaddr*>(&place), length) != 0
        || getsockname(socket, reinterpret_cast<sockaddr*>(&place), &length) != 0)
        qFatal("no port is free");
    close(socket);
    return ntohs(place.sin_port);
}

/// -1 when nobody listens there.
int knock(in_addr_t address, int port)
{
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(static_cast<std::uint16_t>(port));
    place.sin_addr.s_addr = address;
    if (connect(socket, reinterpret_cast<sockaddr*>(&place), sizeof place) == 0)
        return socket;
    close(socket);
    return -1;
}

/// As soon as somebody listens; -1 when nobody does for long.
int knockPatiently(int port)
{
    int socket = -1;
    for (int i = 0; i < 10'000 && (socket = knock(htonl(INADDR_LOOPBACK), port)) < 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return socket;
}

in_addr_t outsideAddress() ///< 0 when this machine has only itself
{
    ifaddrs* all = nullptr;
    in_addr_t found = 0;
    if (getifaddrs(&all) != 0)
        return 0;
    for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next)
        if (each->ifa_addr && each->ifa_addr->sa_family == AF_INET)
            if (const in_addr_t address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr.s_addr;
                ntohl(address) >> 24 != 127)
                found = address;
    freeifaddrs(all);
    return found;
}

using Met = std::future<std::unique_ptr<Mesh>>;

Met meet(int rank, int size, int port, const std::string& secret = ourSecret, Nanoseconds limit = deadline)
{
    return std::async(std::launch::async,
                      [=] { return connectSocketMesh(rank, size, "127.0.0.1", port, secret, limit); });
}

std::string failureOf(Met& met)
{
    try {
        met.get();
        return {};
    } catch (const Error& error) {
        return error.what();
    }
}

/// Listens on a loopback port, as whoever was there before rank 0.
struct Listener {
    Listener()
    {
        TcpAddress at;
        auto& four = reinterpret_cast<sockaddr_in&>(at.address);
        four.sin_family = AF_INET;
        four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        at.length = sizeof four;
        socket = listenTcp(at);
        port = ownAddressOf(socket).port();
    }
    ~Listener() { close(socket); }
    int accepted() const ///< waits for a connection
    {
        int come = -1;
        while ((come = accept4(socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) < 0)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return come;
    }
    int socket = -1, port = 0;
};

/// Passes on all that two connections say, until one of them ends; gives what the first one said.
std::string relayed(int from, int to)
{
    std::string said;
    char text[4096];
    for (bool over = false; !over;) {
        for (const auto& [in, out] : {std::pair(from, to), std::pair(to, from)}) {
            const ssize_t got = recv(in, text, sizeof text, MSG_DONTWAIT);
            over = over || got == 0;
            if (got <= 0)
                continue;
            if (in == from)
                said.append(text, static_cast<std::size_t>(got));
            (void)send(out, text, static_cast<std::size_t>(got), MSG_NOSIGNAL);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    close(from);
    close(to);
    return said;
}

constexpr std::size_t helloBytes = 48, challengeBytes = 64; // rankdoor.cpp

/// Both ends of a connection to rank 1, which is played by the test.
struct Impostor {
    Impostor()
    {
        int pair[2] = {-1, -1};
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
        mesh = createSocketMesh(0, {-1, pair[0]});
        socket = pair[1];
    }
    ~Impostor() { close(socket); }
    void say(const Message& message) const
    {
        QCOMPARE(write(socket, &message, sizeof message), ssize_t(sizeof message));
    }

    std::unique_ptr<Mesh> mesh;
    int socket = -1;
};

} // namespace

class TestConnect : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void ranksOfOneSecretMeet()
    {
        const int port = freePort();
        std::vector<Met> all;
        for (int r = 0; r < 4; ++r)
            all.push_back(meet(r, 4, port));
        for (int r = 0; r < 4; ++r)
            QCOMPARE(all[r].get()->rank(), r);
    }

    void aRankOfAnotherSecretIsNotLetIn()
    {
        const int port = freePort();
        Met first = meet(0, 2, port, ourSecret, shortly);
        Met other = meet(1, 2, port, otherSecret, shortly);
        const std::string why = failureOf(first), whyNot = failureOf(other);
        QVERIFY2(why.find("missing are ranks 1") != std::string::npos, why.c_str());
        QVERIFY2(why.find("another secret") != std::string::npos, why.c_str());
        QVERIFY2(whyNot.find("another secret") != std::string::npos, whyNot.c_str());
    }

    void whoHoldsThePortLearnsNothingAndIsFound()
    {
        const Listener stranger;
        Met other = meet(1, 2, stranger.port);
        const int connection = stranger.accepted();
        std::string said(helloBytes, 0);
        QVERIFY(receiveAll(connection, said.data(), said.size(), steadyNow() + deadline));
        const std::string guess(challengeBytes, 'x');
        QVERIFY(sendAll(connection, guess.data(), guess.size(), steadyNow() + deadline));
        const std::string why = failureOf(other);
        QVERIFY2(why.find("who listens as rank 0 knows another secret") != std::string::npos, why.c_str());
        char more = 0;
        QVERIFY(!receiveAll(connection, &more, 1, steadyNow() + shortly)); // no proof came
        QVERIFY(said.find(ourSecret) == std::string::npos);
        close(connection);
    }

    /// What a rank once said lets nobody in, here or in another run with the same secret.
    void whatWasSaidCannotBeSaidAgain()
    {
        const Listener middle;
        const int port = freePort();
        std::string said;
        {
            Met first = meet(0, 2, port, ourSecret, shortly);
            Met other = meet(1, 2, middle.port, ourSecret, deadline);
            said = relayed(middle.accepted(), knockPatiently(port));
            QVERIFY(!failureOf(other).empty()); // it takes the run at that port for another one
            QVERIFY(failureOf(first).find("another secret") != std::string::npos);
        }
        Met first = meet(0, 2, port, ourSecret, shortly);
        Met other = meet(1, 2, port, otherSecret, shortly);
        const int again = knockPatiently(port);
        (void)send(again, said.data(), said.size(), MSG_NOSIGNAL);
        QVERIFY(!failureOf(other).empty());
        QVERIFY(failureOf(first).find("missing are ranks 1") != std::string::npos);
        close(again);
    }

    void anAnswerIsGoodForOneConnection()
    {
        const RankKey key = rankKey(ourSecret, 2, 1234);
        const RankConversation said{1, 0, 99, freshNonce(), freshNonce()};
        const RankProof proof = prove(Prover::Comer, said, key);
        QVERIFY(isProof(proof, Prover::Comer, said, key));
        QVERIFY(!isProof(proof, Prover::Listener, said, key));
        for (const RankConversation& other : {RankConversation{2, 0, 99, said.comersNonce, said.listenersNonce},
                                              RankConversation{1, 2, 99, said.comersNonce, said.listenersNonce},
                                              RankConversation{1, 0, 98, said.comersNonce, said.listenersNonce},
                                              RankConversation{1, 0, 99, freshNonce(), said.listenersNonce},
                                              RankConversation{1, 0, 99, said.comersNonce, freshNonce()}})
            QVERIFY(!isProof(proof, Prover::Comer, other, key));
        QVERIFY(!isProof(proof, Prover::Comer, said, rankKey(ourSecret, 2, 1235)));
        QVERIFY(!isProof(proof, Prover::Comer, said, rankKey(otherSecret, 2, 1234)));
        QVERIFY(freshSecret() != freshSecret());
    }

    /// The kernel drops what comes to a listener that lets nobody in.
    void connectingEndsInTime()
    {
        const Listener full;
        listen(full.socket, 0);
        std::vector<int> waiting;
        const TcpAddress at = ownAddressOf(full.socket);
        int last = 0, why = 0;
        for (int i = 0; i < 20 && last >= 0; ++i) {
            last = connectTcp(at, steadyNow() + shortly);
            why = errno;
            waiting.push_back(last);
        }
        QCOMPARE(last, -1);
        QCOMPARE(why, ETIMEDOUT);
        for (const int socket : waiting)
            if (socket >= 0)
                close(socket);
    }

    void aHostThatIsNowhereIsNamed()
    {
        try {
            addressesOf("nowhere.invalid", 1, steadyNow() + deadline);
            QFAIL("it was found");
        } catch (const Error& error) {
            QVERIFY(std::string(error.what()).find("MASTER_ADDR nowhere.invalid") != std::string::npos);
        }
        QVERIFY_THROWS_EXCEPTION(Error, addressesOf("nowhere.invalid", 1, steadyNow())); // at once
        QCOMPARE(addressesOf("127.0.0.1", 7, steadyNow() + deadline).front().port(), 7);
    }

    /// Connections that say nothing, or something else, hold up nobody, however many there are.
    void strangersHoldUpNobody()
    {
        const int port = freePort();
        Met first = meet(0, 2, port);
        std::vector<int> strangers;
        for (int i = 0; i < 300; ++i) {
            strangers.push_back(knockPatiently(port));
            QVERIFY(strangers.back() >= 0);
        }
        for (std::size_t i = 0; i < strangers.size(); i += 3)
            (void)send(strangers[i], "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
        QCOMPARE(meet(1, 2, port).get()->rank(), 1);
        QCOMPARE(first.get()->size(), 2);
        for (const int socket : strangers)
            close(socket);
    }

    void ranksOfOneMachineCannotBeReachedFromOutside()
    {
        const in_addr_t outside = outsideAddress();
        if (outside == 0)
            QSKIP("this machine has no address but its own");
        const int port = freePort();
        Met first = meet(0, 2, port, ourSecret, shortly);
        const int inside = knockPatiently(port);
        QCOMPARE(knock(outside, port), -1);
        close(inside);
        failureOf(first);
    }

    void theSecretIsThisUsersOwn()
    {
        const QTemporaryDir folder;
        const std::string state = folder.path().toStdString();
        const auto lookup = [&](const char* name) {
            return std::strcmp(name, "XDG_STATE_HOME") == 0 ? state.c_str() : nullptr;
        };
        std::vector<std::future<std::string>> known; // whoever comes first makes it
        for (int i = 0; i < 8; ++i)
            known.push_back(std::async(std::launch::async, [&] { return rankSecret(lookup); }));
        const std::string secret = rankSecret(lookup);
        QCOMPARE(secret.size(), longestRankSecret);
        for (std::future<std::string>& each : known)
            QCOMPARE(each.get(), secret);
        const std::string file = state + "/pipewright/rank-secret";
        struct stat status {};
        QCOMPARE(stat(file.c_str(), &status), 0);
        QCOMPARE(status.st_mode & 0777, mode_t{0600});
        chmod(file.c_str(), 0644);
        QVERIFY_THROWS_EXCEPTION(Error, rankSecret(lookup));
        QVERIFY_THROWS_EXCEPTION(Error, rankSecret([](const char*) -> const char* { return nullptr; }));
        const auto given = [](const char* text) {
            return rankSecret(
                [text](const char* name) { return std::strcmp(name, rankSecretVariable) == 0 ? text : nullptr; });
        };
        QCOMPARE(given("sixteen letters."), std::string("sixteen letters."));
        QVERIFY_THROWS_EXCEPTION(Error, given("short"));
    }

    void impossibleMessagesEndTheRun_data()
    {
        QTest::addColumn<qint64>("bytes");
        QTest::newRow("fewer than none") << qint64{-1};
        QTest::newRow("more than there is") << (qint64{1} << 62);
        QTest::newRow("more than records are") << (qint64{1} << 31);
    }
    void impossibleMessagesEndTheRun()
    {
        QFETCH(qint64, bytes);
        Impostor impostor;
        impostor.say({.kind = 2'000'000'000, .bytes = bytes});
        std::string why;
        try {
            const RankHub hub(std::move(impostor.mesh), deadline);
        } catch (const Error& error) {
            why = error.what();
        }
        QVERIFY2(why.find(std::to_string(bytes)) != std::string::npos, why.c_str());
    }

    void bytesThatAreOnlyAnnouncedTakeNoMemory()
    {
        if (addressSanitized || threadSanitized)
            QSKIP("sanitizers have memory of their own for each byte");
        const auto mostSoFar = [] { // KiB
            std::ifstream status("/proc/self/status");
            std::string line;
            while (std::getline(status, line) && !line.starts_with("VmHWM:")) {
            }
            return line.empty() ? 0 : std::stol(line.substr(line.find_first_of("0123456789")));
        };
        const long before = mostSoFar();
        QVERIFY(before > 0);
        Impostor impostor;
        impostor.say({.kind = RankHub::Posted, .bytes = std::int64_t{1} << 30});
        shutdown(impostor.socket, SHUT_WR);
        QVERIFY_THROWS_EXCEPTION(Error, RankHub(std::move(impostor.mesh), deadline));
        QVERIFY(mostSoFar() - before < 256 * 1024);
    }
};

PIPEWRIGHT_TEST(TestConnect, QCoreApplication)
#include "tst_connect.moc"
