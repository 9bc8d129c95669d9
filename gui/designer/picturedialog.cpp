// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/picturedialog.h"

#include "gui/compare/comparewindow.h"
#include "gui/designer/waitcursor.h"
#include "gui/trace/tracewindow.h"
#include "gui/widgets/closingrow.h"
#include "gui/widgets/fields.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/onscreen.h"
#include "gui/widgets/picture.h"
#include "gui/widgets/words.h"

#include <QCheckBox>
#include <QComboBox>
#include <QEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QPainter>
#include <QPushButton>
#include <QSettings>
#include <QSvgRenderer>

#include <algorithm>

namespace pipewright {

namespace {

constexpr int formFieldWidth = 190;
constexpr int leaveRunOut = -1;
const QString settingsGroup = QStringLiteral("picture/");

} // namespace

PictureDialog::PictureDialog(Document& document, std::function<CompareWindow*()> compare, QSettings& settings,
                             QWidget* parent)
    : QDialog(parent), m_document(document), m_compareWindow(std::move(compare)), m_settings(settings),
      m_preview(new QWidget(this)), m_message(makeCaption({}, TextSize::Small, this)),
      m_save(new QPushButton(tr("Save…"), this)), m_renderer(std::make_unique<QSvgRenderer>())
{
    setWindowTitle(tr("Picture"));
    setWindowFlag(Qt::WindowMinMaxButtonsHint);
    makePanel(this);
    m_preview->setMinimumSize(320, 240);
    m_preview->setAccessibleName(tr("Preview"));
    m_preview->installEventFilter(this);
    m_message->setWordWrap(true);
    m_save->setProperty("primary", true);
    m_save->setDefault(true);
    m_save->setToolTip(tr("As SVG, PDF or PNG, or as a page that plays the step"));
    QHBoxLayout* buttons = makeClosingRow(*this, m_save);
    buttons->insertWidget(0, m_message, 1);
    auto* middle = new QHBoxLayout;
    middle->setSpacing(20);
    middle->addWidget(buildForm(), 0, Qt::AlignTop);
    middle->addWidget(m_preview, 1);
    auto* layout = makeLayout<QVBoxLayout>(this, {24, 18, 24, 18}, 12);
    layout->addLayout(middle, 1);
    layout->addLayout(buttons);
    connect(m_save, &QPushButton::clicked, this, &PictureDialog::save);
    connect(&m_document, &Document::designChanged, this, &PictureDialog::followDocument);
    connect(&m_document, &Document::overlayChanged, this, &PictureDialog::followDocument);
    connect(&m_document, &Document::sideChanged, this, &PictureDialog::followSide);
    resizeOnScreen(*this, {1040, 640});
}

PictureDialog::~PictureDialog() = default;

DecimalField* PictureDialog::lengthField(const QString& name, const QString& unit, double least, double most)
{
    auto* field = new DecimalField(this);
    field->setRange(least, most);
    field->setDecimals(1);
    field->setSuffix(QStringLiteral("\u00a0") + unit);
    makePlain(*field);
    field->setFixedWidth(formFieldWidth);
    field->setAccessibleName(name);
    connect(field, &QDoubleSpinBox::valueChanged, this, &PictureDialog::redraw);
    m_form->addRow(makeCaptionOf(field, name), field);
    return field;
}

QWidget* PictureDialog::buildForm()
{
    auto* widget = new QWidget(this);
    m_form = makeForm(widget, 16, 8);
    m_width = lengthField(tr("Width"), tr("cm"), 5, 100);
    m_font = lengthField(tr("Font size"), tr("pt"), 4, 36);
    m_laneHeight = lengthField(tr("Lane height"), tr("mm"), 0, 40);
    m_laneHeight->setSpecialValueText(tr("as fits"));
    const auto combo = [&](const QString& name) {
        auto* field = new QComboBox(widget);
        field->setAccessibleName(name);
        field->setFixedWidth(formFieldWidth);
        connect(field, &QComboBox::currentIndexChanged, this, &PictureDialog::redraw);
        m_form->addRow(makeCaptionOf(field, name), field);
        return field;
    };
    m_colours = combo(tr("Colours"));
    for (const auto& [name, colours] : {std::pair{tr("on white"), PictureColours::Paper},
                                        {tr("black and white"), PictureColours::Grey},
                                        {tr("light"), PictureColours::Light},
                                        {tr("dark"), PictureColours::Dark}})
        m_colours->addItem(name, static_cast<int>(colours));
    m_run = combo(tr("Run"));
    m_run->setToolTip(tr("Where the recorded run stands"));
    for (const auto& [name, place] : {std::pair{tr("over the prediction"), static_cast<int>(MeasuredPlace::Over)},
                                      {tr("under the prediction"), static_cast<int>(MeasuredPlace::Under)},
                                      {tr("beside the prediction"), static_cast<int>(MeasuredPlace::Beside)},
                                      {tr("alone"), static_cast<int>(MeasuredPlace::Alone)},
                                      {tr("left out"), leaveRunOut}})
        m_run->addItem(name, place);
    m_withCompared = new QCheckBox(widget);
    m_withCompared->setToolTip(
        tr("Under one another on one time axis. Explore › Compare takes families, kept states and files"));
    connect(m_withCompared, &QCheckBox::toggled, this, &PictureDialog::redraw);
    m_form->addRow(nullptr, m_withCompared);
    const std::pair<QString, bool PictureOptions::*> parts[] = {{tr("Memory"), &PictureOptions::memory},
                                                                {tr("Axes"), &PictureOptions::axes},
                                                                {tr("Legend"), &PictureOptions::legend},
                                                                {tr("Titles"), &PictureOptions::titles},
                                                                {tr("Numbers"), &PictureOptions::numbers}};
    for (std::size_t i = 0; i < m_parts.size(); ++i) {
        m_parts[i] = {new QCheckBox(parts[i].first, widget), parts[i].second};
        m_parts[i].box->setChecked(m_settings.value(settingsGroup + QString::number(i), true).toBool());
        connect(m_parts[i].box, &QCheckBox::toggled, this, &PictureDialog::redraw);
        m_form->addRow(i == 0 ? makeCaption(tr("With")) : nullptr, m_parts[i].box);
    }
    m_width->setValue(m_settings.value(settingsGroup + QStringLiteral("width"), 17).toDouble());
    m_font->setValue(m_settings.value(settingsGroup + QStringLiteral("font"), 8).toDouble());
    m_laneHeight->setValue(m_settings.value(settingsGroup + QStringLiteral("lane"), 0).toDouble());
    m_colours->setCurrentIndex(std::max(
        0, m_colours->findData(m_settings.value(settingsGroup + QStringLiteral("colours"), m_colours->itemData(0)))));
    return widget;
}

void PictureDialog::remember() const
{
    m_settings.setValue(settingsGroup + QStringLiteral("width"), m_width->value());
    m_settings.setValue(settingsGroup + QStringLiteral("font"), m_font->value());
    m_settings.setValue(settingsGroup + QStringLiteral("lane"), m_laneHeight->value());
    m_settings.setValue(settingsGroup + QStringLiteral("colours"), m_colours->currentData());
    for (std::size_t i = 0; i < m_parts.size(); ++i)
        m_settings.setValue(settingsGroup + QString::number(i), m_parts[i].box->isChecked());
}

void PictureDialog::showEvent(QShowEvent* event)
{
    QDialog::showEvent(event);
    followSide();
    followDocument();
}

void PictureDialog::changeEvent(QEvent* event)
{
    QDialog::changeEvent(event);
    if (event->type() == QEvent::ActivationChange && isActiveWindow())
        followDocument(); // the compare window may be new or have other schedules
}

void PictureDialog::followSide()
{
    // As the lanes show the run: the switch Predicted | Measured | Both.
    const int place = m_document.side() == Side::Predicted  ? leaveRunOut
                      : m_document.side() == Side::Measured ? static_cast<int>(MeasuredPlace::Alone)
                                                            : static_cast<int>(MeasuredPlace::Over);
    m_run->setCurrentIndex(m_run->findData(place));
}

void PictureDialog::hideEvent(QHideEvent* event)
{
    remember();
    QDialog::hideEvent(event);
}

void PictureDialog::followDocument()
{
    if (!isVisible())
        return;
    for (QWidget* part : {static_cast<QWidget*>(m_run), m_form->labelForField(m_run)})
        part->setVisible(m_document.overlay() != nullptr);
    const CompareWindow* compare = m_compareWindow();
    if (compare)
        connect(compare, &CompareWindow::changed, this, &PictureDialog::followDocument, Qt::UniqueConnection);
    const qsizetype others = compare ? qsizetype(compare->others().size()) : 0;
    m_withCompared->setText(others == 0   ? tr("the compared schedules")
                            : others == 1 ? tr("the compared schedule")
                                          : tr("the %n compared schedules", "", int(others)));
    m_withCompared->setEnabled(others > 0);
    redraw();
}

PictureOptions PictureDialog::options() const
{
    PictureOptions options;
    options.width = m_width->value() / 2.54 * pixelsPerInch;
    options.centimetres = true;
    options.fontSize = m_font->value() / 72 * pixelsPerInch;
    options.laneHeight = m_laneHeight->value() / 25.4 * pixelsPerInch;
    options.colours = static_cast<PictureColours>(m_colours->currentData().toInt());
    if (m_run->currentData().toInt() != leaveRunOut)
        options.measured = static_cast<MeasuredPlace>(m_run->currentData().toInt());
    for (const Part& part : m_parts)
        options.*part.member = part.box->isChecked();
    return options;
}

void PictureDialog::redraw()
{
    if (!isVisible())
        return;
    m_picture = {};
    try {
        if (!m_document.prediction())
            throw Error("picture", "the placed blocks cannot run", "see the conflicts");
        std::vector<PicturePanel> panels{{m_document.design(), *m_document.prediction()}};
        if (const Document::Overlay* overlay = m_document.overlay();
            overlay && m_run->currentData().toInt() != leaveRunOut) {
            panels.front().measured = &overlay->measured;
            panels.front().measuredSource = TraceWindow::titleOf(overlay->path).toStdString();
        }
        std::vector<CompareWindow::Other> others;
        if (const CompareWindow* compare = m_compareWindow(); compare && m_withCompared->isChecked())
            others = compare->others();
        for (const CompareWindow::Other& other : others) {
            panels.emplace_back(*other.design, *other.prediction);
            panels.back().title = other.name.toStdString();
        }
        m_picture = drawPicture(panels, options());
        m_renderer->load(QByteArray::fromStdString(m_picture.svg));
        const auto centimetres = [](double pixels) {
            return QLocale::c().toString(pixels / pixelsPerInch * 2.54, 'f', 1);
        };
        m_message->setText(tr("%1 × %2 cm").arg(centimetres(m_picture.width), centimetres(m_picture.height)));
        setTone(m_message, Tone::Dim);
    } catch (const std::exception& error) {
        m_message->setText(proseText(error));
        setTone(m_message, Tone::Bad);
    }
    m_save->setEnabled(!m_picture.svg.empty());
    m_preview->update();
}

QString PictureDialog::message() const
{
    return m_message->text();
}

bool PictureDialog::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_preview && event->type() == QEvent::Paint) {
        QPainter painter(m_preview);
        painter.fillRect(m_preview->rect(), Theme::of(*this).background);
        if (!m_picture.svg.empty()) {
            painter.setRenderHint(QPainter::Antialiasing);
            const QRectF room = QRectF(m_preview->rect()).adjusted(12, 12, -12, -12);
            QSizeF size(m_picture.width, m_picture.height);
            if (size.width() > room.width() || size.height() > room.height())
                size.scale(room.size(), Qt::KeepAspectRatio);
            QRectF page(QPointF(), size);
            page.moveCenter(room.center());
            painter.fillRect(page, Qt::white);
            m_renderer->render(&painter, page);
            painter.setPen(Theme::of(*this).hairline);
            painter.drawRect(page);
        }
        return true;
    }
    return QDialog::eventFilter(watched, event);
}

void PictureDialog::save()
{
    const QString name = QStringLiteral("%1.pdf").arg(
        m_document.path().isEmpty() ? QStringLiteral("schedule") : QFileInfo(m_document.path()).completeBaseName());
    const QString before = m_settings.value(settingsGroup + QStringLiteral("file"), name).toString();
    QString chosen;
    QString path =
        QFileDialog::getSaveFileName(this, tr("Save the picture"), QFileInfo(before).dir().filePath(name),
                                     tr("PDF (*.pdf);;SVG (*.svg);;PNG (*.png);;Animated page (*.html)"), &chosen);
    if (path.isEmpty())
        return;
    if (QFileInfo(path).suffix().isEmpty()) // the suffix of the chosen kind
        path += chosen.mid(chosen.indexOf(QLatin1Char('.'))).chopped(1);
    if (saveTo(path))
        m_settings.setValue(settingsGroup + QStringLiteral("file"), path);
}

bool PictureDialog::saveTo(const QString& path)
{
    try {
        const WaitCursor wait;
        writePicture(m_picture, path.toStdString(), true); // the file dialog asked about replacing
        m_message->setText(tr("Saved as %1").arg(QFileInfo(path).fileName()));
        setTone(m_message, Tone::Good);
        return true;
    } catch (const std::exception& error) {
        m_message->setText(proseText(error));
        setTone(m_message, Tone::Bad);
        return false;
    }
}

} // namespace pipewright

#include "moc_picturedialog.cpp"
