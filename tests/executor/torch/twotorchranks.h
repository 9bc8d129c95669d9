// SPDX-License-Identifier: GPL-3.0-or-later
// Two ranks of PyTorch that are a shell script: their reports of a step of 1F1B, and the options that run them.
#pragma once

#include "executor/torch/torchbackend.h"
#include "fakepython.h"
#include "makers/designs.h"

#include <QTest>

#include <string>

namespace pipewright::test {

/// Two ranks that run 1F1B with two microbatches; a step takes 1000 ns from its start at 10,000 x (step + 1).
inline const std::string hello = R"(say '{"at":"importing torch"}'
say '{"hello":'$RANK',"name":"fake '$RANK'","offset":'$RANK',"uncertainty":2}'
step() {
  s=$1 t=$(( ($1 + 1) * 10000 ))
  case $RANK in
  0) say '{"step":'$s',"blocks":[["F",0,0,'$t','$((t+100))'],["F",0,1,'$((t+100))','$((t+200))'],["B",0,0,'$((t+600))','$((t+800))'],["B",0,1,'$((t+800))','$((t+1000))']],"waits":[["B",0,0,'$((t+200))','$((t+600))']],"memory":[['$t',64]]}'
     say '{"step":'$s',"start":'$t',"end":'$((t+1000))',"loss":null}' ;;
  1) say '{"step":'$s',"blocks":[["F",1,0,'$((t+100))','$((t+200))'],["B",1,0,'$((t+200))','$((t+400))'],["F",1,1,'$((t+400))','$((t+500))'],["B",1,1,'$((t+500))','$((t+700))']],"waits":[]}'
     say '{"step":'$s',"start":'$((t+1))',"end":'$((t+700))',"loss":'$((20 * ${COPY:-0} + 4 - s))'}' ;;
  esac
}
)";

inline Design twoStages()
{
    return familyDesign("1f1b", 2, 2);
}

inline TorchOptions optionsFor(const FakePython& python, const char* trace = "run.db")
{
    TorchOptions options;
    options.python = python.program();
    options.module = "model.py:build";
    options.steps = 2;
    options.trace = python.path(trace);
    return options;
}

inline std::string faultOf(const Design& design, const TorchOptions& options)
{
    try {
        runWithTorch(design, options);
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing went wrong";
}

inline void compare(const std::string& text, const char* part)
{
    QVERIFY2(text.find(part) != std::string::npos, text.c_str());
}

} // namespace pipewright::test
