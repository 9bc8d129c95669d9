// SPDX-License-Identifier: GPL-3.0-or-later
// Picture…: the timeline as a figure for a page or a talk. The preview shows the picture as it will be written; it is
// painted by the same code as the command `render`. The picture is saved as SVG, PDF, PNG or an animation. The options
// are stored between sessions.
#pragma once

#include "core/exchange/timelinepicture.h"
#include "gui/document/document.h"

#include <QDialog>

#include <array>
#include <functional>
#include <memory>

class QCheckBox;
class QComboBox;
class QFormLayout;
class QLabel;
class QPushButton;
class QSettings;
class QSvgRenderer;

namespace pipewright {

class CompareWindow;
class DecimalField;

class PictureDialog : public QDialog {
    Q_OBJECT

public:
    /// `compare`: the window whose schedules may stand below the present one; null while there is none.
    PictureDialog(Document& document, std::function<CompareWindow*()> compare, QSettings& settings,
                  QWidget* parent = nullptr);
    ~PictureDialog() override;

    const Picture& picture() const { return m_picture; }
    /// The kind follows from the suffix .svg, .pdf, .png or .html; false after an error message.
    bool saveTo(const QString& path);
    void save(); ///< asks for a name

    DecimalField& widthField() { return *m_width; }
    QComboBox& coloursField() { return *m_colours; }
    QComboBox& runField() { return *m_run; }
    QCheckBox& compareField() { return *m_withCompared; }
    QString message() const; ///< size of the picture, or why there is none

protected:
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;
    void changeEvent(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    struct Part {
        QCheckBox* box;
        bool PictureOptions::*member;
    };
    QWidget* buildForm();
    DecimalField* lengthField(const QString& name, const QString& unit, double least, double most);
    PictureOptions options() const;
    void followSide();     ///< of the document
    void followDocument(); ///< whether a run and compared schedules exist
    void redraw();
    void remember() const;

    Document& m_document;
    std::function<CompareWindow*()> m_compareWindow;
    QSettings& m_settings;
    Picture m_picture;
    QFormLayout* m_form = nullptr;
    DecimalField *m_width = nullptr, *m_font = nullptr, *m_laneHeight = nullptr;
    QComboBox *m_colours = nullptr, *m_run = nullptr;
    QCheckBox* m_withCompared = nullptr;
    std::array<Part, 5> m_parts{};
    QWidget* m_preview;
    QLabel* m_message;
    QPushButton* m_save;
    std::unique_ptr<QSvgRenderer> m_renderer;
};

} // namespace pipewright
