// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/model/profiledialog.h"

#include "core/design/newdesign.h"
#include "core/json/jsonvalue.h"
#include "core/model/transformer.h"
#include "core/presets/modelfile.h"
#include "gui/widgets/closingrow.h"
#include "gui/widgets/fields.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/words.h"

#include <QComboBox>
#include <QFileInfo>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>

namespace pipewright {

namespace {

constexpr int profileFieldWidth = 300;

/// A design of the same family on the same devices, with the measured model.
Design withProfiledModel(const Design& base, const ModelFile& model, int microbatches)
{
    const Family* family = findFamily(base.schedule.family);
    if (!family)
        throw Error("model", "an order of one's own fits the model that it was made for",
                    "choose a family at the left first, or make a new schedule of the model");
    NewDesign choice;
    choice.workload =
        makeWorkload(model.shape, base.workload ? base.workload->optimizer : Optimizer::AdamW, model.source);
    choice.cluster = base.cluster;
    choice.family = base.schedule.family;
    choice.devices = base.schedule.devices();
    choice.microbatches = microbatches;
    if (family->chunksSelectable)
        choice.chunks = base.schedule.stages() / base.schedule.devices();
    return designFromModel(choice);
}

} // namespace

ProfileDialog::ProfileDialog(Document& document, const QString& program, const QString& module, const QString& python,
                             QWidget* parent)
    : QDialog(parent), m_document(document), m_program(program), m_module(new QLineEdit(module, this)),
      m_python(new QLineEdit(python, this)), m_device(new QComboBox(this)), m_microbatches(nullptr),
      m_seconds(new DecimalField(this)), m_bar(new QProgressBar(this)), m_state(new Paragraph(this)),
      m_new(new QPushButton(tr("New schedule of it…"), this)), m_profile(new QPushButton(tr("Profile"), this))
{
    setWindowTitle(tr("Profile my module"));
    makePanel(this);
    m_profile->setProperty("primary", true); // before the layout, which depends on it
    m_module->setToolTip(tr("Your model: build() returns its layers in order; the file has batch(step) and "
                            "loss(output, target) too"));
    QWidget* moduleRow = withModuleBrowse(m_module, profileFieldWidth, this);
    m_python->setAccessibleName(tr("Python"));
    m_python->setToolTip(tr("The Python that has PyTorch"));
    m_python->setFixedWidth(profileFieldWidth);
    m_device->setAccessibleName(tr("Device"));
    m_device->setFixedWidth(profileFieldWidth);
    m_device->addItem(tr("a GPU where there is one, else the CPU"), QStringLiteral("auto"));
    m_device->addItem(tr("the CPU"), QStringLiteral("host"));
    m_device->addItem(tr("a GPU"), QStringLiteral("cuda"));
    const int pieces = document.design().schedule.sequencePieces;
    m_microbatches =
        makeCountField(tr("Microbatches"), 1, 1 << 20, document.design().schedule.microbatches / std::max(1, pieces),
                       profileFieldWidth, this);
    m_microbatches->setToolTip(
        tr("Your batch(0) is cut into so many, one of which is measured; the design gets as many"));
    m_seconds->setRange(0.01, 600);
    m_seconds->setDecimals(2);
    m_seconds->setValue(0.5);
    m_seconds->setSuffix(QStringLiteral("\u00a0s"));
    m_seconds->setButtonSymbols(QAbstractSpinBox::NoButtons);
    m_seconds->setFont(Theme::numbers());
    m_seconds->setFixedWidth(profileFieldWidth);
    m_seconds->setAccessibleName(tr("Seconds for each layer"));
    m_seconds->setToolTip(tr("At least: more make the medians surer"));
    m_bar->setRange(0, 100);
    m_bar->setTextVisible(false);
    m_bar->setFixedHeight(6);
    m_bar->hide();
    m_state->setAccessibleName(tr("What the measurement says"));
    m_state->setWordWrap(true);
    m_state->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_state->setMinimumHeight(54);
    m_state->setAlignment(Qt::AlignLeft | Qt::AlignTop);
    say(tr(
        "Every layer's forward, input gradient, weight gradient and bytes are measured on one device; the design then "
        "is of this model."));
    m_new->hide();
    m_new->setAutoDefault(false);
    m_profile->setDefault(true);

    auto* form = new QGridLayout;
    form->setHorizontalSpacing(16);
    form->setVerticalSpacing(8);
    const std::pair<QString, QWidget*> rows[] = {{tr("Module"), moduleRow},
                                                 {tr("Python"), m_python},
                                                 {tr("Device"), m_device},
                                                 {tr("Microbatches"), m_microbatches},
                                                 {tr("For each layer"), m_seconds}};
    int row = 0;
    for (const auto& [text, field] : rows) {
        form->addWidget(makeCaptionOf(field, text), row, 0);
        form->addWidget(field, row++, 1);
    }
    QHBoxLayout* buttons = makeClosingRow(*this, m_profile);
    buttons->insertWidget(0, m_new);
    auto* layout = makeLayout<QVBoxLayout>(this, {24, 18, 24, 18}, 12);
    layout->addLayout(form);
    layout->addWidget(makeHairline(Qt::Horizontal, this));
    layout->addWidget(m_bar);
    layout->addWidget(m_state);
    layout->addLayout(buttons);
    setFixedWidth(490);

    connect(m_profile, &QPushButton::clicked, this, [this] {
        if (m_child.isRunning())
            m_child.cancel();
        else
            begin();
    });
    connect(m_new, &QPushButton::clicked, this, [this] { Q_EMIT newScheduleWanted(modelFile()); });
    connect(this, &QDialog::finished, &m_child, &ChildProcess::cancel);
    connect(&m_child, &ChildProcess::line, this, &ProfileDialog::takeLine);
    connect(&m_child, &ChildProcess::ended, this, &ProfileDialog::end);
}

QString ProfileDialog::state() const
{
    return m_state->text();
}

void ProfileDialog::say(const QString& text, bool isFault)
{
    m_state->setText(text);
    setTone(m_state, isFault ? Tone::Bad : Tone::Plain);
    adjustSize();
}

QString ProfileDialog::modelFile() const
{
    return m_folder.filePath(QFileInfo(m_of.left(m_of.lastIndexOf(QLatin1Char(':')))).completeBaseName()
                             + QStringLiteral(".json"));
}

void ProfileDialog::begin()
{
    m_of = m_module->text().trimmed();
    if (m_of.isEmpty()) {
        say(tr("Name your module, as FILE.py:build."), true);
        m_module->setFocus();
        return;
    }
    m_faults.clear();
    m_notes.clear();
    m_new->hide();
    m_clock.start();
    m_bar->setValue(0);
    m_bar->show();
    m_profile->setText(tr("Stop"));
    say(tr("starting PyTorch …"));
    const QString python = m_python->text().trimmed();
    m_child.start(m_program,
                  {QStringLiteral("profile"), QStringLiteral("--torch"), m_of, QStringLiteral("--python"),
                   python.isEmpty() ? QStringLiteral("python3") : python, QStringLiteral("--device"),
                   m_device->currentData().toString(), QStringLiteral("--microbatches"),
                   QString::number(m_microbatches->value()), QStringLiteral("--seconds"),
                   QString::number(m_seconds->value(), 'g', 6), QStringLiteral("--progress"), QStringLiteral("json"),
                   QStringLiteral("--json"), QStringLiteral("--force"), QStringLiteral("-o"), modelFile()});
}

void ProfileDialog::takeLine(const QByteArray& line)
{
    const JsonValue json = JsonValue::fromText(line.toStdString());
    if (const auto share = json.member("progress").number()) {
        const double done = *share;
        m_bar->setValue(qRound(100 * done));
        const double left = static_cast<double>(m_clock.elapsed()) * (1 - done) / std::max(done, 0.01);
        say(tr("%1 measured · about %2 left")
                .arg(QString::fromStdString(json.member("layer").text().value_or(std::string())),
                     durationText(static_cast<Nanoseconds>(left * 1e6))));
        return;
    }
    // Keeps only the program's diagnostics: standard error also has Python's output.
    const QString text = QString::fromUtf8(line);
    if (text.contains(QLatin1String(": error: ")))
        m_faults << proseText(QString(text).replace(QLatin1String(": error: "), QLatin1String(": ")));
    else if (text.contains(QLatin1String(": note: ")))
        m_notes << proseText(text.section(QLatin1String(": note: "), 1));
}

void ProfileDialog::end(const ChildEnd& child)
{
    m_profile->setText(tr("Profile"));
    m_bar->hide();
    if (child.cancelled) {
        say(tr("Stopped; the design is as it was."));
    } else if (child.kind == ChildEnd::NotStarted) {
        say(tr("The measurement could not be started: %1").arg(child.whyNot), true);
    } else if (child.kind == ChildEnd::Crashed) {
        say(tr("The measurement ended unexpectedly (signal %1). The designer is not affected.").arg(child.code), true);
    } else if (child.code != 0) {
        say(m_faults.isEmpty() ? tr("The measurement failed (exit code %1).").arg(child.code)
                               : m_faults.join(QLatin1Char('\n')),
            true);
    } else {
        try {
            take();
        } catch (const Error& error) {
            say(tr("Measured, but this design cannot take the model: %1").arg(proseText(error)), true);
            m_new->show();
        }
    }
}

void ProfileDialog::take()
{
    const ModelFile model = loadModel(modelFile().toStdString());
    m_document.replaceDesign(withProfiledModel(m_document.design(), model, m_microbatches->value()),
                             tr("Profile %1").arg(QString::fromStdString(model.shape.name)));
    QStringList lines{tr("%n layers: the design is of this model now, in one step of the history.", "",
                         static_cast<int>(model.shape.table.size())),
                      QString::fromStdString(model.source)};
    say((lines + m_notes).join(QLatin1Char('\n')));
    Q_EMIT profiled(m_of, m_python->text().trimmed());
}

} // namespace pipewright

#include "moc_profiledialog.cpp"
