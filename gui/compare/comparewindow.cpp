// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/compare/comparewindow.h"

#include "core/base/inputfile.h"
#include "core/design/redesign.h"
#include "core/files/designfile.h"
#include "gui/compare/comparelanes.h"
#include "gui/compare/comparetable.h"
#include "gui/compare/noisefields.h"
#include "gui/widgets/closingrow.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/onscreen.h"
#include "gui/widgets/themechange.h"
#include "gui/widgets/words.h"
#include "traces/store/tracereader.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QMenu>
#include <QPushButton>
#include <QSplitter>
#include <QTableWidget>
#include <QToolButton>

#include <algorithm>

namespace pipewright {

namespace {

constexpr std::size_t mostEntries = 8;

Design readAny(const QString& path)
{
    const std::string file = path.toStdString();
    return isDatabase(file) ? TraceReader(file).design() : readDesign(file);
}

} // namespace

CompareWindow::CompareWindow(Document& document, QWidget* parent)
    : QDialog(parent), m_document(document), m_lanes(new CompareLanes(this)), m_table(makeCompareTable(this)),
      m_noise(new NoiseFields(this)), m_hint(makeCaption({}, TextSize::Small, this)), m_offers(new QWidget(this)),
      m_addMenu(new QMenu(this)), m_take(new QPushButton(tr("Use this schedule"), this)),
      m_remove(new QPushButton(tr("Remove"), this)), m_underNoise(new QWidget(this)), m_closing(new QWidget(this)),
      m_own(new QPushButton(tr("In a window"), this))
{
    onThemeChange(this, [this] {
        if (isVisible())
            fillTable();
    });
    setWindowTitle(tr("Compare schedules"));
    setWindowFlag(Qt::WindowMinMaxButtonsHint);
    makePanel(this);
    m_worker.setMaxThreadCount(1);
    auto* addButton = new QToolButton(this);
    addButton->setText(tr("Add ▾"));
    addButton->setAccessibleName(tr("Add a schedule"));
    addButton->setMenu(m_addMenu);
    addButton->setPopupMode(QToolButton::InstantPopup);
    m_take->setToolTip(tr("The chosen schedule replaces the present one; one undo brings that back"));
    m_remove->setToolTip(tr("Takes the chosen schedule out of the comparison"));
    m_own->hide(); // of a window
    m_own->setToolTip(tr("With the lanes of all schedules on one time axis"));
    for (QPushButton* button : {m_take, m_remove, m_own})
        button->setAutoDefault(false);
    connect(m_own, &QPushButton::clicked, this, &CompareWindow::windowWanted);
    m_hint->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    auto* bar = new QHBoxLayout;
    bar->setSpacing(8);
    bar->addWidget(addButton);
    bar->addWidget(m_remove);
    bar->addWidget(m_take);
    bar->addSpacing(4);
    bar->addWidget(m_hint, 100);
    bar->addStretch(1); // where it is hidden
    auto* noise = makeLayout<QHBoxLayout>(m_underNoise, {0, 0, 0, 0}, 8);
    noise->addWidget(makeCaption(tr("Under noise:"), TextSize::Normal, m_underNoise));
    noise->addWidget(m_noise);
    bar->addWidget(m_underNoise);
    bar->addWidget(m_own);
    QHBoxLayout* closing = makeClosingRow(*this);
    closing->setContentsMargins(0, 0, 0, 0);
    closing->insertStretch(0, 1);
    m_closing->setLayout(closing);
    QSplitter* splitter = m_splitter = new QSplitter(Qt::Vertical, this);
    splitter->addWidget(m_lanes);
    splitter->addWidget(m_table);
    splitter->setSizes({420, 300});
    splitter->setStretchFactor(0, 1);
    splitter->setChildrenCollapsible(false);
    auto* layout = makeLayout<QVBoxLayout>(this, {20, 16, 20, 16}, 12);
    layout->addLayout(bar);
    layout->addWidget(m_offers);
    layout->addWidget(splitter, 1);
    layout->addWidget(m_closing);

    connect(splitter, &QSplitter::splitterMoved, this, [this] { m_borderIsOwn = true; });
    connect(m_take, &QPushButton::clicked, this, &CompareWindow::takeCurrent);
    connect(m_remove, &QPushButton::clicked, this, &CompareWindow::removeCurrent);
    connect(m_noise, &NoiseFields::edited, this, &CompareWindow::fillTable);
    connect(m_lanes, &CompareLanes::chosen, this,
            [this](int entry) { m_table->setCurrentCell(std::max(0, m_table->currentRow()), entry); });
    connect(m_table, &QTableWidget::currentCellChanged, this, [this](int, int column) {
        m_lanes->setCurrent(column);
        m_take->setEnabled(column > 0 && m_entries[column].prediction);
        m_remove->setEnabled(column > 0);
    });
    connect(m_addMenu, &QMenu::aboutToShow, this, &CompareWindow::buildAddMenu);
    connect(&m_document, &Document::designChanged, this, &CompareWindow::followDocument);
    m_entries.emplace_back();
    buildAddMenu();
    buildOffers();
    resizeOnScreen(*this, {1080, 780});
}

CompareWindow::~CompareWindow()
{
    m_worker.clear();
    m_worker.waitForDone();
}

void CompareWindow::setOpened(Design design)
{
    m_opened = std::move(design);
}

void CompareWindow::buildAddMenu()
{
    m_addMenu->clear();
    connect(m_addMenu->addAction(tr("The state before the edits")), &QAction::triggered, this,
            &CompareWindow::addOpened);
    m_addMenu->actions().constLast()->setEnabled(m_opened && !(*m_opened == m_document.design()));
    connect(m_addMenu->addAction(tr("Keep the present state")), &QAction::triggered, this, &CompareWindow::addKept);
    connect(m_addMenu->addAction(tr("From a file…")), &QAction::triggered, this, [this] {
        const QStringList paths =
            QFileDialog::getOpenFileNames(this, tr("Compare with"), QFileInfo(m_document.path()).path(),
                                          tr("Designs and recordings (*.json *.db);;All files (*)"));
        for (const QString& path : paths)
            addFile(path);
    });
    QMenu* menu = m_addMenu->addMenu(tr("Another family, same settings"));
    for (std::size_t i = 0; i < families().size(); ++i) {
        connect(menu->addAction(QString::fromUtf8(families()[i].title)), &QAction::triggered, this,
                [this, i] { addFamily(i); });
    }
}

void CompareWindow::buildOffers()
{
    auto* row = makeLayout<QHBoxLayout>(m_offers, {0, 0, 0, 0}, 8);
    row->addWidget(makeCaption(tr("Compare with"), TextSize::Normal, m_offers));
    const auto offer = [&](const QString& text, const QString& tip, auto run) {
        auto* button = new QPushButton(text, m_offers);
        button->setAutoDefault(false);
        button->setToolTip(tip);
        button->setAccessibleName(tr("Compare with %1").arg(text));
        connect(button, &QPushButton::clicked, this, run);
        row->addWidget(button);
        return button;
    };
    // Well-known families; the menu lists all.
    for (const char* name : {"gpipe", "1f1b", "zb-h1", "zb-v", "v-half"})
        for (std::size_t i = 0; i < families().size(); ++i)
            if (families()[i].name == name)
                offer(QString::fromUtf8(families()[i].title), QString::fromUtf8(families()[i].description), [this, i] {
                    addFamily(i);
                })->setProperty("family", QString::fromLatin1(name));
    offer(tr("The present state, kept"), tr("As it is now; then change the schedule and see both"),
          [this] { addKept(); });
    row->addStretch(1);
}

void CompareWindow::reject()
{
    if (isWindow())
        QDialog::reject();
}

void CompareWindow::fitInto()
{
    constexpr int besideLanes = 400, besideNoise = 1100, besideOffers = 640; // pixels from which there is room
    const bool own = isWindow();
    m_closing->setVisible(own);
    m_own->setVisible(!own);
    layout()->setContentsMargins(own ? QMargins(20, 16, 20, 16) : QMargins(18, 8, 12, 6));
    layout()->setSpacing(own ? 12 : 6);
    m_lanes->setVisible(own || height() >= besideLanes);
    m_underNoise->setVisible(own || width() >= besideNoise);
    m_offers->setVisible(own || width() >= besideOffers);
    for (QPushButton* offer : m_offers->findChildren<QPushButton*>()) {
        const std::string family = offer->property("family").toString().toStdString();
        offer->setEnabled(family.empty()
                          || std::none_of(m_entries.begin() + 1, m_entries.end(),
                                          [&](const Entry& entry) { return entry.design.schedule.family == family; }));
    }
    // While there is nothing to compare with, the offers say it too.
    m_hint->setVisible(own || m_entries.size() > 1 || !m_offers->isVisibleTo(this));
}

void CompareWindow::showEvent(QShowEvent* event)
{
    QDialog::showEvent(event);
    fitInto();
    followDocument();
    // Start by comparing with the state before the edits.
    if (m_entries.size() == 1 && m_opened && !(*m_opened == m_document.design()))
        addOpened();
}

void CompareWindow::resizeEvent(QResizeEvent* event)
{
    QDialog::resizeEvent(event);
    fitInto();
    shareHeight();
}

void CompareWindow::followDocument()
{
    if (!isVisible())
        return; // do not copy predictions while hidden
    Entry& present = m_entries.front();
    present.design = m_document.design();
    m_noise->setCosts(present.design.costs);
    present.name = tr("Present: %1").arg(QString::fromStdString(present.design.name));
    present.prediction =
        m_document.prediction() ? std::make_shared<const Prediction>(*m_document.prediction()) : nullptr;
    present.note = tr("The placed blocks cannot run: see the conflicts");
    refresh();
}

int CompareWindow::current() const
{
    return m_lanes->current();
}

std::vector<CompareWindow::Other> CompareWindow::others() const
{
    std::vector<Other> others;
    for (std::size_t i = 1; i < m_entries.size(); ++i)
        if (m_entries[i].prediction)
            others.push_back({m_entries[i].name, &m_entries[i].design, m_entries[i].prediction.get()});
    return others;
}

QString CompareWindow::uniqueName(const QString& wanted) const
{
    QString name = wanted;
    const auto taken = [&](const Entry& entry) { return entry.name == name; };
    for (int n = 2; std::any_of(m_entries.begin(), m_entries.end(), taken); ++n)
        name = QStringLiteral("%1 (%2)").arg(wanted).arg(n);
    return name;
}

void CompareWindow::add(const QString& name, std::function<Design()> make)
{
    if (m_entries.size() >= mostEntries) {
        m_hint->setText(tr("At most %1 schedules: remove one first").arg(mostEntries));
        return;
    }
    Entry entry;
    entry.id = ++m_lastId;
    entry.name = uniqueName(name);
    entry.note = tr("working it out …");
    m_entries.push_back(entry);
    ++m_pending;
    refresh();
    m_worker.start([this, entry, make = std::move(make), members = m_document.memberPredictor()] {
        Entry made = entry;
        try {
            made.design = make();
            made.prediction =
                std::make_shared<const Prediction>(members->predictPlaced(made.design, MemberPredictor::Patience::Any));
        } catch (const std::exception& error) {
            made.note = QString::fromUtf8(error.what());
        }
        QMetaObject::invokeMethod(
            this, [this, id = entry.id, made = std::move(made)] { settle(id, made); }, Qt::QueuedConnection);
    });
}

void CompareWindow::settle(int id, Entry made)
{
    --m_pending;
    const auto it =
        std::find_if(m_entries.begin(), m_entries.end(), [id](const Entry& entry) { return entry.id == id; });
    if (it != m_entries.end())
        *it = std::move(made);
    refresh();
}

void CompareWindow::addKept()
{
    add(tr("Kept: %1").arg(QString::fromStdString(m_document.design().name)),
        [design = m_document.design()] { return design; });
}

void CompareWindow::addOpened()
{
    if (m_opened)
        add(tr("Before the edits"), [design = *m_opened] { return design; });
}

void CompareWindow::addFamily(std::size_t family)
{
    const Family& chosen = families()[family];
    add(QString::fromUtf8(chosen.title), [base = m_document.design(), &chosen] { return withFamily(base, chosen); });
}

void CompareWindow::addFile(const QString& path)
{
    add(QFileInfo(path).fileName(), [path] { return readAny(path); });
}

void CompareWindow::removeCurrent()
{
    const int entry = current();
    if (entry <= 0)
        return;
    m_entries.erase(m_entries.begin() + entry);
    m_lanes->setCurrent(entry - 1);
    refresh();
}

void CompareWindow::takeCurrent()
{
    const int entry = current();
    if (entry <= 0 || !m_entries[entry].prediction)
        return;
    const Entry taken = m_entries[entry];
    m_document.replaceDesign(taken.design, tr("Use %1").arg(taken.name));
}

void CompareWindow::refresh()
{
    std::vector<CompareLanes::Schedule> shown;
    for (const Entry& entry : m_entries)
        shown.push_back(CompareLanes::scheduleOf(entry.name, entry.design, entry.prediction.get(), entry.note));
    m_lanes->setSchedules(std::move(shown));
    fillTable();
    fitInto();
    shareHeight();
    m_hint->setText(m_entries.size() == 1 ? tr("Nothing to compare with yet")
                                          : tr("Differences are against the present schedule"));
    Q_EMIT changed();
}

/// Divides the height between lanes and table. The lanes get the height that the table does not need, but at least what
/// they need themselves, up to three fifths of all. A splitter that was dragged stays until the number of schedules
/// changes.
void CompareWindow::shareHeight()
{
    m_borderIsOwn = m_borderIsOwn && m_laidOut == count();
    m_laidOut = count();
    if (m_borderIsOwn || m_lanes->isHidden())
        return;
    const int all = m_splitter->height() - m_splitter->handle(1)->sizeHint().height();
    const int lanes = std::min(m_lanes->maximumHeight(),
                               std::max(all - neededHeight(*m_table), std::min(m_lanes->neededHeight(), all * 3 / 5)));
    m_splitter->setSizes({lanes, all - lanes});
}

void CompareWindow::fillTable()
{
    std::vector<ComparedSchedule> compared;
    for (const Entry& entry : m_entries)
        compared.push_back({entry.name, entry.design, entry.prediction.get()});
    const int row = std::max(0, m_table->currentRow()), column = current();
    const QSignalBlocker quiet(m_table);
    fillCompareTable(*m_table, compared, m_noise->value());
    m_table->setCurrentCell(std::min(row, m_table->rowCount() - 1), column);
    m_take->setEnabled(column > 0 && m_entries[column].prediction);
    m_remove->setEnabled(column > 0);
}

} // namespace pipewright

#include "moc_comparewindow.cpp"
