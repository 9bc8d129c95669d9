// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/trace/tracewindow.h"

#include "core/base/freedmemory.h"
#include "core/base/textfile.h"
#include "gui/trace/activityview.h"
#include "gui/trace/devicetimelist.h"
#include "gui/trace/notelist.h"
#include "gui/trace/querywindow.h"
#include "gui/trace/tracetables.h"
#include "gui/widgets/factlist.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/onscreen.h"
#include "gui/widgets/picture.h"
#include "gui/widgets/themechange.h"
#include "gui/widgets/words.h"
#include "traces/export/report.h"
#include "traces/import/traceimport.h"

#include <QApplication>
#include <QComboBox>
#include <QCryptographicHash>
#include <QDateTime>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QRegularExpression>
#include <QSettings>
#include <QShortcut>
#include <QSplitter>
#include <QStandardPaths>
#include <QTabWidget>
#include <QTreeWidget>

#include <algorithm>
#include <tuple>

namespace pipewright {

namespace {

/// The cache path of an import; the same for unchanged files.
QString cacheOf(const QStringList& paths, const QString& folder)
{
    const QDir place(folder.isEmpty()
                         ? QStandardPaths::writableLocation(QStandardPaths::CacheLocation) + QStringLiteral("/traces")
                         : folder);
    place.mkpath(QStringLiteral("."));
    QString key;
    for (const QString& path : paths) {
        const QFileInfo file(path);
        key += QStringLiteral("%1 %2 %3\n")
                   .arg(file.absoluteFilePath())
                   .arg(file.size())
                   .arg(file.lastModified().toMSecsSinceEpoch());
    }
    const QByteArray hash = QCryptographicHash::hash(key.toUtf8(), QCryptographicHash::Sha1).toHex().left(12);
    return place.filePath(
        QStringLiteral("%1-%2.db").arg(QFileInfo(paths.front()).completeBaseName(), QString::fromLatin1(hash)));
}

constexpr int longestTitle = 250; ///< pixels; leaves room for the search and the buttons in a small window

/// "rank0.json and 3 more" for the files of several ranks.
QString sourceText(const QString& source)
{
    const QStringList files = source.split(QStringLiteral(", "), Qt::SkipEmptyParts);
    if (files.isEmpty())
        return {};
    const QString first = QFileInfo(files[0]).fileName();
    return files.size() > 1 ? TraceWindow::tr("%1 and %2 more").arg(first).arg(files.size() - 1) : first;
}

} // namespace

TraceWindow::TraceWindow(QWidget* parent)
    : QWidget(parent, Qt::Window), m_view(new ActivityView(this)), m_step(new QComboBox(this)),
      m_verdict(makeCaption({}, TextSize::Normal, this)), m_devices(new DeviceTimeList(this)),
      m_notes(new NoteList(
          [this] {
              TraceNote note;
              std::tie(note.start, note.end) = m_view->range().value_or(m_view->window());
              return note;
          },
          this)),
      m_search(new QLineEdit(this)), m_progress(new QProgressBar(this)), m_cancel(new QPushButton(tr("Cancel"), this)),
      m_title(makeCaption({}, TextSize::Title, this)), m_state(makeCaption({}, TextSize::Small, this)),
      m_report(makeCaption({}, TextSize::Small, this)), m_stretch(makeCaption({}, TextSize::Small, this)),
      m_facts(new FactList(this)), m_tabs(new QTabWidget(this)),
      m_names(makeSumTable(tr("Time by name"), {tr("name"), tr("count"), tr("total"), tr("longest")}, this)),
      m_lanes(makeSumTable(tr("Time by lane"), {tr("lane"), tr("slices"), tr("busy"), tr("share")}, this))
{
    onThemeChange(this, [this] {
        showSelection();
        m_timesOf.reset(); // its colours depend on the theme
        if (m_opened.trace)
            m_later.start();
    });
    setWindowTitle(tr("Trace"));
    makePanel(this);
    m_worker.setMaxThreadCount(2); // summing must not wait for a cancelled opening
    m_later.setSingleShot(true);
    m_later.setInterval(60);
    build();
    connect(&m_later, &QTimer::timeout, this, &TraceWindow::sumUp);
    connect(m_view, &ActivityView::windowChanged, this, [this] {
        m_summing = true;
        m_later.start();
    });
    connect(m_view, &ActivityView::selectionChanged, this, &TraceWindow::showSelection);
    connect(m_view, &ActivityView::hovered, this,
            [this](const QString& text) { m_state->setText(text.isEmpty() ? m_size : text); });
    connect(m_search, &QLineEdit::textChanged, this,
            [this](const QString& text) { m_view->highlight(text.trimmed()); });
    connect(m_search, &QLineEdit::returnPressed, this, [this] { findNext(1); });
    connect(m_cancel, &QPushButton::clicked, this, &TraceWindow::cancel);
    connect(m_names, &QTreeWidget::itemActivated, this, [this](QTreeWidgetItem* item) {
        const auto& name = m_summary.names[item->data(0, sortedValueRole).toULongLong()];
        m_view->select(SliceId{name.longestTrack, name.longestSlice}, true);
    });
    connect(m_lanes, &QTreeWidget::itemActivated, this, [this](QTreeWidgetItem* item) {
        const auto& lane = m_summary.lanes[item->data(0, sortedValueRole).toULongLong()];
        if (m_view->trace()->tracks[lane.firstTrack].size() > 0)
            m_view->select(SliceId{lane.firstTrack, 0}, true);
    });
    connect(m_step, qOverload<int>(&QComboBox::activated), this, &TraceWindow::chooseStep);
    connect(m_devices, &DeviceTimeList::gapChosen, this, [this](const DeviceTime::Gap& gap) {
        const Nanoseconds around = std::max<Nanoseconds>(1, gap.end - gap.start);
        if (gap.ended)
            m_view->select(SliceId{gap.track, gap.slice}, true);
        m_view->showRange(std::max<Nanoseconds>(0, gap.start - around), gap.end + around);
    });
    connect(m_devices, &DeviceTimeList::deviceChosen, m_view, &ActivityView::revealDevice);
    connect(m_notes, &NoteList::chosen, this, [this](const TraceNote& note) {
        m_view->setRange(std::pair(note.start, note.end));
        m_view->showRange(note.start, note.end);
    });
    connect(m_notes, &NoteList::failed, m_state, &QLabel::setText);
    resizeOnScreen(*this, {1320, 820});
}

TraceWindow::~TraceWindow()
{
    ++m_opening;
    ++m_request;
    m_worker.waitForDone();
}

void TraceWindow::build()
{
    m_search->setPlaceholderText(tr("Find a name  /"));
    m_search->setAccessibleName(tr("Find a name"));
    m_search->setClearButtonEnabled(true);
    m_search->setMinimumWidth(80);
    m_search->setMaximumWidth(220);
    m_progress->setTextVisible(false);
    m_progress->setFixedSize(180, 6);
    m_progress->setRange(0, 1000);
    m_progress->setAccessibleName(tr("Progress"));
    m_progress->hide();
    m_cancel->hide();
    m_step->setAccessibleName(tr("Step"));
    m_step->setToolTip(tr("Show and explain one step"));
    m_step->setFocusPolicy(Qt::TabFocus);
    m_step->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    m_step->hide();
    addShortcuts();

    auto* bar = makeLayout<QHBoxLayout>(nullptr, {16, 10, 16, 10}, 10);
    bar->addWidget(m_title);
    bar->addStretch(1);
    bar->addWidget(m_step);
    bar->addWidget(m_search, 1);
    addButtons(*bar);
    auto* splitter = new QSplitter(Qt::Horizontal, this);
    splitter->addWidget(m_view);
    splitter->addWidget(buildSide());
    splitter->setStretchFactor(0, 1);
    splitter->setSizes({880, 440});
    splitter->setChildrenCollapsible(false);
    auto* layout = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0}, 0);
    layout->addLayout(bar);
    layout->addWidget(makeHairline(Qt::Horizontal, this));
    layout->addWidget(splitter, 1);
    layout->addWidget(makeHairline(Qt::Horizontal, this));
    m_state->setContentsMargins(16, 5, 16, 5);
    m_state->setWordWrap(true); // the reason why a file cannot be opened may be long
    m_state->setAccessibleName(tr("State"));
    auto* below = makeLayout<QHBoxLayout>(nullptr, {0, 0, 16, 0});
    below->addWidget(m_state, 1);
    below->addWidget(m_progress);
    below->addWidget(m_cancel);
    layout->addLayout(below);
    showSelection();
}

void TraceWindow::addButtons(QHBoxLayout& bar)
{
    const auto add = [&](const QString& text, const QString& tip) {
        auto* button = new QPushButton(text, this);
        button->setToolTip(tip);
        button->setFocusPolicy(Qt::TabFocus);
        bar.addWidget(button);
        return button;
    };
    if (parentWidget()) // with a designer as parent
        connect(add(tr("Lay over"), tr("Lay the blocks of this trace over the prediction of the present design")),
                &QPushButton::clicked, this, [this] {
                    if (!m_opened.store.isEmpty())
                        Q_EMIT overlayWanted();
                });
    connect(add(tr("Whole"), tr("Show all of the trace (0)")), &QPushButton::clicked, m_view, &ActivityView::showAll);
    connect(add(tr("SQL…"), tr("Ask the trace with SQL (Ctrl+Shift+Q)")), &QPushButton::clicked, this,
            &TraceWindow::showQuery);
    connect(add(tr("Picture…"), tr("The visible range as PNG (Ctrl+E)")), &QPushButton::clicked, this,
            &TraceWindow::exportPicture);
    connect(add(tr("Report…"), tr("All of it as one HTML page: pictures, numbers, causes, notes (Ctrl+Shift+E)")),
            &QPushButton::clicked, this, &TraceWindow::exportReport);
}

void TraceWindow::addShortcuts()
{
    const auto on = [this](const QKeySequence& keys, auto run) {
        connect(new QShortcut(keys, this), &QShortcut::activated, this, run);
    };
    on(Qt::Key_Slash, [this] { m_search->setFocus(); });
    on(Qt::Key_N, [this] {
        m_tabs->setCurrentWidget(m_notes);
        m_notes->field()->setFocus();
    });
    on(Qt::Key_F3, [this] { findNext(1); });
    on(Qt::SHIFT | Qt::Key_F3, [this] { findNext(-1); });
    on(Qt::CTRL | Qt::Key_E, [this] { exportPicture(); });
    on(Qt::CTRL | Qt::SHIFT | Qt::Key_E, [this] { exportReport(); });
    on(Qt::CTRL | Qt::SHIFT | Qt::Key_Q, [this] { showQuery(); });
    on(QKeySequence::Close, [this] { close(); });
    if (parentWidget()) // with a designer as parent, its action is used
        return;
    on(Qt::CTRL | Qt::Key_T, [this] {
        const Theme& next = Theme::of(*this).isDark ? Theme::light() : Theme::dark();
        next.apply(*qApp);
        QSettings().setValue(QStringLiteral("theme"), next.isDark ? QStringLiteral("dark") : QStringLiteral("light"));
    });
}

QString TraceWindow::state() const
{
    return m_state->text();
}

bool TraceWindow::opens(const QString& path)
{
    return holdsActivities(path.toStdString()) || isForeignTrace(path.toStdString());
}

void TraceWindow::open(const QStringList& paths, const QString& cacheFolder)
{
    const int opening = ++m_opening;
    QString name = QFileInfo(paths.front()).fileName();
    if (paths.size() > 1)
        name = tr("%1 and %2 more").arg(name).arg(paths.size() - 1);
    setWindowTitle(tr("%1 – Trace").arg(name));
    m_title->setText(m_title->fontMetrics().elidedText(name, Qt::ElideMiddle, longestTitle));
    m_state->setText(tr("opening …"));
    m_progress->setValue(0);
    m_progress->show();
    m_cancel->show();
    const auto here = [this, opening](auto work) {
        QMetaObject::invokeMethod(
            this,
            [this, opening, work = std::move(work)] {
                if (m_opening == opening)
                    work();
            },
            Qt::QueuedConnection);
    };
    const auto fail = [this, here](const QString& why) {
        here([this, why] {
            m_progress->hide();
            m_cancel->hide();
            m_state->setText(why);
            Q_EMIT failed(why);
        });
    };
    const QString cache = cacheOf(paths, cacheFolder);
    std::vector<std::string> files;
    for (const QString& path : paths)
        files.push_back(path.toStdString());
    m_worker.start([this, opening, here, fail, files, cache = cache.toStdString()] {
        WorkProgress progress;
        progress.report = [this, opening, here](double share) {
            here([this, share] { m_progress->setValue(static_cast<int>(share * 1000)); });
            return m_opening == opening;
        };
        try {
            const std::string& path = files.front();
            const bool foreign = files.size() > 1 || isForeignTrace(path);
            if (foreign && !holdsActivities(cache))
                importTraces(files, cache, true, progress.part(0, 0.9));
            releaseFreedMemory(); // importing needs several times the memory of viewing
            const std::string& store = foreign ? cache : path;
            Opened opened{QString::fromStdString(path), QString::fromStdString(store), nullptr, nullptr};
            opened.trace =
                std::make_shared<const StoredActivities>(readActivities(store, progress.part(foreign ? 0.9 : 0, 1)));
            opened.launches =
                std::make_shared<const LaunchCalls>(*opened.trace, [this, opening] { return m_opening != opening; });
            here([this, opened] { take(opened); });
        } catch (const std::exception& error) {
            fail(QString::fromUtf8(error.what()));
        }
    });
}

QString TraceWindow::leftOut() const
{
    return m_report->text();
}

QString TraceWindow::titleOf(const QString& path)
{
    static const QRegularExpression kept(QStringLiteral("-[0-9a-f]{12}$")); // see cacheOf()
    return QFileInfo(path).completeBaseName().remove(kept);
}

void TraceWindow::cancel()
{
    ++m_opening;
    m_progress->hide();
    m_cancel->hide();
    m_state->setText(tr("cancelled"));
    Q_EMIT failed(tr("cancelled"));
}

void TraceWindow::take(const Opened& what)
{
    m_opened = what;
    m_timesOf.reset();
    const std::shared_ptr<const StoredActivities>& trace = what.trace;
    m_steps = stepsOf(*trace);
    m_activity = deviceActivity(*trace);
    m_step->clear();
    m_step->addItem(tr("whole trace"));
    for (const TraceStep& step : m_steps)
        m_step->addItem(tr("%1, %2").arg(QString::fromStdString(step.name), durationText(step.end - step.start)));
    m_step->setVisible(!m_steps.empty());
    m_progress->hide();
    m_cancel->hide();
    QStringList left;
    for (const auto& [reason, entry] : trace->report.entries())
        left << tr("%1 × %2").arg(countText(entry.count), QString::fromStdString(reason));
    m_report->setText(left.join(QLatin1Char('\n')));
    m_report->setVisible(!left.isEmpty());
    const std::size_t slices = trace->slices();
    const QString source = sourceText(QString::fromStdString(trace->source));
    const QString title =
        tr("%1 · %2").arg(source.isEmpty() ? m_title->text() : source, QString::fromStdString(trace->tool));
    if (!source.isEmpty() && titleOf(what.path) != QFileInfo(what.path).completeBaseName())
        setWindowTitle(tr("%1 – Trace").arg(source));
    m_title->setText(m_title->fontMetrics().elidedText(title, Qt::ElideMiddle, longestTitle));
    m_title->setToolTip(QString::fromStdString(trace->source));
    m_view->setTrace(trace);
    m_notes->setTrace(what.path);
    if (m_query)
        m_query->setTrace(what.store);
    m_view->setFocus();
    m_size = tr("%1 slices, %2").arg(countText(static_cast<std::int64_t>(slices)), durationText(m_view->total()));
    m_state->setText(m_size);
    Q_EMIT opened();
}

void TraceWindow::findNext(int direction)
{
    if (!m_view->find(m_search->text().trimmed(), direction))
        m_state->setText(m_search->text().isEmpty() ? tr("write a name to look for")
                                                    : tr("no further \"%1\"").arg(m_search->text()));
}

bool TraceWindow::exportTo(const QString& path)
{
    try {
        writePng(m_view->grab().toImage(), path.toStdString(), true);
        m_state->setText(tr("%1 written").arg(path));
        return true;
    } catch (const std::exception& error) {
        m_state->setText(QString::fromUtf8(error.what()));
        return false;
    }
}

QString TraceWindow::besideTrace(const QString& suffix) const
{
    const QFileInfo trace(m_opened.path);
    return m_opened.path.isEmpty() ? QString() : trace.dir().filePath(trace.completeBaseName() + suffix);
}

void TraceWindow::exportPicture()
{
    QString path = QFileDialog::getSaveFileName(this, tr("Export picture"), besideTrace(QStringLiteral(".png")),
                                                tr("PNG (*.png)"));
    if (path.isEmpty())
        return;
    if (QFileInfo(path).suffix().isEmpty())
        path += QStringLiteral(".png");
    exportTo(path);
}

void TraceWindow::reportTo(const QString& path)
{
    if (!m_opened.trace)
        return;
    m_state->setText(tr("writing the report …"));
    m_worker.start([this, opened = m_opened, notes = m_notes->notes(), stretch = explained(), path] {
        QString why;
        try {
            writeFileAtomically(path.toStdString(),
                                activityReport(*opened.trace, opened.store.toStdString(), stretch, notes), true);
        } catch (const std::exception& error) {
            why = QString::fromUtf8(error.what());
        }
        QMetaObject::invokeMethod(
            this,
            [this, why, path] {
                m_state->setText(why.isEmpty() ? tr("%1 written").arg(path) : why);
                Q_EMIT reported(why.isEmpty() ? path : QString());
            },
            Qt::QueuedConnection);
    });
}

void TraceWindow::exportReport()
{
    QString path = QFileDialog::getSaveFileName(this, tr("Export report"), besideTrace(QStringLiteral(".html")),
                                                tr("HTML (*.html)"));
    if (path.isEmpty())
        return;
    if (QFileInfo(path).suffix().isEmpty())
        path += QStringLiteral(".html");
    reportTo(path);
}

void TraceWindow::showQuery()
{
    if (m_opened.store.isEmpty())
        return;
    if (!m_query)
        m_query = new QueryWindow(this);
    m_query->setTrace(m_opened.store);
    m_query->show();
    m_query->raise();
    m_query->activateWindow();
}

} // namespace pipewright

#include "moc_tracewindow.cpp"
