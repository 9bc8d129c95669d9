// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run/rundialog.h"

#include "core/base/diagnostic.h"
#include "core/files/designfile.h"
#include "gui/run/losscurve.h"
#include "gui/widgets/labels.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QFileDialog>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QSpinBox>
#include <QStandardItemModel>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr int runFieldWidth = 260;

QString timeLeftText(double seconds)
{
    if (seconds < 0)
        return {};
    const int whole = static_cast<int>(std::lround(seconds));
    if (whole < 60)
        return RunDialog::tr("about %1\u00a0s left").arg(std::max(1, whole));
    return RunDialog::tr("about %1\u00a0min %2\u00a0s left").arg(whole / 60).arg(whole % 60);
}

} // namespace

RunDialog::RunDialog(const Design& design, const QString& traceFolder, const QString& program, QWidget* parent)
    : QDialog(parent), m_design(design), m_traceFolder(traceFolder), m_program(program),
      m_process(new RunProcess(this)), m_run(new QPushButton(tr("▶ Run"), this)),
      m_cancel(new QPushButton(tr("Close"), this))
{
    setWindowTitle(tr("Run"));
    makePanel(this);
    m_run->setProperty("primary", true);
    m_run->setDefault(true);
    m_cancel->setAutoDefault(false); // Return runs, Escape closes
    m_run->setFocus();
    m_run->setEnabled(false);

    auto* buttons = new QHBoxLayout;
    buttons->addStretch(1);
    buttons->addWidget(m_cancel);
    buttons->addWidget(m_run);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(24, 20, 24, 20);
    layout->setSpacing(14);
    layout->addWidget(buildForm());
    layout->addWidget(makeHairline(Qt::Horizontal, this));
    layout->addWidget(buildProgress(), 1);
    layout->addLayout(buttons);

    connect(m_run, &QPushButton::clicked, this, &RunDialog::startRun);
    connect(m_cancel, &QPushButton::clicked, this, &RunDialog::reject);
    connect(m_process, &RunProcess::progressed, this, &RunDialog::showProgress);
    connect(m_process, &RunProcess::message, m_log, [this](const QString& line) {
        m_log->show();
        m_log->appendPlainText(line);
    });
    connect(m_process, &RunProcess::finished, this, &RunDialog::end);

    auto* query = new BackendQuery(this);
    connect(query, &BackendQuery::ready, this, &RunDialog::takeBackends);
    query->start(program);
    resize(520, sizeHint().height());
}

RunDialog::~RunDialog()
{
    if (!m_designFile.isEmpty())
        QFile::remove(m_designFile);
}

QWidget* RunDialog::buildForm()
{
    m_form = new QWidget(this);
    auto* form = new QFormLayout(m_form);
    form->setContentsMargins(0, 0, 0, 0);
    form->setHorizontalSpacing(16);
    form->setVerticalSpacing(9);
    m_backend = new QComboBox(m_form);
    m_backend->setAccessibleName(tr("Backend"));
    m_backend->setFixedWidth(runFieldWidth);
    m_backendNote = makeCaption(tr("Asking what can run here …"), TextSize::Small, m_form);
    m_backendNote->setWordWrap(true);
    m_steps = new QSpinBox(m_form);
    m_steps->setRange(1, 1'000'000);
    m_steps->setValue(10);
    m_steps->setButtonSymbols(QAbstractSpinBox::NoButtons);
    m_steps->setFont(Theme::numbers());
    m_steps->setFixedWidth(runFieldWidth);
    m_steps->setAccessibleName(tr("Steps"));
    m_data = new QLineEdit(m_form);
    m_data->setPlaceholderText(tr("the program's own sources"));
    m_data->setAccessibleName(tr("Data file"));
    auto* browse = new QPushButton(tr("Browse…"), m_form);
    connect(browse, &QPushButton::clicked, this, [this] {
        if (const QString path = QFileDialog::getOpenFileName(this, tr("Training text")); !path.isEmpty())
            m_data->setText(path);
    });
    m_transport = new QComboBox(m_form);
    m_transport->setAccessibleName(tr("Transport"));
    m_transport->setFixedWidth(runFieldWidth);
    m_transport->addItem(tr("rendezvous"), QStringLiteral("rendezvous"));
    for (const int slots : {1, 4})
        m_transport->addItem(tr("eager, %1 on the way").arg(slots), QStringLiteral("eager:%1").arg(slots));
    m_calibrate = new QCheckBox(tr("Calibrate: take the measured costs as the design's (one undo step)"), m_form);

    const auto addRow = [form](const QString& text, QWidget* field) { form->addRow(makeCaption(text), field); };
    addRow(tr("Backend"), m_backend);
    form->addRow(nullptr, m_backendNote);
    addRow(tr("Steps"), m_steps);
    auto* dataRow = new QWidget(m_form);
    auto* dataLayout = new QHBoxLayout(dataRow);
    dataLayout->setContentsMargins(0, 0, 0, 0);
    dataLayout->addWidget(m_data, 1);
    dataLayout->addWidget(browse);
    addRow(tr("Data"), dataRow);
    addRow(tr("Transport"), m_transport);
    form->addRow(nullptr, m_calibrate);
    return m_form;
}

QWidget* RunDialog::buildProgress()
{
    auto* widget = new QWidget(this);
    auto* layout = new QVBoxLayout(widget);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(8);
    m_status = new QLabel(tr("Not started"), widget);
    m_status->setWordWrap(true);
    m_status->setAccessibleName(tr("State of the run"));
    m_loss = makeNumber({}, TextSize::Small, widget);
    m_loss->setAccessibleName(tr("Loss"));
    auto* line = new QHBoxLayout;
    line->addWidget(m_status, 1);
    line->addWidget(m_loss);
    m_bar = new QProgressBar(widget);
    m_bar->setRange(0, 1000);
    m_bar->setTextVisible(false);
    m_bar->setFixedHeight(6);
    m_bar->setAccessibleName(tr("Progress"));
    m_curve = new LossCurve(widget);
    m_log = new QPlainTextEdit(widget);
    m_log->setReadOnly(true);
    m_log->setFont(Theme::numbers(TextSize::Small));
    m_log->setAccessibleName(tr("Messages of the run"));
    m_log->setMinimumHeight(80);
    m_log->hide();
    layout->addLayout(line);
    layout->addWidget(m_bar);
    layout->addWidget(m_curve);
    layout->addWidget(m_log, 1);
    return widget;
}

void RunDialog::takeBackends(const std::vector<BackendChoice>& found)
{
    std::vector<BackendChoice> backends;
    for (const BackendChoice& backend : found)
        backends.push_back(forDesign(backend, m_design));
    m_backend->clear();
    QStringList notes;
    auto* model = qobject_cast<QStandardItemModel*>(m_backend->model());
    for (const BackendChoice& backend : backends) {
        m_backend->addItem(backend.available ? backend.name : tr("%1 (off)").arg(backend.name), backend.name);
        const int row = m_backend->count() - 1;
        m_backend->setItemData(row, backend.description, Qt::ToolTipRole);
        if (!backend.available && model)
            model->item(row)->setEnabled(false);
        notes << (backend.available ? QStringLiteral("%1: %2") : tr("%1 is off: %2"))
                     .arg(backend.name, backend.description);
    }
    for (std::size_t i = 0; i < backends.size(); ++i) {
        if (backends[i].available) {
            m_backend->setCurrentIndex(static_cast<int>(i));
            m_run->setEnabled(true);
            if (!focusWidget() || focusWidget() == m_cancel)
                m_run->setFocus(); // it could not take the focus before
            break;
        }
    }
    m_backendNote->setText(notes.join(QLatin1Char('\n')));
    // A form keeps the height of a label's first text; this text came later and is longer.
    m_backendNote->setMinimumHeight(m_backendNote->heightForWidth(std::max(runFieldWidth, m_backendNote->width())));
    adjustSize();
}

bool RunDialog::calibrateWanted() const
{
    return m_calibrate->isChecked();
}

void RunDialog::startRun()
{
    m_log->clear();
    m_log->hide();
    m_curve->clear();
    m_loss->clear();
    m_result = {};
    ChildRequest request;
    try {
        if (!QDir().mkpath(m_traceFolder))
            throw Error(m_traceFolder.toStdString(), "cannot create the folder for traces");
        // Runs are numbered for reference.
        const QDir folder(m_traceFolder);
        int number = 1;
        while (folder.exists(QStringLiteral("run %1.db").arg(number)))
            ++number;
        m_designFile = folder.filePath(QStringLiteral("run %1.design.json").arg(number));
        request.trace = folder.filePath(QStringLiteral("run %1.db").arg(number));
        writeDesign(m_design, m_designFile.toStdString(), true);
    } catch (const Error& error) {
        ChildResult result;
        result.reason = QString::fromUtf8(error.what());
        end(result);
        return;
    }
    request.program = m_program;
    request.design = m_designFile;
    request.backend = m_backend->currentData().toString();
    request.steps = m_steps->value();
    request.data = m_data->text().trimmed();
    request.transport = m_transport->currentData().toString();
    setRunning(true);
    m_status->setText(tr("Starting …"));
    m_bar->setRange(0, 0);
    m_process->start(request);
}

void RunDialog::setRunning(bool running)
{
    m_form->setEnabled(!running);
    m_run->setEnabled(!running);
    m_cancel->setText(running ? tr("Cancel") : tr("Close"));
    m_cancel->setEnabled(true);
}

void RunDialog::showProgress(const ChildProgress& progress)
{
    m_bar->setRange(0, 1000);
    m_bar->setValue(static_cast<int>(std::lround(progress.share * 1000)));
    QStringList words;
    if (progress.step >= 0 && progress.steps > 0)
        words << tr("step %1 of %2").arg(progress.step).arg(progress.steps);
    else
        words << tr("%1\u00a0%").arg(std::lround(progress.share * 100));
    if (const QString left = timeLeftText(progress.secondsLeft); !left.isEmpty())
        words << left;
    m_status->setText(words.join(QStringLiteral(" · ")));
    if (progress.loss) {
        m_loss->setText(tr("loss %1").arg(*progress.loss, 0, 'f', 4));
        m_curve->append(*progress.loss);
    }
}

QString RunDialog::resultText(const ChildResult& result) const
{
    switch (result.kind) {
    case ChildResult::Cancelled:
        return tr("Cancelled. Finished steps are in the trace, which was not laid over the design.");
    case ChildResult::Failed: return result.reason;
    case ChildResult::Done: break;
    }
    if (!result.gradientsChecked)
        return tr("Done. Gradients were not checked.");
    if (result.bitEqual)
        return tr("Done. Gradients are bit-equal to the sequential run ✓");
    return tr("Done. Gradients differ from the sequential run by up to %1.").arg(result.maxRelativeError, 0, 'g', 3);
}

void RunDialog::end(const ChildResult& result)
{
    m_result = result;
    setRunning(false);
    m_bar->setRange(0, 1000);
    m_bar->setValue(result.kind == ChildResult::Done ? 1000 : m_bar->value());
    m_status->setText(resultText(result));
    const bool bad = result.kind == ChildResult::Failed || (result.gradientsChecked && !result.gradientsHold);
    setTone(m_status, bad ? Tone::Bad : result.kind == ChildResult::Done ? Tone::Good : Tone::Plain);
    QFile::remove(m_designFile);
    m_designFile.clear();
    if (result.kind == ChildResult::Done)
        Q_EMIT runFinished(result);
}

void RunDialog::reject()
{
    if (!m_process->isRunning()) {
        QDialog::reject();
        return;
    }
    m_cancel->setEnabled(false);
    m_status->setText(tr("Cancelling …"));
    m_process->cancel();
}

} // namespace pipewright

#include "moc_rundialog.cpp"
