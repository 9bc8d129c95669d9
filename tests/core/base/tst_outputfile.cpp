// SPDX-License-Identifier: GPL-3.0-or-later
// What an output file may replace, what it must leave alone, and what is left when it is not kept.
#include "core/base/diagnostic.h"
#include "core/base/outputfile.h"
#include "testmain.h"

#include <QTemporaryDir>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace pipewright;
namespace fs = std::filesystem;

namespace {

std::vector<std::string>* synced = nullptr; ///< what is synced meanwhile

} // namespace

/// The C library's, for the program of these tests: it remembers what was synced.
extern "C" int fsync(int file)
{
    if (synced != nullptr) {
        std::error_code error;
        synced->push_back(fs::read_symlink("/proc/self/fd/" + std::to_string(file), error).filename().string());
    }
    return static_cast<int>(::syscall(SYS_fsync, file));
}

class TestOutputFile : public QObject {
    Q_OBJECT

    std::optional<QTemporaryDir> m_folder;

    std::string at(const char* name) const { return m_folder->filePath(name).toStdString(); }

    static void put(const std::string& path, const char* text) { std::ofstream(path) << text; }

    static std::string read(const std::string& path)
    {
        std::ifstream file(path);
        return {std::istreambuf_iterator<char>(file), {}};
    }

    static void write(const std::string& path, const char* text, bool overwrite)
    {
        OutputFile file(path, overwrite);
        file.write(text);
        file.keep();
    }

    std::ptrdiff_t files() const
    {
        return std::distance(fs::directory_iterator(m_folder->path().toStdString()), fs::directory_iterator());
    }

    /// What is said when `path` is to be replaced; "" when it may be.
    static QString refusal(const std::string& path)
    {
        try {
            write(path, "new", true);
        } catch (const Error& error) {
            return error.diagnostics().front().hint.empty() ? QString("no remedy") : error.what();
        }
        return {};
    }

private Q_SLOTS:
    void init() { m_folder.emplace(); }

    void aFileIsReplacedOnlyWhenAsked()
    {
        write(at("a"), "old", false);
        QCOMPARE(read(at("a")), std::string("old"));
        QVERIFY_THROWS_EXCEPTION(Error, write(at("a"), "new", false));
        QCOMPARE(read(at("a")), std::string("old"));
        QCOMPARE(::chmod(at("a").c_str(), 0640), 0);
        write(at("a"), "new", true);
        QCOMPARE(read(at("a")), std::string("new"));
        struct stat status {};
        QCOMPARE(::stat(at("a").c_str(), &status), 0);
        QCOMPARE(int(status.st_mode & 07777), 0640);
        QCOMPARE(files(), 1);
    }

    void theFileIsSyncedAndItsFolderAfterTheRename()
    {
        std::vector<std::string> names;
        synced = &names;
        write(at("durable"), "text", false);
        synced = nullptr;
        QCOMPARE(names.size(), std::size_t{2});
        QVERIFY2(names[0].starts_with("durable.unfinished-"), names[0].c_str()); // before it has its name
        QCOMPARE(names[1], fs::path(m_folder->path().toStdString()).filename().string());
    }

    void anOutputThatIsNotKeptLeavesTheOldFile()
    {
        put(at("a"), "old");
        {
            OutputFile file(at("a"), true, {"-wal"});
            file.write("new");
            put(file.temporary() + "-wal", "log");
            QCOMPARE(files(), 3);
        }
        QCOMPARE(files(), 1);
        QCOMPARE(read(at("a")), std::string("old"));
    }

    void whatAKilledProcessLeftIsRemovedByTheNextOne()
    {
        const pid_t child = ::fork();
        if (child == 0) {
            OutputFile file(at("a"), false, {"-wal"});
            put(file.temporary() + "-wal", "log");
            ::_exit(0);
        }
        QCOMPARE(::waitpid(child, nullptr, 0), child);
        QCOMPARE(files(), 2);
        const OutputFile living(at("a"), false, {"-wal"});
        QCOMPARE(files(), 1);
        // One that is being written stays, and so do files that only look alike.
        for (const char* name : {"a.backup", "a.unfinished-", "a.unfinished-123456", "a.unfinished-notes1"})
            put(at(name), "kept");
        write(at("a"), "done", false);
        QCOMPARE(files(), 6);
        QVERIFY(fs::exists(living.temporary()));
    }

    void aFileThatAppearsMeanwhileIsNotReplaced()
    {
        OutputFile file(at("a"), false);
        put(at("a"), "another's");
        QVERIFY_THROWS_EXCEPTION(Error, file.keep());
        QCOMPARE(read(at("a")), std::string("another's"));
    }

    void linksAreFollowed()
    {
        fs::create_directory(at("folder"));
        put(at("folder/a"), "old");
        fs::create_symlink("folder/a", at("link"));
        fs::create_symlink("link", at("link of a link"));
        QVERIFY_THROWS_EXCEPTION(Error, write(at("link of a link"), "new", false));
        write(at("link of a link"), "new", true);
        QCOMPARE(read(at("folder/a")), std::string("new"));
        // One that leads to nothing yet: the file appears there.
        fs::create_symlink("folder/b", at("dangling"));
        write(at("dangling"), "b", false);
        QCOMPARE(read(at("folder/b")), std::string("b"));
        for (const char* link : {"link", "link of a link", "dangling"})
            QVERIFY(fs::is_symlink(at(link)));
        fs::create_symlink("round", at("round"));
        QVERIFY(!refusal(at("round")).isEmpty());
    }

    void nothingButRegularFilesIsReplaced_data()
    {
        QTest::addColumn<QString>("kind");
        QTest::addColumn<QString>("said");
        QTest::newRow("pipe") << "pipe"
                              << "is a pipe";
        QTest::newRow("socket") << "socket"
                                << "is a socket";
        QTest::newRow("device") << "device"
                                << "is a device";
        QTest::newRow("folder") << "folder"
                                << "is a folder";
    }

    void nothingButRegularFilesIsReplaced()
    {
        QFETCH(QString, kind);
        QFETCH(QString, said);
        const std::string path = at("special");
        if (kind == "pipe") {
            QCOMPARE(::mkfifo(path.c_str(), 0600), 0);
        } else if (kind == "folder") {
            fs::create_directory(path);
        } else if (kind == "device") {
            // A second null device: the system's own is nothing to try this on.
            if (::mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0)
                QSKIP("only root may make devices");
        } else {
            const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
            sockaddr_un address{};
            address.sun_family = AF_UNIX;
            QVERIFY(path.size() < sizeof address.sun_path);
            path.copy(address.sun_path, path.size());
            QCOMPARE(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
            ::close(listener);
        }
        fs::create_symlink("special", at("link"));
        struct stat before {
        }, after{};
        QCOMPARE(::lstat(path.c_str(), &before), 0);
        for (const char* name : {"special", "link"}) {
            const QString refused = refusal(at(name));
            QVERIFY2(refused.contains(said) && refused.contains(name), qPrintable(refused));
            QVERIFY_THROWS_EXCEPTION(Error, checkOutput(at(name), true));
        }
        QCOMPARE(::lstat(path.c_str(), &after), 0);
        QVERIFY(before.st_ino == after.st_ino && before.st_mode == after.st_mode);
        QVERIFY(fs::is_symlink(at("link")));
        QCOMPARE(files(), 2);
    }

    void aPipeThatAppearsMeanwhileIsNotReplaced()
    {
        OutputFile file(at("a"), true);
        QCOMPARE(::mkfifo(at("a").c_str(), 0600), 0);
        QVERIFY_THROWS_EXCEPTION(Error, file.keep());
        QVERIFY(fs::is_fifo(at("a")));
    }

    void aFileThatAnotherProcessWritesIsNotReplaced()
    {
        int ready[2];
        QVERIFY(::pipe(ready) == 0);
        const pid_t child = ::fork();
        QVERIFY(child >= 0);
        if (child == 0) {
            OutputFile file(at("a"), false);
            file.write("growing");
            file.keep();
            if (::write(ready[1], "", 1) == 1)
                for (;;)
                    ::pause();
            ::_exit(1);
        }
        ::close(ready[1]);
        char byte = 0;
        const bool isReady = ::read(ready[0], &byte, 1) == 1;
        const QString during = refusal(at("a"));
        ::kill(child, SIGKILL);
        int status = 0;
        QCOMPARE(::waitpid(child, &status, 0), child);
        QVERIFY(isReady);
        QVERIFY2(during.contains("still running"), qPrintable(during));
        QCOMPARE(read(at("a")), std::string("growing"));
        QCOMPARE(refusal(at("a")), QString()); // whoever wrote it is gone
        QCOMPARE(files(), 1);
    }

    void companionsGoWithTheOldFile()
    {
        put(at("a"), "old");
        put(at("a-wal"), "log");
        {
            OutputFile file(at("a"), true, {"-wal", "-shm"});
            QCOMPARE(read(at("a-wal")), std::string("log"));
            file.keep();
        }
        QCOMPARE(files(), 1);
        fs::rename(at("a"), at("a-wal"));
        QVERIFY_THROWS_EXCEPTION(Error, OutputFile(at("a"), false, {"-wal"}));
        OutputFile(at("a"), true, {"-wal"}).keep();
        QVERIFY(!fs::exists(at("a-wal")));
    }

    void aFolderThatIsNotThereIsNamed()
    {
        const QString refused = refusal(at("no/folder/a"));
        QVERIFY2(refused.contains("no/folder/a") && refused.contains("choose a folder"), qPrintable(refused));
    }
};

PIPEWRIGHT_TEST(TestOutputFile, NoApplication)
#include "tst_outputfile.moc"
