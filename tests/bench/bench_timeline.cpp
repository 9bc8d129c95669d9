// SPDX-License-Identifier: GPL-3.0-or-later
// The bounds on the timeline, software rendering, at every size of the window (the view alone at 1920 x 1080): with
// 1,000,000 blocks 99 of 100 frames of a pan or zoom take less than 8 ms and the first less than 1 s; a mouse move that
// drags a block among 200,000 shows in the lanes, the numbers and the charts within 16 ms; and the opening example is
// painted within 0.3 s of the window's making. The window never blocks for more than 100 ms, also when a block among a
// million is dropped. One iteration is one frame (bench/frames.h); the measured times are in README.md.
#include "bench/frames.h"
#include "core/base/freedmemory.h"
#include "core/families/family.h"
#include "core/predict/orderpreview.h"
#include "gui/designer/mainwindow.h"
#include "gui/model/modelwindow.h"
#include "gui/search/tradeoffwindow.h"
#include "gui/timeline/minimap.h"
#include "gui/timeline/timelineview.h"
#include "gui/widgets/theme.h"
#include "makers/designs.h"

#include <QApplication>
#include <QEvent>
#include <QMouseEvent>
#include <QTemporaryDir>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <thread>

using namespace pipewright;

namespace {

constexpr QSize screen{1920, 1080};
constexpr QSize sizes[] = {{1024, 640}, {1440, 900}, {1920, 1080}, {2560, 1440}}; ///< of the window, named by width
constexpr int devices = 64;
constexpr int frames = 500;

void asFrames(benchmark::internal::Benchmark* benchmark)
{
    benchmark->Iterations(frames)->UseManualTime()->Unit(benchmark::kMillisecond);
}

/// 100,000 and 1,000,000 blocks.
void bothDesigns(benchmark::internal::Benchmark* benchmark)
{
    benchmark->ArgName("microbatches")->Arg(521)->Arg(5209);
}

Design designOf(int microbatches, const char* family = "zb-h1")
{
    Design design = test::unroundDesign(family, devices, microbatches);
    test::addDevices(design);
    return design;
}

/// Counts the paints of a widget: a frame is over when there was one.
class Paints : public QObject {
public:
    explicit Paints(QWidget* widget) : m_widget(widget) { widget->installEventFilter(this); }
    void await()
    {
        const int before = m_count;
        for (int i = 0; i < 1000 && m_count == before; ++i)
            QCoreApplication::processEvents();
        QCoreApplication::processEvents(); // other widgets react to the same change
    }
    bool eventFilter(QObject* watched, QEvent* event) override
    {
        m_count += watched == m_widget && event->type() == QEvent::Paint;
        return false;
    }

private:
    QWidget* m_widget;
    int m_count = 0;
};

/// A new design starts searches in the background. Waits for them, so that they are not measured too.
void settle()
{
    const auto used = [] {
        timespec now{};
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
    };
    for (int half = 0; half < 600; ++half) {
        const double before = used();
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
        while (std::chrono::steady_clock::now() < until) {
            QCoreApplication::processEvents();
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        if (used() - before < 0.02)
            return;
    }
}

struct View {
    explicit View(int microbatches)
    {
        document.reset(designOf(microbatches));
        view = std::make_unique<TimelineView>(document);
        view->resize(screen);
        view->show();
        QCoreApplication::processEvents();
    }
    Document document;
    std::unique_ptr<TimelineView> view;
};

/// From the whole width down to single blocks, with some pans at each zoom level. True where this frame begins one.
bool zoomToDetail(TimelineView& view, double wholeNsPerPixel, int frame)
{
    constexpr int perDetail = 50;
    if (frame % perDetail != 0)
        return false;
    TimeAxis axis = view.axis();
    axis.nsPerPixel = wholeNsPerPixel / std::pow(3.0, frame / perDetail + 0.5);
    axis.start = static_cast<double>(view.total()) * 0.3;
    view.setAxis(axis);
    return true;
}

void panning(benchmark::State& state)
{
    View shown(static_cast<int>(state.range(0)));
    TimelineView& view = *shown.view;
    Paints paints(view.viewport());
    Frames times(state);
    const double whole = view.axis().nsPerPixel;
    int frame = 0;
    for (auto _ : state) {
        if (zoomToDetail(view, whole, frame++))
            view.viewport()->repaint();
        times.take([&] {
            view.setAxis(panned(view.axis(), 23));
            paints.await();
        });
    }
}
BENCHMARK(panning)->Apply(bothDesigns)->Apply(asFrames);

void zooming(benchmark::State& state)
{
    View shown(static_cast<int>(state.range(0)));
    TimelineView& view = *shown.view;
    Paints paints(view.viewport());
    Frames times(state);
    int frame = 0;
    for (auto _ : state) {
        // In and out again around a quarter of the width, through every zoom level. The full width is never reached
        // again, since a zoom that changes nothing paints nothing.
        const double factor = frame++ / 100 % 2 == 0 ? 1.1 : 1 / 1.0999;
        times.take([&] {
            view.zoomBy(factor, screen.width() * 0.25);
            paints.await();
        });
    }
}
BENCHMARK(zooming)->Apply(bothDesigns)->Apply(asFrames);

void scrollingLanes(benchmark::State& state)
{
    View shown(static_cast<int>(state.range(0)));
    Paints paints(shown.view->viewport());
    Frames times(state);
    QPoint wheelAt(960, 500);
    int frame = 0;
    for (auto _ : state) {
        const int direction = frame++ / 20 % 2 == 0 ? -1 : 1;
        times.take([&] {
            QWheelEvent wheel(wheelAt, shown.view->viewport()->mapToGlobal(wheelAt), {}, {0, 120 * direction},
                              Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
            QApplication::sendEvent(shown.view->viewport(), &wheel);
            paints.await();
        });
    }
}
BENCHMARK(scrollingLanes)->Apply(bothDesigns)->Apply(asFrames);

void firstPaint(benchmark::State& state)
{
    const Design design = designOf(static_cast<int>(state.range(0)));
    Document document;
    document.reset(design);
    Frames times(state);
    for (auto _ : state)
        times.take([&] {
            TimelineView view(document);
            view.resize(screen);
            view.show();
            view.viewport()->repaint();
        });
}
BENCHMARK(firstPaint)->Apply(bothDesigns)->Iterations(5)->UseManualTime()->Unit(benchmark::kMillisecond);

void designToFirstPaint(benchmark::State& state)
{
    const Design design = designOf(static_cast<int>(state.range(0)));
    Frames times(state);
    for (auto _ : state)
        times.take([&] {
            Document document;
            document.reset(design);
            TimelineView view(document);
            view.resize(screen);
            view.show();
            view.viewport()->repaint();
        });
}
BENCHMARK(designToFirstPaint)->Apply(bothDesigns)->Iterations(5)->UseManualTime()->Unit(benchmark::kMillisecond);

QSize sizeOf(std::int64_t width)
{
    const auto* const found =
        std::find_if(std::begin(sizes), std::end(sizes), [width](const QSize& size) { return size.width() == width; });
    return found == std::end(sizes) ? screen : *found;
}

/// Every window size with these numbers of microbatches.
void atEverySize(benchmark::internal::Benchmark* benchmark)
{
    benchmark->ArgNames({"microbatches", "width"});
    for (const int microbatches : {521, 5209})
        for (const QSize& size : sizes)
            benchmark->Args({microbatches, size.width()});
}

/// The whole window with everything that follows the timeline.
struct Window {
    explicit Window(Design design, QSize size = screen)
    {
        MainWindow::Options options;
        options.settingsFile = folder.filePath(QStringLiteral("settings.ini"));
        window = std::make_unique<MainWindow>(options);
        window->resize(size);
        window->show();
        window->document().reset(std::move(design));
        settle();
    }
    QTemporaryDir folder;
    std::unique_ptr<MainWindow> window;
};

void panningTheWindow(benchmark::State& state)
{
    Window shown(designOf(static_cast<int>(state.range(0))), sizeOf(state.range(1)));
    TimelineView& view = shown.window->timeline();
    Paints paints(view.viewport());
    Frames times(state);
    const double whole = view.axis().nsPerPixel;
    int frame = 0;
    for (auto _ : state) {
        if (zoomToDetail(view, whole, frame++))
            paints.await();
        times.take([&] {
            view.setAxis(panned(view.axis(), 23));
            paints.await();
        });
    }
}
BENCHMARK(panningTheWindow)->Apply(atEverySize)->Iterations(frames)->UseManualTime()->Unit(benchmark::kMillisecond);

void zoomingTheWindow(benchmark::State& state)
{
    Window shown(designOf(static_cast<int>(state.range(0))), sizeOf(state.range(1)));
    TimelineView& view = shown.window->timeline();
    Paints paints(view.viewport());
    Frames times(state);
    int frame = 0;
    for (auto _ : state) {
        const double factor = frame++ / 100 % 2 == 0 ? 1.1 : 1 / 1.0999;
        times.take([&] {
            view.zoomBy(factor, view.width() * 0.25);
            paints.await();
        });
    }
}
BENCHMARK(zoomingTheWindow)->Apply(atEverySize)->Iterations(frames)->UseManualTime()->Unit(benchmark::kMillisecond);

/// A block moved by key, until its numbers are shown; cpu50 and cpu99 are the window thread's processor time for that.
void committing(benchmark::State& state)
{
    Window shown(designOf(static_cast<int>(state.range(0))));
    Document& document = shown.window->document();
    TimelineView& view = shown.window->timeline();
    const std::vector<Block>& order = document.design().schedule.order[2];
    OrderPreview preview(document.design(), *document.prediction());
    for (auto position = static_cast<int>(order.size() / 2);; ++position)
        if (const OrderPreview::Range range = preview.legalRange(2, position); range.last > position) {
            document.select(order[position]);
            break;
        }
    view.frameSelection();
    settle();
    Paints paints(view.viewport());
    Frames times(state);
    const auto arrived = [&] {
        while (document.isWorking())
            QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
        paints.await();
    };
    for (auto _ : state) {
        times.take([&] {
            view.moveSelection(1);
            arrived();
        });
        document.undoStack()->undo();
        settle(); // searches in the background start anew after each edit
    }
}
BENCHMARK(committing)->Apply(bothDesigns)->Iterations(5)->UseManualTime()->Unit(benchmark::kMillisecond);

/// The time of a mouse move in a drag, until its changes are painted.
void dragging(benchmark::State& state, const char* family)
{
    Window shown(designOf(static_cast<int>(state.range(0)), family), sizeOf(state.range(2)));
    MainWindow& window = *shown.window;
    TimelineView& view = window.timeline();
    // The block in the middle of a lane that can move farthest.
    const std::vector<Block>& order = window.document().design().schedule.order[2];
    OrderPreview preview(window.document().design(), *window.document().prediction());
    const int middle = static_cast<int>(order.size() / 2);
    Block held = order[middle];
    int farthest = 0;
    for (int position = middle; preview.possible() && position < middle + 100; ++position)
        if (const OrderPreview::Range range = preview.legalRange(2, position); range.last - range.first > farthest) {
            farthest = range.last - range.first;
            held = order[position];
        }
    window.document().select(held);
    view.frameSelection();
    view.zoomBy(1.0 / static_cast<double>(state.range(1)), view.rectOfBlock(held).center().x());
    view.ensureVisible(held);
    Paints paints(view.viewport());
    const auto mouse = [&](QEvent::Type type, QPoint at, Qt::MouseButton button, Qt::MouseButtons buttons) {
        QMouseEvent event(type, at, view.viewport()->mapToGlobal(at), button, buttons, Qt::NoModifier);
        QApplication::sendEvent(view.viewport(), &event);
    };
    const QPoint from = view.rectOfBlock(held).center();
    mouse(QEvent::MouseButtonPress, from, Qt::LeftButton, Qt::LeftButton);
    mouse(QEvent::MouseMove, from + QPoint(30, 0), Qt::NoButton, Qt::LeftButton); // begins the drag
    paints.await();
    Frames times(state);
    int frame = 0, shownFrames = 0;
    for (auto _ : state) {
        // To and fro along the lane, across legal and illegal places.
        const int lane = view.plotWidth() - 100;
        const int x = TimelineView::plotLeft() + 50 + std::abs(frame++ * 37 % (2 * lane) - lane);
        times.take([&] {
            mouse(QEvent::MouseMove, QPoint(x, from.y()), Qt::NoButton, Qt::LeftButton);
            paints.await();
        });
        shownFrames += view.preview() != nullptr;
    }
    state.counters["legal"] = shownFrames / static_cast<double>(frame);
}
BENCHMARK_CAPTURE(dragging, zbH1, "zb-h1")
    ->ArgNames({"microbatches", "zoom out", "width"})
    ->ArgsProduct({{1024}, {1, 20}, {1024, 1440, 1920, 2560}})
    ->Args({5209, 1, 1920})
    ->Args({5209, 20, 1920})
    ->Apply(asFrames);
BENCHMARK_CAPTURE(dragging, chimera, "chimera")
    ->ArgNames({"microbatches", "zoom out", "width"})
    ->Args({1536, 20, 1920})
    ->Apply(asFrames);
BENCHMARK_CAPTURE(dragging, dualPipe, "dualpipe")
    ->ArgNames({"microbatches", "zoom out", "width"})
    ->Args({1280, 20, 1920})
    ->Apply(asFrames);

/// A drag with Shift over the overview: the numbers of the range follow.
void measuringARange(benchmark::State& state)
{
    Window shown(designOf(static_cast<int>(state.range(0))));
    Minimap& map = shown.window->minimap();
    Paints paints(shown.window->timeline().viewport());
    const auto mouse = [&](QEvent::Type type, int x, Qt::MouseButton button, Qt::MouseButtons buttons) {
        const QPoint at(x, map.height() / 2);
        QMouseEvent event(type, at, map.mapToGlobal(at), button, buttons, Qt::ShiftModifier);
        QApplication::sendEvent(&map, &event);
    };
    const int left = TimelineView::plotLeft() + 20;
    mouse(QEvent::MouseButtonPress, left, Qt::LeftButton, Qt::LeftButton);
    mouse(QEvent::MouseMove, left + 1, Qt::NoButton, Qt::LeftButton); // the first one makes the index
    paints.await();
    Frames times(state);
    int frame = 0;
    for (auto _ : state)
        times.take([&] {
            mouse(QEvent::MouseMove, left + 2 + frame++ % 800, Qt::NoButton, Qt::LeftButton);
            paints.await();
        });
}
BENCHMARK(measuringARange)->ArgName("microbatches")->Arg(1024)->Arg(5209)->Apply(asFrames);

/// From the making of the window to the first picture of its lanes with the opening example in them.
void exampleToFirstPaint(benchmark::State& state)
{
    Frames times(state);
    for (auto _ : state) {
        QTemporaryDir folder;
        MainWindow::Options options;
        options.settingsFile = folder.filePath(QStringLiteral("settings.ini"));
        std::unique_ptr<MainWindow> window;
        times.take([&] {
            window = std::make_unique<MainWindow>(options);
            window->openExample();
            window->resize(sizeOf(state.range(0)));
            Paints paints(window->timeline().viewport());
            window->show();
            paints.await();
        });
    }
}
BENCHMARK(exampleToFirstPaint)
    ->ArgName("width")
    ->Arg(1024)
    ->Arg(1440)
    ->Arg(1920)
    ->Arg(2560)
    ->Iterations(10)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

/// The longest time that the window blocks when it opens, while the trade-offs are computed, and when it is closed and
/// cancels the rest.
void tradeOffs(benchmark::State& state)
{
    for (auto _ : state) {
        Frames times(state);
        Document document;
        document.reset(designOf(static_cast<int>(state.range(0))));
        {
            TradeOffWindow window(document);
            times.take([&] {
                window.show();
                QCoreApplication::processEvents();
            });
            state.counters["open"] = times.last();
            const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
            while (window.isRunning() && std::chrono::steady_clock::now() < until) {
                times.take([] { QCoreApplication::processEvents(); });
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
            times.take([&] { window.cancel(); });
            times.take([&] { window.close(); });
            state.counters["points"] = static_cast<double>(window.points().size());
        }
    }
}
BENCHMARK(tradeOffs)
    ->ArgName("microbatches")
    ->Arg(1024)
    ->Arg(5209)
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

/// Opening the window of model and cluster.
void modelAndCluster(benchmark::State& state)
{
    Document document;
    document.reset(designOf(static_cast<int>(state.range(0))));
    Frames times(state);
    for (auto _ : state)
        times.take([&] {
            ModelWindow window(document);
            window.show();
            QCoreApplication::processEvents();
        });
}
BENCHMARK(modelAndCluster)
    ->ArgName("microbatches")
    ->Arg(1024)
    ->Arg(5209)
    ->Iterations(3)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

} // namespace

int main(int argc, char** argv)
{
    qputenv("QT_QPA_PLATFORM", "offscreen");
    pipewright::keepFreedMemory(); // as the program does
    QApplication application(argc, argv);
    Theme::dark().apply(application);
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
