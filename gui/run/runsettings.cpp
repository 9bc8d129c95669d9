// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run/runsettings.h"

#include "core/base/diagnostic.h"
#include "executor/run/backendcheck.h"
#include "executor/run/machinefit.h"
#include "executor/torch/torchjob.h"
#include "gui/run/smalldesign.h"
#include "gui/widgets/closingrow.h"
#include "gui/widgets/fields.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/notedfield.h"
#include "gui/widgets/words.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFileDialog>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QStandardItemModel>

#include <algorithm>

namespace pipewright {

namespace {

constexpr int runFieldWidth = 300;
constexpr const char *moduleOption = "--module", *replicasOption = "--replicas";

/// 0.01 -> "1/100".
QString partText(double scale)
{
    return scale == 1 ? RunSettings::tr("all") : QStringLiteral("1/%1").arg(QString::number(1 / scale, 'f', 0));
}

} // namespace

RunSettings::RunSettings(const QString& program, const RunChoice& choice, QWidget* parent)
    : QDialog(parent), m_last(choice), m_query(new BackendQuery(this)), m_program(program),
      m_verdict(new Paragraph(this)), m_remedy(new QPushButton(tr("Sleep instead"), this)),
      m_small(new QPushButton(tr("Train a small GPT"), this)), m_run(new QPushButton(tr("▶ Run"), this))
{
    setWindowTitle(tr("Run"));
    makePanel(this);
    m_run->setProperty("primary", true);
    m_run->setDefault(true);
    m_run->setEnabled(false);
    m_remedy->setToolTip(tr("Blocks take their times and hold as many of their bytes as there is room for"));
    m_small->setToolTip(tr("This schedule with a model that CPU threads train: one undo step"));
    m_remedy->hide();
    m_small->hide();
    m_verdict->setWordWrap(true);
    m_verdict->setAccessibleName(tr("What the backend makes of this design"));
    m_verdict->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_verdict->setMinimumHeight(36);
    m_verdict->setAlignment(Qt::AlignLeft | Qt::AlignTop);
    auto* remedies = new QHBoxLayout;
    remedies->setSpacing(8);
    for (QPushButton* remedy : {m_remedy, m_small})
        remedies->addWidget(remedy);
    remedies->addStretch(1);
    auto* layout = makeLayout<QVBoxLayout>(this, {24, 18, 24, 18}, 12);
    layout->addWidget(buildForm());
    layout->addWidget(makeHairline(Qt::Horizontal, this));
    layout->addWidget(m_verdict);
    layout->addLayout(remedies);
    layout->addLayout(makeClosingRow(*this, m_run));
    setFixedWidth(470); // long reasons wrap

    connect(m_run, &QPushButton::clicked, this, &RunSettings::startRun);
    connect(m_remedy, &QPushButton::clicked, this, [this] {
        if (const auto remedy = judge().remedy)
            m_blocks->setCurrentIndex(m_blocks->findData(static_cast<int>(*remedy)));
    });
    connect(m_small, &QPushButton::clicked, this, &RunSettings::smallDesignWanted);
    connect(m_query, &BackendQuery::ready, this, &RunSettings::takeBackends);
    m_query->start(program, choice.python);
}

QWidget* RunSettings::buildForm()
{
    auto* widget = new QWidget(this);
    m_form = new QGridLayout(widget);
    m_form->setContentsMargins(0, 0, 0, 0);
    m_form->setHorizontalSpacing(16);
    m_form->setVerticalSpacing(8);
    m_form->setColumnStretch(1, 1);
    const auto combo = [widget](const QString& name) {
        auto* field = new QComboBox(widget);
        field->setAccessibleName(name);
        field->setFixedWidth(runFieldWidth);
        return field;
    };
    m_backend = combo(tr("Backend"));
    m_note = makeCaption(tr("Asking what can run here …"), TextSize::Small, widget);
    m_note->setWordWrap(true);
    m_note->setFixedWidth(runFieldWidth);
    m_steps = makeCountField(tr("Steps"), 1, 1'000'000, m_last.steps, runFieldWidth, widget);
    m_blocks = combo(tr("What blocks do"));
    m_blocks->addItem(tr("train the model"), static_cast<int>(RunChoice::Blocks::Train));
    m_blocks->addItem(tr("sleep for the design's times"), static_cast<int>(RunChoice::Blocks::Sleep));
    m_blocks->addItem(tr("keep busy for the design's times"), static_cast<int>(RunChoice::Blocks::KeepBusy));
    m_data = new QLineEdit(m_last.data, widget);
    m_data->setPlaceholderText(tr("the program's own sources"));
    m_data->setAccessibleName(tr("Data file"));
    m_dataRow = withBrowse(
        m_data,
        [this] {
            if (const QString path = QFileDialog::getOpenFileName(this, tr("Training text")); !path.isEmpty())
                m_data->setText(path);
        },
        runFieldWidth, widget);
    m_transport = combo(tr("Sends"));
    m_transport->addItem(tr("synchronous"), QStringLiteral("rendezvous"));
    for (const int slots : {1, 4})
        m_transport->addItem(tr("buffered, %1 in flight").arg(slots), QStringLiteral("eager:%1").arg(slots));
    m_transport->setCurrentIndex(std::max(0, m_transport->findData(m_last.transport)));
    m_transport->setToolTip(
        tr("Synchronous: a send waits until its receiver takes it (--transport rendezvous). Buffered: so many sends "
           "from a device to another may wait in a buffer (--transport eager)"));
    m_calibrate = new QCheckBox(tr("Take the measured costs as the design's"), widget);
    m_calibrate->setChecked(m_last.calibrate);
    m_calibrate->setToolTip(tr("Calibrate: one undo step after the run"));

    addRow(tr("Backend"), m_backend);
    addRow({}, m_note);
    addRow(tr("Steps"), m_steps);
    addRow(tr("Blocks"), m_blocks);
    addRow(tr("Data"), m_dataRow);
    addRow(tr("Sends"), m_transport);
    buildTorchFields(widget);
    addRow({}, m_calibrate);
    connect(m_backend, &QComboBox::currentIndexChanged, this, &RunSettings::refresh);
    connect(m_blocks, &QComboBox::currentIndexChanged, this, &RunSettings::refresh);
    return widget;
}

void RunSettings::addRow(const QString& text, QWidget* field)
{
    const int row = m_form->rowCount();
    if (!text.isEmpty()) {
        QLabel* label = makeCaptionOf(field, text);
        const bool noted = qobject_cast<NotedField*>(field) != nullptr;
        label->setContentsMargins(0, noted ? 6 : 0, 0, 0);
        m_form->addWidget(label, row, 0, noted ? Qt::AlignTop : Qt::Alignment());
    }
    m_form->addWidget(field, row, 1);
}

void RunSettings::showRow(QWidget* field, bool shown)
{
    if (NotedField* noted = NotedField::around(field))
        field = noted;
    int row = 0, column = 0, rows = 0, columns = 0;
    m_form->getItemPosition(m_form->indexOf(field), &row, &column, &rows, &columns);
    for (const int each : {0, 1})
        if (QLayoutItem* item = m_form->itemAtPosition(row, each))
            item->widget()->setVisible(shown);
}

void RunSettings::buildTorchFields(QWidget* form)
{
    m_module = new QLineEdit(m_last.module, form);
    m_module->setToolTip(tr("Your model: build() returns its layers in order, or build(stage) one stage; the file has "
                            "batch(step) and loss(output, target) too"));
    m_moduleRow = withModuleBrowse(m_module, runFieldWidth, form);
    m_synthetic = new QCheckBox(tr("no module: stages that take the design's times"), form);
    m_synthetic->setChecked(m_last.syntheticStages);
    m_replicas = makeCountField(tr("Replicas"), 1, RunChoice::mostReplicas, m_last.replicas, runFieldWidth, form);
    m_replicas->setToolTip(
        tr("Copies of the pipeline, a process for each of their devices, each with its own rows; "
           "your file's replicate(module, mesh) joins those of a stage. The first is recorded. Copies "
           "that the design counts run without it"));
    m_profile = new QCheckBox(tr("record operators and kernels too (PyTorch's profiler)"), form);
    m_profile->setChecked(m_last.profile);
    m_profile->setToolTip(tr("Blocks then unfold into them. It takes time itself, which the run's result says"));
    m_python = new QLineEdit(m_last.python, form);
    m_python->setAccessibleName(tr("Python"));
    m_python->setFixedWidth(runFieldWidth);
    m_python->setToolTip(tr("The Python that has PyTorch"));
    m_moduleRow->setAccessibleName(tr("the module"));
    addRow(tr("Module"), new NotedField(m_moduleRow, form));
    addRow({}, m_synthetic);
    addRow(tr("Replicas"), new NotedField(m_replicas, form));
    addRow({}, m_profile);
    addRow(tr("Python"), m_python);
    connect(m_module, &QLineEdit::textChanged, this, &RunSettings::refresh);
    connect(m_synthetic, &QCheckBox::toggled, this, &RunSettings::refresh);
    connect(m_replicas, &QSpinBox::valueChanged, this, &RunSettings::refresh);
    connect(m_profile, &QCheckBox::toggled, this, &RunSettings::refresh);
    connect(m_python, &QLineEdit::editingFinished, this, [this] {
        if (const BackendChoice* now = chosen(); now && m_python->text() != m_query->python()) {
            m_note->setText(tr("Asking %1 for PyTorch …").arg(m_python->text()));
            m_query->start(m_program, m_python->text());
        }
    });
}

void RunSettings::setModule(const QString& module, const QString& python)
{
    m_last.backend = QStringLiteral("torch");
    m_module->setText(module);
    m_synthetic->setChecked(false);
    if (const int row = m_backend->findData(m_last.backend); row >= 0)
        m_backend->setCurrentIndex(row);
    if (python != m_python->text()) {
        m_python->setText(python);
        m_query->start(m_program, python);
    }
}

void RunSettings::setDesign(std::shared_ptr<const Design> design, std::vector<Bytes> peaks)
{
    m_design = std::move(design);
    m_peaks = std::move(peaks);
    if (m_backends.empty())
        return;
    fillBackends();
}

void RunSettings::takeBackends(const std::vector<BackendChoice>& found)
{
    m_backends = found;
    if (m_design)
        fillBackends();
}

void RunSettings::fillBackends()
{
    const QSignalBlocker quiet(m_backend);
    const QString wanted = m_backend->count() > 0 ? m_backend->currentData().toString() : m_last.backend;
    m_backend->clear();
    auto* model = qobject_cast<QStandardItemModel*>(m_backend->model());
    int first = -1;
    for (const BackendChoice& each : m_backends) {
        const BackendChoice backend = forDesign(each, *m_design);
        m_backend->addItem(backend.available ? backend.name : tr("%1 (off)").arg(backend.name), backend.name);
        const int row = m_backend->count() - 1;
        m_backend->setItemData(row, backend.description, Qt::ToolTipRole);
        if (!backend.available && model)
            model->item(row)->setEnabled(false);
        if (backend.available && (first < 0 || backend.name == wanted))
            first = row;
    }
    m_backend->setCurrentIndex(first);
    refresh();
}

const BackendChoice* RunSettings::chosen() const
{
    const auto at = std::find_if(m_backends.begin(), m_backends.end(), [this](const BackendChoice& backend) {
        return backend.name == m_backend->currentData().toString();
    });
    return at == m_backends.end() ? nullptr : &*at;
}

RunChoice RunSettings::choice() const
{
    RunChoice choice = m_last;
    choice.backend = m_backend->currentData().toString();
    choice.steps = m_steps->value();
    choice.blocks = static_cast<RunChoice::Blocks>(m_blocks->currentData().toInt());
    choice.data = m_data->text().trimmed();
    choice.transport = m_transport->currentData().toString();
    choice.calibrate = m_calibrate->isChecked();
    choice.module = m_module->text().trimmed();
    choice.syntheticStages = m_synthetic->isChecked();
    choice.replicas = m_replicas->value();
    choice.profile = m_profile->isChecked();
    choice.python = m_python->text().trimmed();
    choice.memoryScale = 1;
    if (const BackendChoice* backend = chosen();
        backend && m_design && !choice.isTorch() && choice.blocks != RunChoice::Blocks::Train)
        choice.memoryScale =
            memoryScaleThatFits(*m_design, m_peaks, choice.backend.toStdString(), machineMemory(m_backends));
    return choice;
}

RunSettings::Verdict RunSettings::judge() const
{
    if (!m_design || !chosen())
        return {};
    const RunChoice choice = this->choice();
    if (choice.isTorch()) {
        if (!choice.syntheticStages && choice.module.isEmpty())
            return {
                .ofFields = {
                    {Severity::Error,
                     moduleOption,
                     tr("name what PyTorch is to run, as FILE.py:build, or take stages without a module").toStdString(),
                     {}}}};
        try {
            TorchOptions options;
            options.module = choice.syntheticStages ? std::string() : choice.module.toStdString();
            options.syntheticStages = choice.syntheticStages;
            options.replicas = choice.replicas;
            options.profile = choice.profile;
            Diagnostics notes;
            (void)torchJob(*m_design, options, notes);
            return {true, proseText(notes), std::nullopt};
        } catch (const Error& error) {
            Diagnostics rest, ofFields;
            for (const Diagnostic& each : error.diagnostics())
                (isAbout(each, moduleOption) || isAbout(each, replicasOption) ? ofFields : rest).push_back(each);
            return {.text = proseText(rest), .ofFields = ofFields};
        }
    }
    const std::string backend = choice.backend.toStdString();
    const bool trains = choice.blocks == RunChoice::Blocks::Train;
    const RunOptions::Maths maths = trains ? RunOptions::Maths::Training : RunOptions::Maths::Timed;
    Diagnostics found = whyTooLarge(*m_design, m_peaks, backend, machineMemory(m_backends), choice.memoryScale);
    for (Diagnostic& each : found) // the remedies as the buttons below name them
        each.hint = tr("let blocks sleep for the design's times in buffers that are scaled down, or take a smaller "
                       "model, shorter sequences or fewer microbatches")
                        .toStdString();
    const BackendCheck check = checkForBackend(*m_design, {backend, maths, false});
    found.insert(found.end(), check.found.begin(), check.found.end());
    if (!hasErrors(found)) {
        Diagnostics slow = whySlow(*m_design, {backend, maths, false}, check.trains);
        for (Diagnostic& each : slow)
            each.hint = tr("take fewer devices, or let blocks sleep for the design's times").toStdString();
        found.insert(found.end(), slow.begin(), slow.end());
    }
    if (hasErrors(found)) {
        std::erase_if(found, [](const Diagnostic& each) { return each.severity != Severity::Error; });
        const bool timedWould =
            trains && !hasErrors(checkForBackend(*m_design, {backend, RunOptions::Maths::Timed, false}).found);
        constexpr std::size_t shown = 3; // the rest is in the tooltip, so that the dialog fits a small screen
        const QString all = proseText(found);
        QString text = all;
        if (found.size() > shown) {
            const auto more = static_cast<int>(found.size() - shown);
            found.resize(shown);
            text = proseText(found) + QLatin1Char('\n') + tr("and %1 more").arg(more);
        }
        return {.text = text,
                .remedy = timedWould ? std::optional(RunChoice::Blocks::Sleep) : std::nullopt,
                .all = all,
                .smallWould = trains && smallWouldTrain(backend)};
    }
    QString text = proseText(found);
    if (choice.memoryScale != 1)
        text = tr("Holds %1 of the design's bytes, which is what this machine has room for; times are the design's.")
                   .arg(partText(choice.memoryScale))
               + (text.isEmpty() ? QString() : QLatin1Char('\n') + text);
    return {true, text, std::nullopt};
}

bool RunSettings::smallWouldTrain(const std::string& backend) const
{
    if (backend != "host" && backend != "mpi") // it is for CPU threads
        return false;
    try {
        const Design small = smallDesign(*m_design);
        return small != *m_design
               && !hasErrors(checkForBackend(small, {backend, RunOptions::Maths::Training, false}).found);
    } catch (const Error&) {
        return false;
    }
}

void RunSettings::refresh()
{
    const BackendChoice* backend = chosen();
    if (!backend || !m_design)
        return;
    const RunChoice choice = this->choice();
    const bool torch = choice.isTorch(), trains = choice.blocks == RunChoice::Blocks::Train;
    for (QWidget* field : std::initializer_list<QWidget*>{m_moduleRow, m_synthetic, m_replicas, m_profile, m_python})
        showRow(field, torch);
    showRow(m_blocks, !torch);
    showRow(m_dataRow, !torch && trains);
    showRow(m_transport, !torch);
    m_moduleRow->setEnabled(!choice.syntheticStages);
    QStringList notes;
    for (const BackendChoice& each : m_backends)
        if (const BackendChoice mine = forDesign(each, *m_design); !mine.available)
            notes << tr("%1 is off: %2").arg(mine.name, mine.description);
        else if (each.name == backend->name)
            notes.prepend(QStringLiteral("%1: %2").arg(mine.name, mine.description));
    m_note->setText(notes.join(QLatin1Char('\n')));
    m_note->setMinimumHeight(m_note->heightForWidth(runFieldWidth));
    const Verdict verdict = judge();
    NotedField::around(m_moduleRow)->setNote(verdict.ofFields, moduleOption);
    NotedField::around(m_replicas)->setNote(verdict.ofFields, replicasOption);
    m_verdict->setText(verdict.text);
    m_verdict->setToolTip(verdict.all);
    setTone(m_verdict, verdict.possible ? Tone::Dim : Tone::Bad);
    m_run->setEnabled(verdict.possible);
    m_remedy->setVisible(verdict.remedy.has_value());
    m_small->setVisible(verdict.smallWould);
    adjustSize();
    // Return triggers the next step: the remedy where there is one, else Run.
    if (verdict.remedy)
        m_remedy->setFocus();
    else if (verdict.possible && (!focusWidget() || !focusWidget()->isEnabled() || focusWidget()->isHidden()))
        m_run->setFocus();
}

QString RunSettings::verdict() const
{
    return m_verdict->text();
}

void RunSettings::startRun()
{
    const RunChoice wanted = choice();
    accept();
    Q_EMIT runWanted(wanted);
}

} // namespace pipewright

#include "moc_runsettings.cpp"
