// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/dialogs/tracewindow.h"

#include "gui/panels/factlist.h"
#include "gui/panels/labels.h"
#include "gui/panels/words.h"
#include "gui/timeline/activityview.h"
#include "traces/traceimport.h"

#include <QApplication>
#include <QCryptographicHash>
#include <QDateTime>
#include <QDir>
#include <QEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QLocale>
#include <QProgressBar>
#include <QPushButton>
#include <QSettings>
#include <QShortcut>
#include <QSplitter>
#include <QStandardPaths>
#include <QTabWidget>
#include <QTreeWidget>

#include <algorithm>

namespace pipewright {

namespace {

constexpr int valueRole = Qt::UserRole + 1;
constexpr std::size_t mostNames = 500; ///< longer tables tell nobody more

class Row : public QTreeWidgetItem {
public:
    using QTreeWidgetItem::QTreeWidgetItem;
    bool operator<(const QTreeWidgetItem& other) const override
    {
        const int column = treeWidget() ? treeWidget()->sortColumn() : 0;
        return column == 0 ? text(0) < other.text(0)
                           : data(column, valueRole).toDouble() < other.data(column, valueRole).toDouble();
    }
    void setNumber(int column, const QString& text, double value)
    {
        setText(column, text);
        setData(column, valueRole, value);
        setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
        setFont(column, Theme::numbers(TextSize::Small));
    }
};

QTreeWidget* makeTable(const QString& name, const QStringList& columns, QWidget* parent)
{
    auto* table = new QTreeWidget(parent);
    table->setAccessibleName(name);
    table->setHeaderLabels(columns);
    table->setRootIsDecorated(false);
    table->setUniformRowHeights(true);
    table->setFrameShape(QFrame::NoFrame);
    table->setSortingEnabled(true);
    table->header()->setStretchLastSection(false);
    table->header()->setSectionResizeMode(0, QHeaderView::Stretch);
    for (int column = 1; column < columns.size(); ++column) {
        table->header()->setSectionResizeMode(column, QHeaderView::Fixed);
        table->header()->resizeSection(column, column == 1 ? 62 : 78);
        table->headerItem()->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
    }
    return table;
}

/// Where the import of a file is kept: the same file, unchanged, has the same place.
QString cacheOf(const QString& path, const QString& folder)
{
    const QFileInfo file(path);
    const QDir place(folder.isEmpty()
                         ? QStandardPaths::writableLocation(QStandardPaths::CacheLocation) + QStringLiteral("/traces")
                         : folder);
    place.mkpath(QStringLiteral("."));
    const QString key = QStringLiteral("%1 %2 %3")
                            .arg(file.absoluteFilePath())
                            .arg(file.size())
                            .arg(file.lastModified().toMSecsSinceEpoch());
    const QByteArray hash = QCryptographicHash::hash(key.toUtf8(), QCryptographicHash::Sha1).toHex().left(12);
    return place.filePath(QStringLiteral("%1-%2.db").arg(file.completeBaseName(), QString::fromLatin1(hash)));
}

QString countText(std::int64_t count)
{
    return QLocale(QLocale::English).toString(static_cast<qlonglong>(count));
}

} // namespace

TraceWindow::TraceWindow(QWidget* parent)
    : QWidget(parent, Qt::Window), m_view(new ActivityView(this)), m_search(new QLineEdit(this)),
      m_progress(new QProgressBar(this)), m_cancel(new QPushButton(tr("Cancel"), this)),
      m_title(makeCaption({}, TextSize::Title, this)), m_state(makeCaption({}, TextSize::Small, this)),
      m_report(makeCaption({}, TextSize::Small, this)), m_stretch(makeCaption({}, TextSize::Small, this)),
      m_facts(new FactList(this)), m_tabs(new QTabWidget(this)),
      m_names(makeTable(tr("Time by name"), {tr("name"), tr("count"), tr("total"), tr("longest")}, this)),
      m_lanes(makeTable(tr("Time by lane"), {tr("lane"), tr("slices"), tr("busy"), tr("share")}, this))
{
    setWindowTitle(tr("Trace"));
    makePanel(this);
    m_worker.setMaxThreadCount(2); // adding up must not wait for an opening that was cancelled
    m_later.setSingleShot(true);
    m_later.setInterval(60);
    build();
    connect(&m_later, &QTimer::timeout, this, &TraceWindow::sumUp);
    connect(m_view, &ActivityView::windowChanged, this, [this] {
        m_summing = true;
        m_later.start();
    });
    connect(m_view, &ActivityView::selectionChanged, this, &TraceWindow::showSelection);
    connect(m_view, &ActivityView::hovered, m_state, &QLabel::setText);
    connect(m_search, &QLineEdit::textChanged, this,
            [this](const QString& text) { m_view->highlight(text.trimmed()); });
    connect(m_search, &QLineEdit::returnPressed, this, [this] { findNext(1); });
    connect(m_cancel, &QPushButton::clicked, this, &TraceWindow::cancel);
    connect(m_names, &QTreeWidget::itemActivated, this, [this](QTreeWidgetItem* item) {
        const auto& name = m_summary.names[item->data(0, valueRole).toULongLong()];
        m_view->select(SliceId{name.longestTrack, name.longestSlice}, true);
    });
    connect(m_lanes, &QTreeWidget::itemActivated, this, [this](QTreeWidgetItem* item) {
        const auto& lane = m_summary.lanes[item->data(0, valueRole).toULongLong()];
        if (m_view->trace()->tracks[lane.firstTrack].size() > 0)
            m_view->select(SliceId{lane.firstTrack, 0}, true);
    });
    resize(1320, 820);
}

TraceWindow::~TraceWindow()
{
    ++m_opening;
    ++m_request;
    m_worker.waitForDone();
}

QWidget* TraceWindow::buildSide()
{
    auto* side = new QWidget(this);
    auto* layout = new QVBoxLayout(side);
    layout->setContentsMargins(16, 14, 16, 12);
    layout->setSpacing(10);
    layout->addWidget(makeHeading(tr("Selected"), side));
    layout->addWidget(m_facts);
    layout->addSpacing(6);
    layout->addWidget(makeHeading(tr("What it adds up to"), side));
    m_stretch->setWordWrap(true);
    layout->addWidget(m_stretch);
    m_tabs->addTab(m_names, tr("by name"));
    m_tabs->addTab(m_lanes, tr("by lane"));
    m_tabs->setDocumentMode(true);
    layout->addWidget(m_tabs, 1);
    m_report->setWordWrap(true);
    m_report->setAccessibleName(tr("What the import left out"));
    layout->addWidget(m_report);
    side->setMinimumWidth(380);
    return side;
}

void TraceWindow::build()
{
    m_search->setPlaceholderText(tr("Find a name  /"));
    m_search->setAccessibleName(tr("Find a name"));
    m_search->setClearButtonEnabled(true);
    m_search->setFixedWidth(220);
    m_progress->setTextVisible(false);
    m_progress->setFixedSize(180, 6);
    m_progress->setRange(0, 1000);
    m_progress->setAccessibleName(tr("Progress"));
    m_progress->hide();
    m_cancel->setAutoDefault(false);
    m_cancel->hide();
    auto* whole = new QPushButton(tr("Whole"), this);
    whole->setToolTip(tr("Show all of the trace (0)"));
    auto* picture = new QPushButton(tr("Picture…"), this);
    picture->setToolTip(tr("What is in sight, as PNG (Ctrl+E)"));
    for (QPushButton* button : {whole, picture}) {
        button->setAutoDefault(false);
        button->setFocusPolicy(Qt::TabFocus);
    }
    connect(whole, &QPushButton::clicked, m_view, &ActivityView::showAll);
    connect(picture, &QPushButton::clicked, this, &TraceWindow::exportPicture);
    connect(new QShortcut(QKeySequence(Qt::Key_Slash), this), &QShortcut::activated, m_search,
            qOverload<>(&QWidget::setFocus));
    connect(new QShortcut(QKeySequence(Qt::Key_F3), this), &QShortcut::activated, this, [this] { findNext(1); });
    connect(new QShortcut(QKeySequence(Qt::SHIFT | Qt::Key_F3), this), &QShortcut::activated, this,
            [this] { findNext(-1); });
    connect(new QShortcut(QKeySequence(Qt::CTRL | Qt::Key_E), this), &QShortcut::activated, this,
            &TraceWindow::exportPicture);
    connect(new QShortcut(QKeySequence::Close, this), &QShortcut::activated, this, &QWidget::close);

    if (!parentWidget()) // beside a designer it has the designer's own action
        connect(new QShortcut(QKeySequence(Qt::CTRL | Qt::Key_T), this), &QShortcut::activated, this, [this] {
            const Theme& next = Theme::of(*this).isDark ? Theme::light() : Theme::dark();
            next.apply(*qApp);
            QSettings().setValue(QStringLiteral("theme"),
                                 next.isDark ? QStringLiteral("dark") : QStringLiteral("light"));
        });

    auto* bar = new QHBoxLayout;
    bar->setContentsMargins(16, 10, 16, 10);
    bar->setSpacing(10);
    bar->addWidget(m_title);
    bar->addStretch(1);
    bar->addWidget(m_progress);
    bar->addWidget(m_cancel);
    bar->addWidget(m_search);
    bar->addWidget(whole);
    bar->addWidget(picture);
    auto* splitter = new QSplitter(Qt::Horizontal, this);
    splitter->addWidget(m_view);
    splitter->addWidget(buildSide());
    splitter->setStretchFactor(0, 1);
    splitter->setSizes({920, 400});
    splitter->setChildrenCollapsible(false);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(bar);
    layout->addWidget(makeHairline(Qt::Horizontal, this));
    layout->addWidget(splitter, 1);
    layout->addWidget(makeHairline(Qt::Horizontal, this));
    m_state->setContentsMargins(16, 5, 16, 5);
    m_state->setAccessibleName(tr("State"));
    layout->addWidget(m_state);
    showSelection();
}

QString TraceWindow::state() const
{
    return m_state->text();
}

bool TraceWindow::opens(const QString& path)
{
    return holdsActivities(path.toStdString()) || isForeignTrace(path.toStdString());
}

void TraceWindow::open(const QString& path, const QString& cacheFolder)
{
    const int opening = ++m_opening;
    const QString name = QFileInfo(path).fileName();
    setWindowTitle(tr("%1 – Trace").arg(name));
    m_title->setText(name);
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
    const QString cache = cacheOf(path, cacheFolder);
    m_worker.start([this, opening, here, fail, path = path.toStdString(), cache = cache.toStdString()] {
        WorkProgress progress;
        progress.report = [this, opening, here](double share) {
            here([this, share] { m_progress->setValue(static_cast<int>(share * 1000)); });
            return m_opening == opening;
        };
        try {
            const bool foreign = isForeignTrace(path);
            if (foreign && !holdsActivities(cache))
                importTraces({path}, cache, true, progress.part(0, 0.9));
            auto trace = std::make_shared<const StoredActivities>(
                readActivities(foreign ? cache : path, progress.part(foreign ? 0.9 : 0, 1)));
            here([this, trace] { take(trace); });
        } catch (const std::exception& error) {
            fail(QString::fromUtf8(error.what()));
        }
    });
}

void TraceWindow::cancel()
{
    ++m_opening;
    m_progress->hide();
    m_cancel->hide();
    m_state->setText(tr("cancelled"));
    Q_EMIT failed(tr("cancelled"));
}

void TraceWindow::take(std::shared_ptr<const StoredActivities> trace)
{
    m_progress->hide();
    m_cancel->hide();
    QStringList left;
    for (const auto& [reason, entry] : trace->report.entries())
        left << tr("%1 × %2").arg(countText(entry.count), QString::fromStdString(reason));
    m_report->setText(left.join(QLatin1Char('\n')));
    m_report->setVisible(!left.isEmpty());
    const std::size_t slices = trace->slices();
    const QString source = QFileInfo(QString::fromStdString(trace->source)).fileName();
    m_title->setText(
        tr("%1 · %2").arg(source.isEmpty() ? m_title->text() : source, QString::fromStdString(trace->tool)));
    m_view->setTrace(std::move(trace));
    m_view->setFocus();
    m_state->setText(
        tr("%1 slices, %2").arg(countText(static_cast<std::int64_t>(slices)), durationText(m_view->total())));
    Q_EMIT opened();
}

void TraceWindow::showSelection()
{
    const auto selected = m_view->selection();
    if (!selected) {
        m_facts->setFacts({{tr("nothing"), tr("click a slice"), {}, Tone::Dim}});
        return;
    }
    const StoredActivities& trace = *m_view->trace();
    const Track& track = trace.tracks[selected->track];
    const TraceLane& lane = trace.lanes[track.lane];
    const Nanoseconds start = track.start[selected->slice], duration = track.end[selected->slice] - start;
    const std::string_view kind = nameOf(track.kind[selected->slice]);
    const QString source = tr("Recorded by %1").arg(QString::fromStdString(trace.tool));
    std::vector<Fact> facts{{tr("name"), QString::fromStdString(trace.strings[track.name[selected->slice]]), source},
                            {tr("kind"), QString::fromUtf8(kind.data(), static_cast<int>(kind.size())), source},
                            {tr("duration"), durationText(duration), source},
                            {tr("start"), durationText(start), tr("Since the beginning of the trace")},
                            {tr("lane"), QString::fromStdString(lane.name), source}};
    if (lane.device >= 0)
        facts.push_back({tr("device"), tr("GPU %1").arg(lane.device), source});
    if (!track.correlation.empty() && track.correlation[selected->slice] != 0)
        facts.push_back({tr("correlation"), QString::number(track.correlation[selected->slice]),
                         tr("[ and ] lead from a launch to what it launched, and back")});
    m_facts->setFacts(facts);
}

void TraceWindow::sumUp()
{
    const int request = ++m_request;
    const auto [from, to] = m_view->range().value_or(m_view->window());
    // The view keeps its trace until the next one; the copy of the pointer keeps it until this is done.
    m_worker.start([this, request, trace = m_view->sharedTrace(), from = from, to = to] {
        const ActivitySummary summary = summarise(*trace, from, to, [&] { return m_request != request; });
        QMetaObject::invokeMethod(
            this,
            [this, request, summary] {
                if (m_request == request)
                    fill(summary);
            },
            Qt::QueuedConnection);
    });
}

void TraceWindow::fill(const ActivitySummary& summary)
{
    m_summary = summary;
    const StoredActivities& trace = *m_view->trace();
    m_stretch->setText(
        m_view->range()
            ? tr("the measured %1").arg(durationText(summary.to - summary.from))
            : tr("the %1 in sight; drag over the ruler to measure less").arg(durationText(summary.to - summary.from)));
    for (QTreeWidget* table : {m_names, m_lanes}) {
        table->setSortingEnabled(false);
        table->clear();
    }
    for (std::size_t i = 0; i < std::min(mostNames, summary.names.size()); ++i) {
        const NameSummary& name = summary.names[i];
        auto* row = new Row(m_names);
        row->setText(0, QString::fromStdString(trace.strings[name.name]).simplified());
        row->setToolTip(0, tr("%1\nReturn goes to the longest").arg(QString::fromStdString(trace.strings[name.name])));
        row->setData(0, valueRole, static_cast<qulonglong>(i));
        row->setSizeHint(0, QSize(0, 21));
        row->setNumber(1, countText(name.count), double(name.count));
        row->setNumber(2, durationText(name.total), double(name.total));
        row->setNumber(3, durationText(name.longest), double(name.longest));
    }
    for (std::size_t i = 0; i < summary.lanes.size(); ++i) {
        const LaneSummary& lane = summary.lanes[i];
        const TraceLane& which = trace.lanes[lane.lane];
        const QString name = QString::fromStdString(which.name);
        auto* row = new Row(m_lanes);
        row->setText(0, which.device >= 0 ? tr("GPU %1 · %2").arg(which.device).arg(name) : name);
        row->setData(0, valueRole, static_cast<qulonglong>(i));
        row->setSizeHint(0, QSize(0, 21));
        row->setNumber(1, countText(lane.slices), double(lane.slices));
        row->setNumber(2, durationText(lane.busy), double(lane.busy));
        row->setNumber(3, percentText(lane.share), lane.share);
    }
    m_names->setSortingEnabled(true);
    m_names->sortByColumn(2, Qt::DescendingOrder);
    for (QTreeWidget* table : {m_names, m_lanes})
        table->header()->setSortIndicatorShown(false); // it would lie over the captions
    m_lanes->setSortingEnabled(true);
    m_lanes->sortByColumn(3, Qt::DescendingOrder);
    m_summing = false;
    Q_EMIT summed();
}

void TraceWindow::findNext(int direction)
{
    if (!m_view->find(m_search->text().trimmed(), direction))
        m_state->setText(m_search->text().isEmpty() ? tr("write a name to look for")
                                                    : tr("no further \"%1\"").arg(m_search->text()));
}

bool TraceWindow::exportTo(const QString& path)
{
    if (m_view->grab().save(path))
        return true;
    m_state->setText(tr("%1 cannot be written").arg(path));
    return false;
}

void TraceWindow::exportPicture()
{
    QString path = QFileDialog::getSaveFileName(this, tr("Export picture"), {}, tr("PNG (*.png)"));
    if (path.isEmpty())
        return;
    if (QFileInfo(path).suffix().isEmpty())
        path += QStringLiteral(".png");
    exportTo(path);
}

void TraceWindow::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        showSelection();
}

} // namespace pipewright
