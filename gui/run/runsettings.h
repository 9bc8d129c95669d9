// SPDX-License-Identifier: GPL-3.0-or-later
// The settings of a run: backend, steps, what its blocks do, data; for PyTorch the user's module. The dialog shows at
// once what the chosen backend cannot run of this design, and offers a remedy. It is not modal, and closes when the run
// starts.
#pragma once

#include "gui/run/backends.h"
#include "gui/run/runchoice.h"

#include <QDialog>

#include <functional>
#include <memory>
#include <optional>

class QCheckBox;
class QComboBox;
class QGridLayout;
class QLabel;
class QLineEdit;
class QPushButton;
class QSpinBox;

namespace pipewright {

class RunSettings : public QDialog {
    Q_OBJECT

public:
    /// `program` empty: this binary. `choice`: the last choice.
    RunSettings(const QString& program, const RunChoice& choice, QWidget* parent = nullptr);

    /// The design that Run would run, with the predicted peak of each device; call again after every edit.
    void setDesign(std::shared_ptr<const Design> design, std::vector<Bytes> peaks);
    RunChoice choice() const;                                     ///< as the fields say
    void setModule(const QString& module, const QString& python); ///< selects PyTorch with this module
    /// Why Run is disabled, or how the run differs from the design; empty when neither applies.
    QString verdict() const;
    QPushButton* runButton() const { return m_run; }
    QPushButton* remedyButton() const { return m_remedy; } ///< hidden where there is none
    QPushButton* smallButton() const { return m_small; }   ///< hidden where it would not help

Q_SIGNALS:
    void runWanted(const RunChoice& choice); ///< the dialog is closed by then
    void smallDesignWanted();                ///< smallDesign() instead of the present one; the dialog stays open

private:
    QWidget* buildForm();
    void buildTorchFields(QWidget* form);
    void addRow(const QString& text, QWidget* field); ///< no text: no label
    void showRow(QWidget* field, bool shown);
    void takeBackends(const std::vector<BackendChoice>& backends);
    void fillBackends();
    const BackendChoice* chosen() const; ///< null before the backends are known
    void refresh();
    struct Verdict {
        bool possible = false;
        QString text = {};
        std::optional<RunChoice::Blocks> remedy = {}; ///< with these blocks it would run
        QString all = {};                             ///< the whole text where `text` is cut short
        Diagnostics ofFields = {};                    ///< shown below the fields that they are about
        bool smallWould = false;                      ///< smallDesign() would train
    };
    Verdict judge() const;
    bool smallWouldTrain(const std::string& backend) const;
    void startRun();

    std::shared_ptr<const Design> m_design;
    std::vector<Bytes> m_peaks;
    std::vector<BackendChoice> m_backends;
    RunChoice m_last;
    BackendQuery* m_query;
    QString m_program;

    QGridLayout* m_form; ///< label and field by row; Qt 6.4 lays out hidden rows of a form wrongly when shown again
    QComboBox* m_backend;
    QLabel* m_note;
    QSpinBox* m_steps;
    QComboBox* m_blocks;
    QWidget* m_dataRow;
    QLineEdit* m_data;
    QComboBox* m_transport;
    QWidget* m_moduleRow;
    QLineEdit* m_module;
    QCheckBox* m_synthetic;
    QSpinBox* m_replicas;
    QCheckBox* m_profile;
    QLineEdit* m_python;
    QCheckBox* m_calibrate;
    QLabel* m_verdict;
    QPushButton* m_remedy;
    QPushButton* m_small;
    QPushButton* m_run;
};

} // namespace pipewright
